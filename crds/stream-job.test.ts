import { describe, expect, it } from 'vitest'
import { laterFields, laterFieldsOf } from './not-yet.ts'
import { pathText, readDocument } from './problems.ts'
import { savepoint } from './savepoint.ts'
import { streamJob } from './stream-job.ts'

const program = { module: { path: 'job.ts' } }

const withSpec = (spec: Readonly<Record<string, unknown>>) => ({
  apiVersion: 'millrace.dev/v1alpha1',
  kind: 'StreamJob',
  metadata: { name: 'flights' },
  spec: { program, ...spec },
})

function specOf(spec: Readonly<Record<string, unknown>>) {
  const read = readDocument(streamJob, withSpec(spec))
  if (read.kind !== 'fits') throw new Error(read.problems.map(({ message }) => message).join('\n'))
  return read.object.spec
}

function problems(document: unknown): string[] {
  const read = readDocument(streamJob, document)
  return read.kind === 'fits' ? [] : read.problems.map(({ message }) => message)
}

describe('a StreamJob', () => {
  it('needs a program only, and leaves to the job what the job can set', () => {
    expect(specOf({})).toEqual({
      state: 'running',
      program: { module: { path: 'job.ts' }, args: {} },
      parallelism: 1,
      upgradeMode: 'last-state',
      restoreMode: 'no-claim',
      allowNonRestoredState: false,
      checkpointing: {},
      stateBackend: { type: 'heap' },
      rollback: { enabled: true, progressDeadline: 300_000 },
      deletion: { savepoint: false, deadline: 45_000 },
      logLevel: 'info',
      coordinator: {},
      worker: { slots: 1 },
    })
  })

  it('takes every field, durations as they are written', () => {
    const spec = specOf({
      state: 'suspended',
      program: {
        module: { configMap: { name: 'flight-delays', key: 'job.ts' } },
        image: 'example/flights:1',
        args: { limit: 3, days: ['mon'] },
      },
      parallelism: 4,
      maxParallelism: 128,
      upgradeMode: 'savepoint',
      restoreFrom: 'latest',
      restoreNonce: 1,
      restoreMode: 'no-claim',
      allowNonRestoredState: true,
      restartNonce: 1,
      savepointNonce: 2,
      checkpointNonce: 3,
      checkpointing: {
        interval: '10s',
        mode: 'at-least-once',
        timeout: '10m',
        minPause: '0s',
        maxConcurrent: 1,
        tolerableFailures: 'unlimited',
        retained: 3,
        onCancellation: 'delete',
      },
      stateBackend: { type: 'heap' },
      storage: {
        checkpoints: 's3://bucket/prefix',
        s3: { endpoint: 'http://s3:9000', region: 'eu', forcePathStyle: true, credentialsSecret: 's3' },
      },
      restartStrategy: { type: 'exponential-delay', initialDelay: '500ms', jitter: 0 },
      failoverStrategy: 'full',
      savepoints: { every: '6h', keep: { count: 5, age: '7d' } },
      rollback: { enabled: false, progressDeadline: '1m' },
      deletion: { savepoint: true, deadline: '1s' },
      ttlAfterFinished: '1d',
      serviceAccountName: 'flights',
      nats: { url: 'nats://nats:4222', credentialsSecret: 'nats', tls: true },
      logLevel: 'debug',
      ingress: { host: 'flights.example.com' },
      coordinator: { resources: { requests: { cpu: '500m' } }, podTemplate: { spec: { nodeSelector: { a: 'b' } } } },
      worker: { slots: 2, resources: { limits: { memory: '512Mi', cpu: 2 } } },
    })
    expect(spec).toMatchObject({
      checkpointing: { interval: 10_000, timeout: 600_000, minPause: 0 },
      restartStrategy: {
        type: 'exponential-delay',
        initialDelay: 500,
        maxDelay: 60_000,
        multiplier: 1.5,
        resetAfter: 600_000,
        jitter: 0,
      },
      savepoints: { every: 21_600_000, keep: { count: 5, age: 604_800_000 } },
      ttlAfterFinished: 86_400_000,
    })
  })

  it.each([
    [{ type: 'none' }, { type: 'none' }],
    [
      { type: 'fixed-delay', attempts: 3 },
      { type: 'fixed-delay', attempts: 3, delay: 1_000 },
    ],
    [
      { type: 'failure-rate', failuresPerInterval: 2, interval: '5m', delay: '0s' },
      { type: 'failure-rate', failuresPerInterval: 2, interval: 300_000, delay: 0 },
    ],
  ])('has the restart strategy $type', (written, read) => {
    expect(specOf({ restartStrategy: written }).restartStrategy).toEqual(read)
  })

  it('that was read from a cluster fits too', () => {
    const document = withSpec({})
    const metadata = { ...document.metadata, namespace: 'default', uid: 'x', labels: { a: 'b' } }
    expect(problems({ ...document, metadata, status: { phase: 'RUNNING' } })).toEqual([])
  })
})

