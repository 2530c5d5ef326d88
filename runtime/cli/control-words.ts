// Words that the commands on a local job share.

import { notEmpty, onlyWord, wholeNumber } from './words.ts'

export interface ControlWords {
  /** An id, a name, a job file or a manifest. */
  readonly job: string
  readonly folder: string | undefined
}

export const controlHelp = `  --folder DIR       the folder that the job was started in, if not this one`

/** How long an answer may take; taking a savepoint of much state takes its time. */
export const timeoutUsualMs = 600_000

export const timeoutHelp = `  --timeout MS       how long to wait for the answer; default: ${timeoutUsualMs}. What was asked for stands`

export const folderOption = { folder: { type: 'string' } } as const
export const timeoutOption = { timeout: { type: 'string' } } as const

export function controlWords({
  command,
  positionals,
  folder,
}: {
  readonly command: string
  readonly positionals: readonly string[]
  readonly folder: string | undefined
}): ControlWords {
  return { job: onlyWord({ command, what: 'job', words: positionals }), folder: notEmpty('folder', folder) }
}

export function timeoutMsOf(timeout: string | undefined): number {
  return wholeNumber('timeout', timeout) ?? timeoutUsualMs
}
