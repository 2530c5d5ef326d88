// What the operator writes into the status of its kinds, as the API server keeps it: what is not here it drops. operator/contract.ts says
// what each field means; a test holds these schemas to it.

import { z } from 'zod'

/** RFC 3339. */
const time = z.string()
const number = z.int()
const text = z.string()

const restorePoint = z
  .strictObject({
    kind: z.enum(['empty', 'checkpoint', 'savepoint']),
    path: text.optional(),
    id: number.optional(),
    start: number,
    madeBy: number.optional(),
    unconfirmed: z.boolean().describe('Commits that it permits may not have been made yet.'),
    readAt: time,
  })
  .describe('Where the next start begins, as HEAD said it.')

const condition = z.strictObject({
  type: z.enum([
    'Ready',
    'Progressing',
    'CheckpointHealthy',
    'Degraded',
    'UpgradeBlocked',
    'Reconciling',
    'Stalled',
    'Isolated',
  ]),
  status: z.enum(['True', 'False', 'Unknown']),
  reason: text,
  message: text.describe('First cause and remedy.'),
  lastTransitionTime: time,
  observedGeneration: number,
})

const transition = z
  .strictObject({
    kind: z.enum(['start', 'upgrade', 'restart', 'rescale', 'suspend', 'rollback', 'delete']),
    step: z.enum([
      'recovering',
      'preparing',
      'closing',
      'closed',
      'starting',
      'stabilising',
      'growing',
      'rescaling',
      'shrinking',
    ]),
    request: text,
    mode: z.enum(['savepoint', 'last-state', 'stateless', 'delete']),
    modeOfSpec: z.boolean().optional().describe('Whether the mode follows spec.upgradeMode.'),
    attempt: number,
    retry: z.strictObject({ at: time, why: text }).optional(),
    restoreFrom: text.optional(),
    restoreNonce: number.optional(),
    savepoint: text.optional().describe('Of a deletion: the savepoint that the job was stopped with.'),
    from: text.optional(),
    to: text.optional(),
    parallelism: number.optional(),
    begunAt: time,
    stepAt: time,
    progressAt: time,
    held: z.strictObject({ since: time, why: text }).optional(),
    progress: text,
  })
  .describe('What is under way.')

export const streamJobStatus = z
  .strictObject({
    version: z.literal(1),
    observedGeneration: number,
    jobId: text.describe('The uid of this object: the name of the job in storage and in NATS.'),
    phase: z.enum([
      'PENDING',
      'STARTING',
      'RUNNING',
      'RESTARTING',
      'UPGRADING',
      'RESCALING',
      'SUSPENDING',
      'SUSPENDED',
      'FINISHED',
      'FAILED',
      'DELETING',
    ]),
    conditions: z.array(condition).meta({ 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] }),
    start: number.describe("Of the job's life; rises with each upgrade, restart and resume."),
    revision: text.optional().describe('ControllerRevision of what runs.'),
    stableRevision: text.optional().describe('The last one that completed a checkpoint.'),
    begin: z
      .strictObject({
        parallelism: number,
        from: text.optional(),
        asked: z.boolean().optional(),
        empty: z.boolean().optional(),
        goesOn: z.boolean().optional(),
        allowNonRestoredState: z.boolean().optional(),
      })
      .optional()
      .describe('How the current start began.'),
    restorePoint: restorePoint.optional(),
    rollbackPoint: restorePoint.optional().describe('Where a rollback goes back to.'),
    rollbackParallelism: number.optional(),
    rolledBackStart: number.optional().describe('The last start that was rolled back, until a later one has begun.'),
    transition: transition.optional(),
    blocked: z
      .strictObject({ key: text, reason: text, message: text })
      .optional()
      .describe('A spec that is not tried again until it changes.'),
    refusedSize: z
      .strictObject({ parallelism: number, message: text })
      .optional()
      .describe('A parallelism that could not be had: not tried again until another is asked for.'),
    workers: number.describe('Worker pods that the job is to have.'),
    asked: z
      .strictObject({
        kind: z.enum(['savepoint', 'checkpoint']),
        request: text,
        at: time,
        nonce: number.optional(),
        object: text.optional(),
        after: number.optional().describe("Of a checkpoint: the newest snapshot's id before it was asked for."),
      })
      .optional()
      .describe('The snapshot that is asked for now.'),
    periodic: z.strictObject({ number, at: time }).optional(),
    lastCheckpoint: z
      .strictObject({
        id: number,
        path: text,
        time,
        bytes: number,
        durationMs: number,
        kind: z.enum(['checkpoint', 'savepoint']),
      })
      .optional(),
    savepoints: z
      .array(z.strictObject({ path: text, id: number, time, request: text }))
      .meta({ 'x-kubernetes-list-type': 'atomic' }),
    restarts: number,
    parallelism: number.describe('Of the running job; of the scale subresource.'),
    labelSelector: text.describe('Of the worker pods; empty when a worker has several slots.'),
    answered: z
      .strictObject({
        restart: number.optional(),
        restore: number.optional(),
        savepoint: number.optional(),
        checkpoint: number.optional(),
      })
      .describe('Nonces that are answered.'),
    timeline: z
      .array(z.strictObject({ step: text, seconds: z.number() }))
      .meta({ 'x-kubernetes-list-type': 'atomic' })
      .describe('Steps of the last transition.'),
    settings: z
      .strictObject({
        state: z.enum(['running', 'suspended']),
        parallelism: number,
        upgradeMode: z.enum(['savepoint', 'last-state', 'stateless']),
        restoreFrom: text.optional(),
        restoreNonce: number.optional(),
        restoreMode: z.literal('no-claim'),
        allowNonRestoredState: z.boolean(),
        restartNonce: number.optional(),
        savepointNonce: number.optional(),
        checkpointNonce: number.optional(),
        savepoints: z
          .strictObject({
            every: number,
            keep: z.strictObject({ count: number.optional(), age: number.optional() }),
          })
          .optional(),
        rollback: z.strictObject({ enabled: z.boolean(), progressDeadline: number }),
        deletion: z.strictObject({ savepoint: z.boolean(), deadline: number }),
        ttlAfterFinished: number.optional(),
      })
      .optional()
      .describe('Of the newest spec that was valid, durations in milliseconds: they hold while the spec is not.'),
    ended: z.enum(['SUSPENDED', 'FINISHED', 'FAILED']).optional().describe('What has become of the start.'),
    finishedAt: time.optional(),
    failure: text.optional().describe('Why it failed.'),
  })
  .describe('What is. Written by the operator alone.')

export const savepointStatus = z
  .strictObject({
    state: z.enum(['pending', 'completed', 'failed']),
    path: text.optional().describe('Of the completed savepoint.'),
    request: text.optional().describe('Under which it was asked for.'),
    detail: text.optional().describe('What it waits for, or why it failed.'),
    origin: z
      .strictObject({
        jobId: text,
        image: text,
        storage: text,
        s3: z
          .strictObject({
            endpoint: text.optional(),
            region: text.optional(),
            forcePathStyle: z.boolean().optional(),
            credentialsSecret: text.optional(),
          })
          .optional(),
        serviceAccountName: text.optional(),
        podTemplate: z
          .record(z.string(), z.unknown())
          .optional()
          .describe("What a pod needs of the job's podTemplate; Secrets are named."),
      })
      .optional()
      .describe('What is needed to take its files away when the job is gone.'),
  })
  .describe('What is. Written by the operator alone.')
