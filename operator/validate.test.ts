import { describe, expect, it } from 'vitest'
import { parseStorageAddress } from '../runtime/storage/paths.ts'
import type { EffectiveSpec, Observed } from './contract.ts'
import { STORAGE_ADDRESS, validate } from './validate.ts'
import type { SpecDefaults } from './validate.ts'

const defaults: SpecDefaults = {
  image: 'millrace:1',
  storage: { checkpoints: 's3://chart/jobs', s3: { endpoint: 'http://s3:7070', credentialsSecret: 'chart-s3' } },
  nats: { url: 'nats://nats:4222', tls: false },
  workerResources: { requests: { memory: '256Mi' } },
}
const program = { module: { configMap: { name: 'code', key: 'job.ts' } } }
const documentOf = (spec: Readonly<Record<string, unknown>>) => ({
  apiVersion: 'millrace.dev/v1alpha1',
  kind: 'StreamJob',
  metadata: { name: 'flights' },
  spec: { program, ...spec },
})
function read(
  spec: Readonly<Record<string, unknown>>,
  more: { defaults?: SpecDefaults; running?: object } = {},
): Observed['spec'] {
  const { running } = more
  return validate({
    document: documentOf(spec),
    defaults: more.defaults ?? defaults,
    running: running === undefined ? undefined : specOf(running),
  })
}
function specOf(spec: object): EffectiveSpec {
  const answer = read({ ...spec })
  if (!answer.fits) throw new Error(answer.problems.join('\n'))
  return answer.spec
}
function problems(spec: Readonly<Record<string, unknown>>, more: Parameters<typeof read>[1] = {}) {
  const answer = read(spec, more)
  return answer.fits ? [] : answer.problems
}

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = { a: value }
  return value
}

describe('the defaults of the chart', () => {
  it('lie beneath a spec that names none of it', () => {
    expect(read({})).toMatchObject({
      fits: true,
      image: 'millrace:1',
      spec: {
        storage: defaults.storage,
        nats: defaults.nats,
        worker: { slots: 1, resources: defaults.workerResources },
        coordinator: {},
      },
    })
  })

  it('are not mixed into a group that the spec has: no credentials of the chart for an address of the user', () => {
    const own = { storage: { checkpoints: 's3://own/jobs', s3: { credentialsSecret: 'mine' } } }
    expect(specOf(own).storage).toEqual(own.storage)
    expect(problems({ storage: { checkpoints: 's3://own/jobs' } })).toEqual([
      'spec.storage.s3.credentialsSecret is missing; name a Secret with the credentials, or set spec.serviceAccountName to an account with a workload identity.',
    ])
  })

  it('hold for a spec that says only where its savepoints go; a spec with an address of its own has no place of the chart', () => {
    const chart = { ...defaults, storage: { ...defaults.storage, savepoints: 's3://chart/savepoints' } }
    const storageOf = (own: Readonly<Record<string, unknown>>) => {
      const answer = read(own, { defaults: chart })
      return answer.fits ? answer.spec.storage : answer.problems
    }
    expect(storageOf({})).toEqual(chart.storage)
    expect(storageOf({ storage: { savepoints: 's3://own/kept' } })).toEqual({
      ...defaults.storage,
      savepoints: 's3://own/kept',
    })
    const own = { checkpoints: 's3://own/jobs', s3: { credentialsSecret: 'mine' } }
    expect(storageOf({ storage: own })).toEqual(own)
  })

  it('are no part of the hash', () => {
    const hash = (more: object) => {
      const answer = read({}, { defaults: { ...defaults, ...more } })
      return answer.fits ? answer.hash : undefined
    }
    expect(hash({})).toMatch(/^[0-9a-f]{64}$/)
    expect(hash({ image: 'millrace:2', storage: { checkpoints: 'file:///x' } })).toBe(hash({}))
  })

  it('that the chart has not are asked for by name, all at once', () => {
    expect(problems({}, { defaults: {} })).toEqual([
      'spec.program.image is missing, and the chart has no default; name the image that holds the runtime.',
      'spec.storage.checkpoints is missing, and the chart has no default; say where the state is kept, such as s3://bucket/prefix.',
      'spec.nats is missing, and the chart has no default; give the url of a NATS server, such as nats://nats:4222.',
    ])
  })
})

