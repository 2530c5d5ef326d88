// What REST takes and answers, by name. A job on a cluster will have the same resources: what is unknown is null, never 0 or absent.

import { z } from 'zod'

const count = z.int().min(0)
const milliseconds = z.number().min(0).describe('ms')
const wallMs = z.number().describe('ms since the epoch')
const uid = z.string()

/** A name that the client gives, so that a repeated request is the same request. */
export const requestName = z
  .string()
  .regex(/^[A-Za-z0-9._=-]{1,64}$/, 'is no request id: 1 to 64 letters, digits and ._=-')

export const errorAnswer = z.strictObject({ code: z.string(), message: z.string() })

export const manifest = z.strictObject({
  id: count,
  kind: z.enum(['checkpoint', 'savepoint']),
  path: z.string().describe('its folder, absolute'),
  start: count,
  completedAtMs: wallMs,
  bytes: count,
  drained: z.boolean().describe('taken with drain: event time had ended'),
})

export const restorePoint = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('empty') }),
  z.strictObject({ kind: z.literal('manifest'), manifest }),
])

export const end = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.enum(['none', 'suspended', 'cancelled']) }),
  z.strictObject({
    kind: z.literal('finished'),
    drained: manifest.nullable().describe('the savepoint of a stop with drain'),
  }),
  z.strictObject({ kind: z.literal('stopped'), savepoint: manifest }),
  z.strictObject({ kind: z.literal('failed'), reason: z.string() }),
])

/** What HEAD says of a job; told of one that does not run, too. */
export const headSummary = z.strictObject({
  id: z.string(),
  start: count,
  incarnation: count,
  parallelism: count,
  maxParallelism: count,
  restarts: count.describe('in this start'),
  restorePoint: restorePoint.describe('where a restart would begin'),
  end,
  unconfirmed: manifest.nullable().describe('the snapshot whose commits are permitted and not yet confirmed'),
})

export const job = headSummary.extend({
  instance: z.string().describe('of the process that runs it'),
  state: z.enum(['starting', 'running', 'restarting', 'ending']),
  sinceMs: wallMs.describe('when this process took the job over'),
  lastFailure: z
    .strictObject({ atMs: wallMs, message: z.string(), subtasks: count, restartInMs: milliseconds })
    .nullable(),
})

export const graph = z.strictObject({
  name: z.string(),
  hash: z.string(),
  vertices: z.array(
    z.strictObject({
      id: uid,
      name: z.string(),
      parallelism: count,
      maxParallelism: count,
      slotSharingGroup: z.string(),
      operators: z.array(z.strictObject({ uid, name: z.string(), uidGiven: z.boolean() })),
    }),
  ),
  edges: z.array(
    z.strictObject({
      id: count,
      source: uid,
      target: uid,
      input: count,
      partitioning: z.enum(['forward', 'rebalance', 'hash', 'broadcast']),
    }),
  ),
})

export const subtask = z.strictObject({
  vertex: uid,
  subtask: count,
  attempt: z.string().describe('<incarnation>.<number>'),
  status: z.enum(['deploying', 'running', 'finished']),
  recordsIn: count.nullable().describe('of this attempt; so are all counters'),
  recordsOut: count.nullable(),
  busyMs: milliseconds.nullable(),
  idleMs: milliseconds.nullable(),
  backpressuredMs: milliseconds.nullable(),
  watermark: z
    .union([z.number(), z.literal('end'), z.null()])
    .describe('event time, ms since the epoch; end: after all'),
  stateEntries: count.nullable(),
  metrics: z.record(z.string(), z.number()).describe('everything else that it reports, user metrics included'),
})

export const subtasks = z.strictObject({ subtasks: z.array(subtask) })

export const completedSnapshot = manifest.extend({
  durationMs: milliseconds,
  subtasks: z.array(
    z.strictObject({
      vertex: uid,
      subtask: count,
      finished: z.boolean(),
      bytes: count,
      syncMs: milliseconds,
      asyncMs: milliseconds,
      alignmentMs: milliseconds,
    }),
  ),
})

export const failedSnapshot = z.strictObject({ id: count, atMs: wallMs, reason: z.string(), detail: z.string() })

export const pendingSnapshot = z.strictObject({
  id: count,
  kind: z.enum(['checkpoint', 'savepoint']),
  phase: z.enum(['collecting', 'writing', 'swapping']),
  forMs: milliseconds.describe('since its trigger'),
  missing: z.array(z.string()).describe('subtasks that have not acknowledged: <vertex>/<subtask>'),
})

export const checkpoints = z.strictObject({
  counters: z
    .strictObject({ triggered: count, completed: count, failed: count, consecutiveFailures: count })
    .nullable()
    .describe('of this process, savepoints included'),
  pending: pendingSnapshot.nullable(),
  retained: z.array(manifest).describe('checkpoints that HEAD retains, oldest first'),
  completed: z.array(completedSnapshot).describe('the last ones of this process, oldest first'),
  failed: z.array(failedSnapshot).describe('the last ones of this process, oldest first'),
})

export const savepointMode = z.enum(['savepoint', 'stop', 'drain'])

export const savepointRequest = z.discriminatedUnion('state', [
  z.strictObject({ request: z.string(), state: z.literal('pending') }),
  z.strictObject({ request: z.string(), state: z.literal('completed'), savepoint: manifest }),
  z.strictObject({ request: z.string(), state: z.literal('failed'), detail: z.string() }),
])

export const nothing = z.strictObject({})
export const savepointBody = z.strictObject({ request: requestName.optional() })
export const stopBody = z.strictObject({ drain: z.boolean(), request: requestName.optional() })

export type ManifestResource = z.output<typeof manifest>
export type HeadSummary = z.output<typeof headSummary>
export type JobResource = z.output<typeof job>
export type GraphResource = z.output<typeof graph>
export type SubtaskResource = z.output<typeof subtask>
export type CheckpointsResource = z.output<typeof checkpoints>
export type CompletedResource = z.output<typeof completedSnapshot>
export type FailedResource = z.output<typeof failedSnapshot>
export type SavepointMode = z.output<typeof savepointMode>
export type SavepointResource = z.output<typeof savepointRequest>
