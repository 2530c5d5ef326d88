// The job that `millrace run` runs: its types are looked at first, since Node does not, and would meet what is wrong at some record.

import type { Job } from '../job/define-job.ts'
import { loadJob } from '../local/job-module.ts'
import { checkTypes, typesError } from './type-check.ts'

export interface CheckedJobOptions {
  readonly skipTypes: boolean
  readonly say: (text: string) => void
  /** As checkTypes takes it. */
  readonly beside?: string
}

/** Throws MR-L21, and what loadJob throws. Where nobody can check the types it says so and goes on. */
export async function loadCheckedJob(jobFile: string, { skipTypes, say, beside }: CheckedJobOptions): Promise<Job> {
  if (skipTypes) return loadJob(jobFile)
  // At once: the compiler is a process of its own.
  const [checked, loaded] = await Promise.allSettled([checkTypes(jobFile, beside), loadJob(jobFile)])
  // What cannot be loaded is told as that: the compiler would only say it again.
  if (loaded.status === 'rejected') throw loaded.reason
  if (checked.status === 'rejected') throw checked.reason
  const error = typesError(checked.value)
  if (error !== undefined) throw error
  if (checked.value.kind === 'unknown') say(`The types of the job are not checked: ${checked.value.why}.`)
  return loaded.value
}