describe('a spec is refused with field, reason and remedy:', () => {
  it.each<[Readonly<Record<string, unknown>>, string]>([
    [{ parallelism: 0 }, 'spec.parallelism is 0; it must be at least 1.'],
    [{ parallelism: 5, maxParallelism: 4 }, 'spec.parallelism is 5; it must be at most maxParallelism, which is 4.'],
    [{ parallelism: 40_000 }, 'spec.parallelism is 40000; it must be at most 32768.'],
    [{ worker: { slots: 300 } }, 'spec.worker.slots is 300; it must be at most 256.'],
    [{ stateBackend: { type: 'rocksdb' } }, 'spec.stateBackend.type is not there yet; use heap.'],
    [{ localRecovery: {} }, 'spec.localRecovery is not there yet; leave it out.'],
    [
      { program: { module: { path: 'job.ts' } } },
      'spec.program.module.path is "job.ts"; on a cluster it is a file of the image: begin it with /.',
    ],
    [
      { storage: { checkpoints: 's3://x/y', s3: { credentialsSecret: 's' } } },
      'spec.storage.checkpoints is "s3://x/y"; it must be s3://bucket/prefix (3 to 63 small letters, digits, . and - in the bucket, the first and the last no . or -; letters, digits and ._=- in the prefix) or file:///folder.',
    ],
    [
      { storage: { savepoints: 's3://x/y' } },
      'spec.storage.savepoints is "s3://x/y"; it must be s3://bucket/prefix (3 to 63 small letters, digits, . and - in the bucket, the first and the last no . or -; letters, digits and ._=- in the prefix) or file:///folder.',
    ],
    [
      { storage: { checkpoints: 'file:///data', savepoints: 's3://kept/here' } },
      'spec.storage.s3.credentialsSecret is missing; name a Secret with the credentials, or set spec.serviceAccountName to an account with a workload identity.',
    ],
    [
      { storage: { checkpoints: '/data' } },
      'spec.storage.checkpoints is "/data"; it must be s3://bucket/prefix (3 to 63 small letters, digits, . and - in the bucket, the first and the last no . or -; letters, digits and ._=- in the prefix) or file:///folder.',
    ],
    [
      { storage: { checkpoints: 's3://bucket/p', s3: { endpoint: 'http://user:secret@s3', credentialsSecret: 's' } } },
      'spec.storage.s3.endpoint must be http://host:port or https://host:port without user and password; those stand in credentialsSecret.',
    ],
    [
      { nats: { url: 'nats://me:secret@nats' } },
      'spec.nats.url must be nats://host:port or tls://host:port without user and password; those stand in credentialsSecret.',
    ],
    [
      { restoreNonce: 1 },
      'spec.restoreNonce asks to start from spec.restoreFrom, which is missing; name a snapshot, or latest.',
    ],
    [
      { restoreFrom: 'chk-7' },
      'spec.restoreFrom is "chk-7"; it must be latest or the folder of a snapshot, such as s3://bucket/prefix/savepoint-7.',
    ],
    [
      { worker: { resources: { requests: { memory: '1Gi' }, limits: { memory: '512Mi' } } } },
      'spec.worker.resources.requests.memory is more than limits.memory; no pod can be made of that.',
    ],
    [
      { coordinator: { resources: { requests: { cpu: 1 }, limits: { cpu: '500m' } } } },
      'spec.coordinator.resources.requests.cpu is more than limits.cpu; no pod can be made of that.',
    ],
    [
      { nats: { url: 'nats://a:4222,http://b:4222' } },
      'spec.nats.url must be nats://host:port or tls://host:port without user and password; those stand in credentialsSecret.',
    ],
    [
      { worker: { resources: { limits: { cpus: 2 } } } },
      'spec.worker.resources.limits.cpus: a container has no such resource; it has cpu, memory, ephemeral-storage, hugepages-<size>, and those with a domain, such as nvidia.com/gpu.',
    ],
    [
      { program: { ...program, image: 'millrace: 1' } },
      `spec.program.image is "millrace: 1"; an image's name is not empty and has no spaces.`,
    ],
    [
      { program: { module: { configMap: { name: 'code', key: 'src/job.ts' } } } },
      'spec.program.module.configMap.key is "src/job.ts"; a key of a ConfigMap is letters, digits, ., - and _.',
    ],
    [
      { ingress: { host: 'https://jobs.example.com' } },
      'spec.ingress.host is "https://jobs.example.com"; a host is small letters, digits, - and ., such as job.example.com, without a scheme.',
    ],
    [
      { program: { ...program, args: { rows: 'x'.repeat(900 * 1024) } } },
      "spec.program.args has 921611 bytes; it must have at most 131072. Put what is large into a file of the image or of the code's ConfigMap.",
    ],
    [
      { program: { ...program, args: { deep: nested(5_000) } } },
      'spec.program.args is nested more than 100 levels deep; make it flatter.',
    ],
    [
      { worker: { podTemplate: { spec: { affinity: nested(5_000) } } } },
      'spec.worker.podTemplate is nested more than 100 levels deep; make it flatter.',
    ],
  ])('%#', (spec, problem) => {
    expect(problems(spec)).toEqual([problem])
  })

  it('at the borders everything is taken', () => {
    const args = { rows: 'x'.repeat(128 * 1024 - 11) }
    const resources = {
      requests: { cpu: '1m', 'hugepages-2Mi': '4Mi', 'nvidia.com/gpu': 1, 'ephemeral-storage': '1E' },
    }
    const ingress = { host: '*.jobs.example.com', className: 'nginx' }
    const spec = { program: { ...program, args }, worker: { slots: 256, resources }, parallelism: 32_768, ingress }
    expect(problems(spec)).toEqual([])
    expect(problems({ program: { ...program, args: { deep: nested(99) } } })).toEqual([])
    expect(problems({ nats: { url: 'nats://a:4222,tls://b:4222' } })).toEqual([])
  })

  it.each([
    's3://Bucket/jobs',
    's3://b',
    's3://bucket/../jobs',
    's3://bucket//jobs',
    's3://bucket/my jobs',
    'file://jobs',
  ])('a store that no process of the job could open: %s', (checkpoints) => {
    const storage = { checkpoints, s3: { credentialsSecret: 's3' } }
    expect(problems({ storage })).toEqual([expect.stringContaining(`spec.storage.checkpoints is "${checkpoints}"`)])
  })

  it('of addresses what the processes of a job refuse, and nothing else', () => {
    const segments = [
      '',
      '/',
      '/jobs',
      '/jobs/',
      '/a/b.c=d_e-f',
      '//',
      '/a//b',
      '/.a',
      '/../a',
      '/a b',
      `/${'a'.repeat(129)}`,
    ]
    const buckets = [
      's3://bucket',
      's3://b',
      's3://B-1',
      's3://my_bucket',
      's3://a.b-c',
      'file://',
      'file:',
      'http://host',
      '',
    ]
    const isRead = (address: string): boolean => {
      try {
        parseStorageAddress(address)
        return true
      } catch {
        return false
      }
    }
    for (const address of buckets.flatMap((bucket) => segments.map((segment) => `${bucket}${segment}`)))
      expect([address, STORAGE_ADDRESS.test(address)]).toEqual([address, isRead(address)])
  })

  it('a name that is too long for a folder in the store', () => {
    const named = (name: string) =>
      validate({ document: { ...documentOf({}), metadata: { name } }, defaults, running: undefined })
    expect(named('a'.repeat(128)).fits).toBe(true)
    expect(named('a'.repeat(129))).toEqual({
      fits: false,
      problems: [
        "metadata.name is 129 characters long; it must be at most 128, as the job's folder in the store is called by it. Make a StreamJob with a shorter name.",
      ],
    })
  })

  it('a snapshot may be named as status shows it, also on a volume', () => {
    for (const restoreFrom of ['latest', 's3://b/p/savepoint-7', 'file:///jobs/chk-7', '/jobs/chk-7'])
      expect(problems({ restoreFrom })).toEqual([])
    for (const restoreFrom of ['s3://b', '/', 'latest ']) expect(problems({ restoreFrom })).toHaveLength(1)
  })

  it('amounts are compared as they are, however they are written', () => {
    const resources = { requests: { cpu: '700m', memory: '1024Mi' }, limits: { cpu: '0.7', memory: '1Gi' } }
    expect(problems({ worker: { resources } })).toEqual([])
  })

  it('a secret in an address is never repeated', () => {
    const spec = {
      nats: { url: 'nats://me:hunter2@nats' },
      storage: { checkpoints: 's3://bucket', s3: { endpoint: 'http://a:hunter2@b', credentialsSecret: 'x' } },
    }
    expect(problems(spec)).toHaveLength(2)
    expect(problems(spec).join()).not.toContain('hunter2')
  })
})

