// The kind StreamJob: a job, where its code is, and how it is run.
//
// Fields that the job's own code can set too (checkpointing, restartStrategy, failoverStrategy, maxParallelism) have no default here:
// left out, the job's env.config decides, whose defaults are those that the descriptions give. What is here wins over env.config.
//
// Descriptions are what `kubectl explain` shows. A refinement's rule in CEL, for the API server, stands in its meta data.

import { z } from 'zod'
import { duration, positiveDuration, quantity } from './quantities.ts'
import { API_VERSION, celRule, imageName, logLevel, metadata, nonce, path, resourceName } from './resource.ts'

const module = z
  .strictObject({
    configMap: z
      .strictObject({
        name: resourceName.describe('A ConfigMap of the same namespace; all its keys are files side by side.'),
        key: z
          .string()
          .max(253)
          .regex(/^[-._a-zA-Z0-9]+$/, {
            error: ({ input }) => `is ${JSON.stringify(input)}; a key of a ConfigMap is letters, digits, ., - and _`,
          })
          .describe('The job file among them.'),
      })
      .optional()
      .describe('The code is in a ConfigMap. It is copied when it is taken up: a running job never meets edited code.'),
    path: path.optional().describe('The code is a file of the image.'),
  })
  .refine(({ configMap, path: file }) => (configMap === undefined) !== (file === undefined), {
    error: 'must have either configMap or path, and not both',
  })
  .meta({
    description: 'Where the job module is: exactly one of configMap and path.',
    ...celRule('has(self.configMap) != has(self.path)', 'must have either configMap or path, and not both'),
  })

const program = z
  .strictObject({
    module,
    image: imageName
      .optional()
      .describe("Holds the runtime, and the code if module.path names it. Default: the chart's."),
    args: z.record(z.string(), z.unknown()).prefault({}).describe("Of the job; checked by the job's own schema."),
  })
  .describe('What is run.')

const checkpointing = z
  .strictObject({
    interval: positiveDuration.optional().describe("From one trigger to the next. Default: the job's, 10s."),
    mode: z
      .enum(['exactly-once', 'at-least-once'])
      .optional()
      .describe(
        "Default: the job's, exactly-once. at-least-once: no alignment; after a failure records may count twice.",
      ),
    timeout: positiveDuration
      .optional()
      .describe("One that is not complete by then is aborted. Default: the job's, 10m."),
    minPause: duration
      .optional()
      .describe("Between the end of one snapshot and the next trigger. Default: the job's, 0s."),
    maxConcurrent: z.literal(1).optional().describe('Pending at one moment.'),
    tolerableFailures: z
      .union([z.int().nonnegative(), z.literal('unlimited')], { error: 'must be a whole number from 0, or unlimited' })
      .meta({ 'x-kubernetes-int-or-string': true, pattern: '^unlimited$', minimum: 0 })
      .optional()
      .describe(
        "Failed ones in a row that the job bears: a whole number, or unlimited. Default: the job's, unlimited.",
      ),
    retained: z.int().min(1).optional().describe("Completed ones that are kept. Default: the job's, 3."),
    onCancellation: z
      .enum(['retain', 'delete'])
      .optional()
      .describe("What becomes of them when the job is cancelled or deleted. Default: the job's, retain."),
  })
  .prefault({})
  .describe('Checkpoints. What is left out is as the job says in env.config.')

const delay = duration.prefault('1s').describe('From a failure to the restart. Default 1s.')