describe('a StreamJob is refused with the field and what it must be:', () => {
  it.each([
    [{ paralellism: 2 }, 'spec.paralellism: there is no such field'],
    [{ checkpointing: { intervall: '1s' } }, 'spec.checkpointing.intervall: there is no such field'],
    [{ worker: { slot: 1 } }, 'spec.worker.slot: there is no such field'],
    [{ program: {} }, 'spec.program.module is missing; it must be an object'],
    [{ program: { module: {} } }, 'spec.program.module must have either configMap or path, and not both'],
    [
      { program: { module: { path: 'a', configMap: { name: 'a', key: 'b' } } } },
      'spec.program.module must have either configMap or path, and not both',
    ],
    [
      { program: { module: { configMap: { name: 'a' } } } },
      'spec.program.module.configMap.key is missing; it must be a text',
    ],
    [{ program: { ...program, args: [1] } }, 'spec.program.args is [1]; it must be an object'],
    [{ state: 'stopped' }, 'spec.state is "stopped"; it must be running or suspended'],
    [{ parallelism: 0 }, 'spec.parallelism is 0; it must be at least 1'],
    [{ parallelism: 1.5 }, 'spec.parallelism is 1.5; it must be a whole number'],
    [{ parallelism: '2' }, 'spec.parallelism is "2"; it must be a number'],
    [{ parallelism: 5, maxParallelism: 4 }, 'spec.parallelism is 5; it must be at most maxParallelism, which is 4'],
    [{ maxParallelism: 40_000 }, 'spec.maxParallelism is 40000; it must be at most 32768'],
    [{ checkpointing: null }, 'spec.checkpointing is null; it must be an object'],
    [
      { checkpointing: { mode: 'exact' } },
      'spec.checkpointing.mode is "exact"; it must be exactly-once or at-least-once',
    ],
    [{ checkpointing: { maxConcurrent: 0 } }, 'spec.checkpointing.maxConcurrent is 0; it must be 1'],
    [
      { checkpointing: { tolerableFailures: 'many' } },
      'spec.checkpointing.tolerableFailures must be a whole number from 0, or unlimited',
    ],
    [
      { restartStrategy: { type: 'never' } },
      'spec.restartStrategy.type is "never"; it must be none, fixed-delay, failure-rate or exponential-delay',
    ],
    [{ restartStrategy: { type: 'fixed-delay' } }, 'spec.restartStrategy.attempts is missing; it must be a number'],
    [{ restartStrategy: { type: 'none', attempts: 3 } }, 'spec.restartStrategy.attempts: there is no such field'],
    [{ allowNonRestoredState: 'yes' }, 'spec.allowNonRestoredState is "yes"; it must be true or false'],
    [
      { worker: { resources: { requests: { cpu: 'much' } } } },
      'spec.worker.resources.requests.cpu must be an amount, such as 500m, 2 or 512Mi',
    ],
  ])('%j', (spec, message) => {
    expect(problems(withSpec(spec))).toEqual([message])
  })

  it.each(['10', '10 s', '-1s', '1.5s', '10S', 's', '1h30m', ''])('the duration %j', (interval) => {
    expect(problems(withSpec({ checkpointing: { interval } }))).toEqual([
      `spec.checkpointing.interval is ${JSON.stringify(interval)}; a duration is a whole number and ms, s, m, h or d, such as 10s`,
    ])
  })

  it.each(['1e999999', '9'.repeat(31), '1e', '-1', '1 Gi', '1gi', '0x10', ''])('the amount %j', (memory) => {
    expect(problems(withSpec({ worker: { resources: { limits: { memory } } } }))).toEqual([
      'spec.worker.resources.limits.memory must be an amount, such as 500m, 2 or 512Mi',
    ])
  })

  it('a duration that is nothing where something is meant, or that no number holds', () => {
    expect(problems(withSpec({ checkpointing: { interval: '0s' } }))).toEqual([
      'spec.checkpointing.interval must be longer than nothing',
    ])
    expect(problems(withSpec({ checkpointing: { minPause: '999999999999999d' } }))).toEqual([
      'spec.checkpointing.minPause is too long',
    ])
  })

  it('every place at once', () => {
    expect(problems(withSpec({ parallelism: 0, foo: 1, logLevel: 'loud' }))).toHaveLength(3)
  })
})