describe('a change that the state does not allow', () => {
  it('is another place of the state', () => {
    const own = (checkpoints: string) => ({ storage: { checkpoints } })
    expect(problems(own('file:///b'), { running: own('file:///a') })).toEqual([
      "spec.storage.checkpoints changes from file:///a to file:///b, where none of the job's state is; set it back, or take a savepoint and make a new StreamJob with restoreFrom.",
    ])
    expect(problems(own('file:///a/'), { running: own('file:///a') })).toEqual([])
  })

  it("is not another default of the chart: its state stays where it is, and a new job's is at the new place", () => {
    const more = { defaults: { ...defaults, storage: { checkpoints: 'file:///new' } } }
    const at = (answer: Observed['spec']) => answer.fits && answer.spec.storage?.checkpoints
    expect(at(read({}, { ...more, running: { storage: { checkpoints: 'file:///old' } } }))).toBe('file:///old')
    expect(at(read({}, more))).toBe('file:///new')
    // At the same place its endpoint and credentials are the chart's.
    const elsewhere = {
      ...defaults,
      storage: { ...defaults.storage, s3: { endpoint: 'http://new:7070', credentialsSecret: 'new' } },
    }
    const answer = read({}, { defaults: elsewhere, running: {} })
    expect(answer.fits && answer.spec.storage?.s3?.endpoint).toBe('http://new:7070')
  })

  it('is another number of key groups, unless the state is given up', () => {
    const running = { maxParallelism: 128 }
    expect(problems({ maxParallelism: 64 }, { running })).toEqual([
      'spec.maxParallelism changes from 128 to 64, and keyed state is laid out by it; set it back, or give the state up by upgradeMode stateless.',
    ])
    expect(problems({ maxParallelism: 64, upgradeMode: 'stateless' }, { running })).toEqual([])
    expect(problems({ maxParallelism: 64 })).toEqual([])
    // What the code says is not known here: the preflight holds it against the state.
    expect(problems({ maxParallelism: 64 }, { running: {} })).toEqual([])
  })
})