const restartStrategy = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('none') }),
    z.strictObject({
      type: z.literal('fixed-delay'),
      attempts: z.int().nonnegative().describe('Restarts before the job fails.'),
      delay,
    }),
    z.strictObject({
      type: z.literal('failure-rate'),
      failuresPerInterval: z.int().nonnegative().describe('More than these within the interval fail the job.'),
      interval: positiveDuration.describe('Over which failures are counted.'),
      delay,
    }),
    z.strictObject({
      type: z.literal('exponential-delay'),
      initialDelay: duration.prefault('100ms').describe('Before the first restart. Default 100ms.'),
      maxDelay: duration.prefault('1m').describe('It grows up to this. Default 1m.'),
      multiplier: z.number().min(1).default(1.5).describe('By which it grows. Default 1.5.'),
      resetAfter: duration
        .prefault('10m')
        .describe('Running so long without a failure makes the next delay the initial one. Default 10m.'),
      jitter: z.number().nonnegative().default(0.1).describe('Share of the delay by which it varies. Default 0.1.'),
    }),
  ])
  .optional()
  .describe("When a failed job is restarted, and when it is given up. Default: the job's, exponential-delay.")

/** The operator's config has it too, beneath every spec; as have `nats` and `resources`. */
export const storage = z.strictObject({
  checkpoints: path
    .optional()
    .describe(
      "s3://bucket/prefix; the job's own folder is made below it: <namespace>/<name>/<uid>. Default: the chart's.",
    ),
  savepoints: path
    .optional()
    .describe(
      "s3://bucket/prefix, of the same server; the job's savepoints are written below it, in <namespace>/<name>/<uid>. Default: beside the checkpoints.",
    ),
  s3: z
    .strictObject({
      endpoint: z
        .string()
        .min(1)
        .optional()
        .describe('http://host:port or https://host:port. Default: AWS by its region.'),
      region: z.string().min(1).optional(),
      forcePathStyle: z.boolean().optional().describe('The bucket is part of the path, not of the host name.'),
      credentialsSecret: resourceName
        .optional()
        .describe(
          'A Secret of the same namespace with the keys access-key-id and secret-access-key. Left out: the identity of serviceAccountName.',
        ),
    })
    .optional(),
})

export const nats = z.strictObject({
  url: z.string().min(1).describe('nats://host:port or tls://host:port; several are separated by commas.'),
  credentialsSecret: resourceName
    .optional()
    .describe('A Secret of the same namespace whose key nats.creds holds a credentials file (JWT and seed of a user).'),
  tls: z.boolean().default(false).describe('The server is met by TLS, its certificate checked.'),
})

export const resources = z.strictObject({
  requests: z.record(z.string(), quantity).optional(),
  limits: z.record(z.string(), quantity).optional(),
})

const podTemplate = z
  .record(z.string(), z.unknown())
  .optional()
  .describe(
    'A PodTemplateSpec that is merged over what the operator makes, lists by name, and applied strictly. The container is called as the component: coordinator or worker. In its texts {start} is the number of the start.',
  )

const pods = {
  resources: resources.optional().describe("Of each pod's container. Default: the chart's."),
  podTemplate,
}

const hostName = z
  .string()
  .max(253)
  .regex(/^([*][.])?[a-z0-9]([a-z0-9-]*[a-z0-9])?([.][a-z0-9]([a-z0-9-]*[a-z0-9])?)*$/, {
    error: ({ input }) =>
      `is ${JSON.stringify(input)}; a host is small letters, digits, - and ., such as job.example.com, without a scheme`,
  })