/** Each field that comes later means one of these at least. */
const anyLaterValue = ['auto', '500ms', 2, 'rocksdb', { volume: { size: '10Gi' } }, 'claim', 'individual', 'none', 's3']

describe('a field whose engine part comes later', () => {
  it.each([
    [{ checkpointing: { unaligned: 'auto' } }, 'spec.checkpointing.unaligned'],
    [{ checkpointing: { alignedTimeout: '500ms' } }, 'spec.checkpointing.alignedTimeout'],
    [{ checkpointing: { maxConcurrent: 2 } }, 'spec.checkpointing.maxConcurrent'],
    [{ stateBackend: { type: 'rocksdb' } }, 'spec.stateBackend.type'],
    [{ localRecovery: { volume: { size: '10Gi' } } }, 'spec.localRecovery'],
    [{ restoreMode: 'claim' }, 'spec.restoreMode'],
    [{ failoverStrategy: 'individual' }, 'spec.failoverStrategy'],
    [{ failoverStrategy: 'none' }, 'spec.failoverStrategy'],
  ])('is known, and not in the schema: %j', (spec, path) => {
    const document = withSpec(spec)
    expect(laterFieldsOf(document).map((field) => pathText(field.path))).toEqual([path])
    expect(problems(document)).not.toEqual([])
  })

  it.each(laterFields.map((field) => ({ field, path: pathText(field.path) })))(
    'is each of the list, none left out: $path',
    ({ field: { path, instead, values = () => true } }) => {
      const meant = anyLaterValue.filter((value) => values(value))
      expect(meant).not.toEqual([])
      expect(path[0]).toBe('spec')
      for (const value of meant) {
        const spec = path.slice(1).reduceRight<unknown>((inner, name) => ({ [name]: inner }), value) as Record<
          string,
          unknown
        >
        const document = withSpec(spec)
        expect(laterFieldsOf(document)).toEqual([{ path, instead, value }])
        expect(problems(document).join()).toContain(pathText(path))
      }
    },
  )

  it('is none of those that are there', () => {
    const spec = {
      checkpointing: { maxConcurrent: 1 },
      stateBackend: { type: 'heap' },
      restoreMode: 'no-claim',
      failoverStrategy: 'region',
    }
    expect(laterFieldsOf(withSpec(spec))).toEqual([])
    expect([undefined, null, 'text', []].flatMap(laterFieldsOf)).toEqual([])
  })
})

describe('a Savepoint', () => {
  const document = { apiVersion: 'millrace.dev/v1alpha1', kind: 'Savepoint', metadata: { name: 'before-upgrade' } }

  it('names a job, and is kept unless it says otherwise', () => {
    const read = readDocument(savepoint, { ...document, spec: { job: { name: 'flights' } } })
    expect(read).toMatchObject({ kind: 'fits', object: { spec: { job: { name: 'flights' }, disposal: 'retain' } } })
  })

  const withPath = (path: string) => readDocument(savepoint, { ...document, spec: { job: { name: 'flights' }, path } })

  it('may name the folder of one that exists, as status shows it', () => {
    for (const path of [
      's3://bucket/jobs/n/job/uid/objects/savepoint-7',
      'file:///copies/mine',
      '/mnt/jobs/savepoint-7',
    ])
      expect(withPath(path)).toMatchObject({ kind: 'fits', object: { spec: { path } } })
  })

  it.each([
    'savepoint-7',
    'latest',
    's3://bucket',
    's3://bucket/',
    's3:///key',
    'https://bucket/key',
    '/',
    '/a b',
    ' /a',
  ])('is refused with the path %j', (path) => {
    expect(withPath(path)).toMatchObject({
      problems: [
        {
          message: `spec.path is ${JSON.stringify(path)}; it must be the folder of a savepoint, such as s3://bucket/prefix/savepoint-7`,
        },
      ],
    })
  })

  it('is refused without a job', () => {
    expect(readDocument(savepoint, { ...document, spec: { disposal: 'keep' } })).toMatchObject({
      problems: [
        { message: 'spec.job is missing; it must be an object' },
        { message: 'spec.disposal is "keep"; it must be retain or delete' },
      ],
    })
  })
})