describe('a podTemplate', () => {
  const worker = (podTemplate: unknown) => problems({ worker: { podTemplate } })
  it('may have every field of a pod', () => {
    const template = {
      metadata: { labels: { a: 'b' }, annotations: { c: 'd' } },
      spec: {
        nodeSelector: { disk: 'ssd' },
        tolerations: [{ key: 'a', operator: 'Exists' }],
        containers: [
          { name: 'worker', env: [{ name: 'A', value: '1' }], volumeMounts: [{ name: 'v', mountPath: '/v' }] },
        ],
        volumes: [{ name: 'v', emptyDir: {} }],
        imagePullSecrets: [{ name: 'pull' }],
        affinity: {},
      },
    }
    expect(worker(template)).toEqual([])
    expect(problems({ coordinator: { podTemplate: template } })).toEqual([])
  })

  it.each<[unknown, string]>([
    [{ spek: {} }, '.spek: there is no such field; perhaps spec is meant.'],
    [{ spec: { nodeSelecter: {} } }, '.spec.nodeSelecter: there is no such field; perhaps nodeSelector is meant.'],
    [{ spec: { zzzzzzzz: 1 } }, '.spec.zzzzzzzz: there is no such field.'],
    [{ metadata: { name: 'a' } }, '.metadata.name: there is no such field.'],
    [{ metadata: { labels: { a: 1 } } }, '.metadata.labels.a is 1; it must be a text: put it in quotes.'],
    [{ spec: [] }, '.spec must be an object.'],
    [{ spec: { containers: {} } }, '.spec.containers must be a list.'],
    [{ spec: { containers: [{ env: [] }] } }, '.spec.containers[0].name is missing; entries are merged by it.'],
    [{ spec: { containers: [null] } }, '.spec.containers[0] must be an object.'],
    [
      { spec: { initContainers: [{ name: 'a', imagePolicy: 'x' }] } },
      '.spec.initContainers[0].imagePolicy: there is no such field.',
    ],
    [{ spec: { volumes: [{ emptyDir: {} }] } }, '.spec.volumes[0].name is missing; entries are merged by it.'],
    [{ spec: { restartPolicy: 'Never' } }, '.spec.restartPolicy cannot be set: the pods of a workload always restart.'],
    [{ spec: { nodeSelector: { a: true } } }, '.spec.nodeSelector.a is true; it must be a text: put it in quotes.'],
  ])('%j is refused', (template, problem) => {
    expect(worker(template)).toEqual([`spec.worker.podTemplate${problem}`])
  })
})
