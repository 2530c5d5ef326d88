// What a coordinator remembers of its job, as bytes: one JSON document with a version.

import { z } from 'zod'
import { restError } from './errors.ts'
import type { Remembered } from './job-history.ts'
import { exception, restart } from './operating-resources.ts'
import { completedSnapshot, count, failedSnapshot, wallMs } from './resources.ts'

/** Of another version nothing is read: only figures for people are lost. */
const HISTORY_FORMAT = 1
/** Bounded lists come to less; a larger object is not ours. */
const bytesMax = 16 * 1024 * 1024

const manifestRef = z.object({
  id: count,
  kind: z.enum(['checkpoint', 'savepoint']),
  path: z.string().min(1),
  start: count,
  completedAtMs: wallMs,
  bytes: count,
  drained: z.boolean().optional(),
})

const stored = z.object({
  format: z.literal(HISTORY_FORMAT),
  completed: z.array(
    z.object({
      manifest: manifestRef,
      ...z.object(completedSnapshot.shape).pick({ durationMs: true, subtasks: true }).shape,
    }),
  ),
  failed: z.array(failedSnapshot),
  // Written before they were remembered, these two are unknown.
  exceptions: z.array(
    exception.extend({
      start: exception.shape.start.default(null),
      workers: exception.shape.workers.default(null),
    }),
  ),
  restarts: z.array(restart),
})

export function encodeHistory(remembered: Remembered): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ format: HISTORY_FORMAT, ...remembered }))
}

/** Throws MR-H09, saying what is wrong. */
export function decodeHistory(bytes: Uint8Array, where: string): Remembered {
  if (bytes.length > bytesMax) throw restError('MR-H09', `${where}: it has ${bytes.length} bytes.`)
  let document: unknown
  try {
    document = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch (cause) {
    throw restError('MR-H09', `${where}: ${bytes.length} bytes that are no JSON.`, cause)
  }
  const read = stored.safeParse(document)
  if (read.success) return read.data as unknown as Remembered
  const [issue] = read.error.issues
  throw restError('MR-H09', `${where}: ${issue?.path.join('.')}: ${issue?.message}.`)
}
