// All that can be told of a local job: by HEAD, which is read and never written, and by the process that runs it, if one does.

import { MillraceError } from '../base/errors.ts'
import { headKeeperOf, snapshotFolderIn } from '../local/local-jobs.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { headView, manifestView } from '../rest/job-views.ts'
import { checkpoints as checkpointsResource, subtasks as subtasksResource } from '../rest/resources.ts'
import type {
  CheckpointsResource,
  HeadSummary,
  JobResource,
  ManifestResource,
  SubtaskResource,
} from '../rest/resources.ts'
import { contactJob } from './job-client.ts'

export interface JobReport {
  readonly id: string
  readonly folder: string
  /** null: its first command ended before it wrote one. */
  readonly head: HeadSummary | null
  /** Checkpoints, oldest first. */
  readonly retained: readonly ManifestResource[]
  /** Of the last 100 requests. Each is the user's: `there` says whether its folder still is. */
  readonly savepoints: readonly (ManifestResource & { readonly there: boolean })[]
  readonly process: ProcessReport
}

export type ProcessReport =
  | { readonly kind: 'none' }
  | { readonly kind: 'unknown'; readonly why: string }
  | {
      readonly kind: 'running'
      readonly job: JobResource
      readonly subtasks: readonly SubtaskResource[]
      readonly checkpoints: Pick<CheckpointsResource, 'counters' | 'pending'> & {
        readonly last: CheckpointsResource['completed'][number] | null
      }
    }

/** Throws when HEAD cannot be read. */
export async function jobReport(stored: StoredJob, world: LocalWorld): Promise<JobReport> {
  const process = await processReport(stored)
  const head = await (await headKeeperOf(stored, world)).read()
  const locate = snapshotFolderIn(stored.storeFolder)
  // A rescale is answered there too, with a checkpoint: the job's own, which it discards in its time.
  const taken = (head?.savepointResults ?? []).flatMap(({ manifest }) =>
    manifest?.kind === 'savepoint' ? [manifest] : [],
  )
  return {
    id: stored.id,
    folder: stored.storeFolder,
    head: head === undefined ? null : headView(head, locate),
    retained: (head?.retained ?? []).map((manifest) => manifestView(manifest, locate)),
    savepoints: await Promise.all(
      taken.map(async (manifest) => ({
        ...manifestView(manifest, locate),
        there: await world.files.exists(locate(manifest)),
      })),
    ),
    process,
  }
}

async function processReport(stored: StoredJob): Promise<ProcessReport> {
  try {
    const contact = await contactJob(stored)
    if (contact.kind === 'not running') return { kind: 'none' }
    const { client, job } = contact
    const [subtasks, checkpoints] = await Promise.all([
      client.get('/v1/subtasks', subtasksResource),
      client.get('/v1/checkpoints', checkpointsResource),
    ])
    // It ended between two questions.
    if (subtasks === undefined || checkpoints === undefined) return { kind: 'none' }
    const { counters, pending, completed } = checkpoints
    return {
      kind: 'running',
      job,
      subtasks: subtasks.subtasks,
      checkpoints: { counters, pending, last: completed.at(-1) ?? null },
    }
  } catch (error) {
    if (!(error instanceof MillraceError)) throw error
    return { kind: 'unknown', why: error.message }
  }
}

/** In a word: of the process that runs it, else how it ended. */
export function stateOf({ head, process }: JobReport): string {
  if (process.kind === 'running') return process.job.state
  if (process.kind === 'unknown') return 'unknown'
  if (head === null) return 'never begun'
  return head.end.kind === 'none' ? 'interrupted' : head.end.kind
}
