// What REST takes and answers, by name. A job on a cluster will have the same resources: what is unknown is null, never 0 or absent.

import { z } from 'zod'

export const count = z.int().min(0)
export const milliseconds = z.number().min(0).describe('ms')
export const wallMs = z.number().describe('ms since the epoch')
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
const headSummary = z.strictObject({
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
  state: z
    .enum(['starting', 'running', 'restarting', 'ending', 'ended'])
    .describe('ended: no task runs any more; what is left are answers'),
  sinceMs: wallMs.nullable().describe('when this process took the job over; null: it has not'),
  waitsFor: z.enum(['slots']).nullable().describe('what the start or the restart waits for'),
  slotsNeeded: count
    .nullable()
    .describe('by the graph; null: a local job makes its own slots, or a rescale has not built its graph yet'),
  slotsOffered: count.nullable().describe('by registered workers'),
  restore: z
    .strictObject({
      bytesRead: count.nullable(),
      bytes: count.nullable().describe('of the state to be read'),
      subtasksRestored: count,
      subtasks: count,
    })
    .nullable()
    .describe('how far the start or the restart is; null: all subtasks run, or it has not begun'),
  lastFailure: z
    .strictObject({ atMs: wallMs, message: z.string(), subtasks: count, restartInMs: milliseconds })
    .nullable()
    .describe('the last one that the job restarted after in this start'),
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
  worker: z
    .string()
    .nullable()
    .describe('whose slot runs it; null: none does at the moment, or a local job, whose slots are threads of its own'),
  recordsIn: count.nullable().describe('of this attempt; so are all counters'),
  recordsOut: count.nullable(),
  bytesIn: count.nullable().describe('encoded, from producers in other slots: within a slot nothing is encoded'),
  bytesOut: count.nullable().describe('encoded, to consumers in other slots'),
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

const snapshotOfSubtask = z.strictObject({
  vertex: uid,
  subtask: count,
  finished: z.boolean(),
  bytes: count,
  syncMs: milliseconds,
  asyncMs: milliseconds,
  alignmentMs: milliseconds,
  startDelayMs: milliseconds
    .nullable()
    .describe('from the trigger to the first barrier, by the clocks of two hosts; null: it had finished'),
})

export const completedSnapshot = manifest.extend({
  durationMs: milliseconds,
  subtasks: z.array(snapshotOfSubtask).nullable().describe('null: forgotten, of an older one of a large job'),
})

export const failedSnapshot = z.strictObject({ id: count, atMs: wallMs, reason: z.string(), detail: z.string() })

const pendingSnapshot = z.strictObject({
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
  intervalMs: milliseconds
    .nullable()
    .describe('from one checkpoint to the next; null: none are taken unasked, or the job is down'),
  pending: pendingSnapshot.nullable(),
  retained: z.array(manifest).describe('checkpoints that HEAD retains, oldest first'),
  completed: z.array(completedSnapshot).describe('the last 20, of earlier coordinators too, oldest first'),
  failed: z.array(failedSnapshot).describe('the last 20, of earlier coordinators too, oldest first'),
})

export const checkpoint = z.discriminatedUnion('state', [
  pendingSnapshot.extend({ state: z.literal('pending') }),
  completedSnapshot.extend({
    state: z.literal('completed'),
    retained: z.boolean(),
    durationMs: milliseconds.nullable().describe('null: forgotten'),
  }),
  failedSnapshot.extend({ state: z.literal('failed') }),
])

export type ManifestResource = z.output<typeof manifest>
export type HeadSummary = z.output<typeof headSummary>
export type JobResource = z.output<typeof job>
export type GraphResource = z.output<typeof graph>
export type SubtaskResource = z.output<typeof subtask>
export type CheckpointsResource = z.output<typeof checkpoints>
export type CompletedResource = z.output<typeof completedSnapshot>
export type FailedResource = z.output<typeof failedSnapshot>
export type CheckpointResource = z.output<typeof checkpoint>
