// What REST tells of failures, workers and the services that a job stands on.

import { z } from 'zod'
import { count, milliseconds, wallMs } from './resources.ts'

export const exception = z.strictObject({
  atMs: wallMs,
  start: count.nullable().describe('in which it happened; null: unknown'),
  incarnation: count.nullable().describe('of the coordinator that met it'),
  message: z.string(),
  code: z.string().nullable().describe('docs/errors.md; null: of no table, such as errors of the job'),
  failed: z
    .array(z.string())
    .nullable()
    .describe('at most 16 subtasks that failed, <vertex>/<subtask>; of a lost slot, those that it ran; null: unknown'),
  workers: z
    .array(z.string())
    .nullable()
    .describe('that they ran in; null: unknown, such as of a worker that is gone, or a local job, which has none'),
  restarted: count.describe('how many subtasks restart; 0: the job is given up'),
  restartInMs: milliseconds.nullable().describe('null: the job is given up'),
})

export const exceptions = z.strictObject({
  exceptions: z.array(exception).describe('the last 100, of earlier coordinators too, oldest first'),
})

export const restart = z.strictObject({
  atMs: wallMs.describe('of the failure'),
  incarnation: count.nullable(),
  subtasks: count,
  code: z.string().nullable().describe('of the failure'),
  runningAfterMs: milliseconds
    .nullable()
    .describe(
      'from the failure until all subtasks ran; null: not yet, or it failed again before, or the coordinator was lost',
    ),
})

export const restarts = z.strictObject({
  count: count.describe('in this start, as HEAD says'),
  restarts: z.array(restart).describe('the last 100, of earlier coordinators too, oldest first'),
})

export const workers = z.strictObject({
  slotsNeeded: count.nullable(),
  slotsOffered: count.nullable(),
  workers: z
    .array(
      z.strictObject({
        name: z.string(),
        address: z.string(),
        slots: count,
        running: z.array(z.string()).describe('its slots that run subtasks'),
        state: z.enum(['registered', 'leaving', 'lost']),
        sinceMs: wallMs,
      }),
    )
    .nullable()
    .describe('null: a local job has none'),
})

const service = z.strictObject({
  state: z.enum(['ok', 'failed', 'unknown']).describe('unknown: no answer in time'),
  detail: z.string().nullable(),
})

export const health = z.strictObject({
  ready: z.boolean().describe('it has begun the job, or found it ended'),
  storage: service.nullable(),
  nats: service.nullable().describe('null: a local job needs none'),
})

export const live = z.strictObject({ live: z.literal(true) })
export const ready = z.strictObject({
  ready: z.boolean(),
  waitsFor: z.string().nullable().describe('what it cannot begin without, such as the object store; null: nothing'),
})

export type ExceptionResource = z.output<typeof exception>
export type RestartResource = z.output<typeof restart>
export type WorkersResource = z.output<typeof workers>
export type HealthResource = z.output<typeof health>
export type ServiceResource = z.output<typeof service>
