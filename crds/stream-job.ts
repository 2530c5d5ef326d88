// The kind StreamJob: a job, where its code is, and how it is run.
//
// Fields that the job's own code can set too (checkpointing, restartStrategy, failoverStrategy, maxParallelism) have no default here:
// left out, the job's env.config decides, whose defaults are those that the comments give. What is here wins over env.config.

import { z } from 'zod'
import { duration, positiveDuration, quantity } from './quantities.ts'
import { API_VERSION, metadata, nonce, path, resourceName } from './resource.ts'

/** Exactly one of the two. `configMap`: all its keys are files side by side, `key` is the job file. `path`: within the image. */
const module = z
  .strictObject({
    configMap: z.strictObject({ name: resourceName, key: z.string().regex(/^[-._a-zA-Z0-9]+$/) }).optional(),
    path: path.optional(),
  })
  .refine(({ configMap, path: file }) => (configMap === undefined) !== (file === undefined), {
    error: 'must have either configMap or path, and not both',
  })

const program = z.strictObject({
  module,
  /** Default: the chart's. */
  image: z.string().min(1).optional(),
  /** Checked by the job's own schema. */
  args: z.record(z.string(), z.unknown()).prefault({}),
})

const checkpointing = z.strictObject({
  /** From one trigger to the next. Default 10s. */
  interval: positiveDuration.optional(),
  /** Default exactly-once. */
  mode: z.enum(['exactly-once', 'at-least-once']).optional(),
  /** Default 10m. */
  timeout: positiveDuration.optional(),
  /** Between the end of one snapshot and the next trigger. Default 0s. */
  minPause: duration.optional(),
  /** Pending at one moment. */
  maxConcurrent: z.literal(1).optional(),
  /** Failed ones in a row that the job bears. Default unlimited. */
  tolerableFailures: z
    .union([z.int().nonnegative(), z.literal('unlimited')], { error: 'must be a whole number from 0, or unlimited' })
    .optional(),
  /** Completed ones that are kept. Default 3. */
  retained: z.int().min(1).optional(),
  /** What becomes of them when the job is cancelled or deleted. Default retain. */
  onCancellation: z.enum(['retain', 'delete']).optional(),
})

const restartStrategy = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('none') }),
  z.strictObject({
    type: z.literal('fixed-delay'),
    attempts: z.int().nonnegative(),
    delay: duration.prefault('1s'),
  }),
  z.strictObject({
    type: z.literal('failure-rate'),
    failuresPerInterval: z.int().nonnegative(),
    interval: positiveDuration,
    delay: duration.prefault('1s'),
  }),
  z.strictObject({
    type: z.literal('exponential-delay'),
    initialDelay: duration.prefault('1s'),
    maxDelay: duration.prefault('1m'),
    multiplier: z.number().min(1).default(1.5),
    /** Running so long without a failure makes the next delay the initial one. */
    resetAfter: duration.prefault('10m'),
    /** Share of the delay by which it varies. */
    jitter: z.number().nonnegative().default(0.1),
  }),
])

const storage = z.strictObject({
  checkpoints: path.optional(),
  savepoints: path.optional(),
  s3: z
    .strictObject({
      endpoint: z.string().min(1).optional(),
      region: z.string().min(1).optional(),
      forcePathStyle: z.boolean().optional(),
      credentialsSecret: resourceName.optional(),
    })
    .optional(),
})

const nats = z.strictObject({
  url: z.string().min(1),
  credentialsSecret: resourceName.optional(),
  tls: z.boolean().default(false),
})

const resources = z.strictObject({
  requests: z.record(z.string(), quantity).optional(),
  limits: z.record(z.string(), quantity).optional(),
})

const pods = {
  resources: resources.optional(),
  /** Free-form; merged by name over what the operator makes, and applied strictly. */
  podTemplate: z.record(z.string(), z.unknown()).optional(),
}

const spec = z
  .strictObject({
    state: z.enum(['running', 'suspended']).default('running'),
    program,
    /** Has a default, since the scale subresource needs a number to read. */
    parallelism: z.int().min(1).default(1),
    /** Number of key groups; cannot change while there is state. Default 128. */
    maxParallelism: z.int().min(1).max(32_768).optional(),
    upgradeMode: z.enum(['savepoint', 'last-state', 'stateless']).default('last-state'),
    /** Of the first start: a snapshot's address, or `latest`. */
    restoreFrom: path.optional(),
    /** Raised, the job starts again from restoreFrom. */
    restoreNonce: nonce.optional(),
    restoreMode: z.enum(['no-claim']).default('no-claim'),
    allowNonRestoredState: z.boolean().default(false),
    restartNonce: nonce.optional(),
    savepointNonce: nonce.optional(),
    checkpointNonce: nonce.optional(),
    checkpointing: checkpointing.prefault({}),
    stateBackend: z.strictObject({ type: z.enum(['heap']).default('heap') }).prefault({}),
    storage: storage.optional(),
    /** Default exponential-delay. */
    restartStrategy: restartStrategy.optional(),
    /** Default region. */
    failoverStrategy: z.enum(['region', 'full']).optional(),
    savepoints: z
      .strictObject({
        every: positiveDuration,
        keep: z.strictObject({ count: z.int().min(1).optional(), age: positiveDuration.optional() }).prefault({}),
      })
      .optional(),
    rollback: z
      .strictObject({ enabled: z.boolean().default(true), progressDeadline: positiveDuration.prefault('5m') })
      .prefault({}),
    deletion: z
      .strictObject({ savepoint: z.boolean().default(false), deadline: positiveDuration.prefault('45s') })
      .prefault({}),
    ttlAfterFinished: duration.optional(),
    serviceAccountName: resourceName.optional(),
    nats: nats.optional(),
    logLevel: z.enum(['debug', 'info', 'warn', 'error']).default('info'),
    ingress: z
      .strictObject({
        host: z.string().min(1),
        className: z.string().min(1).optional(),
        tlsSecret: resourceName.optional(),
      })
      .optional(),
    coordinator: z.strictObject(pods).prefault({}),
    worker: z.strictObject({ ...pods, slots: z.int().min(1).default(1) }).prefault({}),
  })
  .superRefine(({ parallelism, maxParallelism }, context) => {
    if (maxParallelism === undefined || parallelism <= maxParallelism) return
    const message = `is ${parallelism}; it must be at most maxParallelism, which is ${maxParallelism}`
    context.addIssue({ code: 'custom', path: ['parallelism'], message, input: parallelism })
  })

export const streamJob = z.strictObject({
  apiVersion: z.literal(API_VERSION),
  kind: z.literal('StreamJob'),
  metadata,
  spec,
  /** The operator's; a manifest that was read from a cluster has one. */
  status: z.unknown().optional(),
})

/** With its defaults; durations in ms. */
export type StreamJob = z.output<typeof streamJob>
