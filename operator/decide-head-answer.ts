// What HEAD says, as a coordinator's REST and `millrace admin` both tell it. Pure.

import { z } from 'zod'
import type { RecordedRestorePoint } from './contract.ts'

export const manifestAnswer = z.object({
  id: z.number(),
  kind: z.enum(['checkpoint', 'savepoint']),
  path: z.string(),
  start: z.number(),
})

/** `manifest`: that much of one is told. */
export function restorePointAnswer<Manifest extends typeof manifestAnswer>(manifest: Manifest) {
  return z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('empty') }),
    z.object({ kind: z.literal('manifest'), manifest }),
  ])
}

export const endAnswer = z.object({
  kind: z.enum(['none', 'suspended', 'stopped', 'finished', 'failed', 'cancelled']),
  reason: z.string().optional(),
})

interface HeadAnswer {
  readonly start: number
  readonly restorePoint: z.output<ReturnType<typeof restorePointAnswer<typeof manifestAnswer>>>
  readonly unconfirmed: unknown
}

export function restorePointOf({ start, restorePoint, unconfirmed }: HeadAnswer): Omit<RecordedRestorePoint, 'readAt'> {
  const more = { start, unconfirmed: unconfirmed !== null && unconfirmed !== undefined }
  if (restorePoint.kind === 'empty') return { kind: 'empty', ...more }
  const { kind, path, id, start: madeBy } = restorePoint.manifest
  return { kind, path, id, madeBy, ...more }
}