const spec = z
  .strictObject({
    state: z
      .enum(['running', 'suspended'])
      .default('running')
      .describe('suspended: the job ends in the way of upgradeMode, and goes on from there when it is running again.'),
    program,
    /** Has a default, since the scale subresource needs a number to read. */
    parallelism: z
      .int()
      .min(1)
      // Without maxParallelism the job's code decides; no job has more key groups than this.
      .max(32_768)
      .default(1)
      .describe('Subtasks of each operator that does not set its own. Changed alone, the job is rescaled in place.'),
    maxParallelism: z
      .int()
      .min(1)
      .max(32_768)
      .optional()
      .describe("Number of key groups; cannot change while there is state. Default: the job's, 128."),
    upgradeMode: z
      .enum(['savepoint', 'last-state', 'stateless'])
      .default('last-state')
      .describe(
        'How the job is ended for an upgrade: with a savepoint, at its newest checkpoint, or to begin from nothing.',
      ),
    restoreFrom: path
      .optional()
      .describe("Of the first start: a snapshot's address, such as s3://bucket/prefix/savepoint-7, or latest."),
    restoreNonce: nonce.optional().describe('Raised, the job starts again from restoreFrom.'),
    restoreMode: z
      .enum(['no-claim'])
      .default('no-claim')
      .describe('Of restoreFrom. no-claim: it stays the property of whoever made it.'),
    allowNonRestoredState: z
      .boolean()
      .default(false)
      .describe('State whose operator is gone from the job may be dropped.'),
    restartNonce: nonce.optional().describe('Raised, the job starts again from where it is; also one that has failed.'),
    savepointNonce: nonce.optional().describe('Raised, one savepoint is taken.'),
    checkpointNonce: nonce.optional().describe('Raised, one checkpoint is taken.'),
    checkpointing,
    stateBackend: z
      .strictObject({ type: z.enum(['heap']).default('heap').describe('heap: in memory, and in checkpoints.') })
      .prefault({})
      .describe('Where keyed state is while the job runs.'),
    storage: storage.optional().describe("Where state is kept. Default: the chart's."),
    restartStrategy,
    failoverStrategy: z
      .enum(['region', 'full'])
      .optional()
      .describe(
        "What restarts with a failed subtask: whatever is connected to it, or all. Default: the job's, region.",
      ),
    savepoints: z
      .strictObject({
        every: positiveDuration.describe('From one to the next.'),
        keep: z
          .strictObject({
            count: z.int().min(1).optional().describe('The newest that are kept.'),
            age: positiveDuration.optional().describe('Older ones are taken away.'),
          })
          .prefault({})
          .describe('Of those that were made by this schedule. Default: all.'),
      })
      .optional()
      .describe('Periodic savepoints, each a Savepoint object.'),
    rollback: z
      .strictObject({
        enabled: z.boolean().default(true),
        progressDeadline: positiveDuration
          .prefault('5m')
          .describe('So long may an upgrade be without progress; an outage of storage, NATS or nodes does not count.'),
      })
      .prefault({})
      .describe('An upgrade that does not become stable goes back to the revision before.'),
    deletion: z
      .strictObject({
        savepoint: z.boolean().default(false).describe('A savepoint is taken before the job goes.'),
        deadline: positiveDuration.prefault('45s').describe('Then it goes without what could not be done.'),
      })
      .prefault({})
      .describe('What is done when this object is deleted.'),
    ttlAfterFinished: duration.optional().describe('So long after its end this object is deleted. Default: never.'),
    serviceAccountName: resourceName
      .optional()
      .describe('Of the pods, for a workload identity. Default: an account of their own that can do nothing.'),
    nats: nats.optional().describe("The NATS server that records travel over. Default: the chart's."),
    logLevel: logLevel.default('info').describe('Of coordinator and workers.'),
    ingress: z
      .strictObject({
        host: hostName,
        className: resourceName.optional(),
        tlsSecret: resourceName.optional().describe('A Secret of the same namespace with the certificate of the host.'),
      })
      .optional()
      .describe("Shows the coordinator's REST at a host name."),
    coordinator: z.strictObject(pods).prefault({}).describe('The one coordinator pod.'),
    worker: z
      .strictObject({
        ...pods,
        slots: z
          .int()
          .min(1)
          .max(256)
          .default(1)
          .describe('Of each worker pod: how many subtasks of an operator it runs.'),
      })
      .prefault({})
      .describe('The worker pods.'),
  })
  .superRefine(({ parallelism, maxParallelism }, context) => {
    if (maxParallelism === undefined || parallelism <= maxParallelism) return
    const message = `is ${parallelism}; it must be at most maxParallelism, which is ${maxParallelism}`
    context.addIssue({ code: 'custom', path: ['parallelism'], message, input: parallelism })
  })
  .meta({
    description: 'What is wanted.',
    // kubectl scale passes no webhook.
    ...celRule(
      '!has(self.maxParallelism) || self.parallelism <= self.maxParallelism',
      'parallelism must be at most maxParallelism',
    ),
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
