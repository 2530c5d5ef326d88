// Names of a file sink's folder, hidden and visible files, and what a committable says about them.

import { createHash } from 'node:crypto'
import { z } from 'zod'
import { formatAttempt, type CheckpointId } from '../base/ids.ts'
import type { TaskInfo } from '../operators/contract.ts'
import { joinPath } from '../storage/paths.ts'

/** Version of the committable's payload. */
export const PENDING_FORMAT = 1

/** The payload of a committable: what a committer needs without its writer, also when the job now writes elsewhere. */
export interface PendingFile {
  readonly format: number
  readonly folder: string
  /** The visible name, within the folder. */
  readonly final: string
  readonly bytes: number
}

export const pendingFileSchema = z.object({
  format: z.literal(PENDING_FORMAT),
  folder: z.string(),
  final: z.string(),
  bytes: z.number(),
})

export function pendingFolder(folder: string): string {
  return joinPath(folder, '.pending')
}

export function pendingFile(folder: string, transaction: string): string {
  return joinPath(pendingFolder(folder), transaction)
}

/**
 * `part-<subtask>-<checkpoint>-<writer>.<extension>`: sorted by subtask, then by checkpoint. The writer's eight hexadecimal
 * digits tell jobs, sinks and attempts apart that write into one folder.
 */
export function finalFileName(options: {
  readonly task: TaskInfo
  readonly uid: string
  /** Whose barrier closed the file. */
  readonly checkpoint: CheckpointId
  readonly extension: string
}): string {
  const { task, uid, checkpoint, extension } = options
  const identity = [task.job, uid, formatAttempt(task.attempt)].join('\n')
  const writer = createHash('sha256').update(identity).digest('hex').slice(0, 8)
  return `part-${padded(task.subtask, 5)}-${padded(checkpoint, 10)}-${writer}.${extension}`
}

function padded(value: number, digits: number): string {
  return String(value).padStart(digits, '0')
}
