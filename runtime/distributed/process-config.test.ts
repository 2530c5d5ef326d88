import { describe, expect, it } from 'vitest'
import {
  isLoopback,
  jobSettingsOf,
  loadProcessConfig,
  parseAddress,
  parseProcessConfig,
  readSecret,
} from './process-config.ts'

const minimal = {
  version: 1,
  job: { id: 'uid-1', name: 'orders', start: 1, file: '/opt/job/job.ts' },
  storage: { checkpoints: 'file:///var/millrace/uid-1' },
  nats: { servers: ['nats://127.0.0.1:4222'] },
  coordinator: { workersAddress: '127.0.0.1:7100', restAddress: '127.0.0.1:7101' },
  tokens: { workerFile: '/secrets/worker', ownerFile: '/secrets/owner', readerFile: '/secrets/reader' },
}

const tls = { certFile: '/tls/cert.pem', keyFile: '/tls/key.pem', caFile: '/tls/ca.pem' }

const full = {
  version: 1,
  job: {
    id: 'uid-1',
    name: 'orders',
    start: 3,
    file: '/opt/job/job.ts',
    args: { input: 's3://in', rows: [1] },
    parallelism: 4,
    maxParallelism: 256,
    settings: { checkpointIntervalMs: 5_000, retained: 5 },
    restore: { from: 's3://bucket/savepoints/7', allowNonRestoredState: true, allowDrained: false },
  },
  storage: {
    checkpoints: 's3://bucket/prefix/uid-1',
    savepoints: 's3://other/prefix/uid-1',
    s3: {
      endpoint: 'https://s3.example:9000',
      region: 'eu-1',
      forcePathStyle: true,
      accessKeyIdFile: '/secrets/s3-id',
      secretAccessKeyFile: '/secrets/s3-key',
      sessionTokenFile: '/secrets/s3-session',
    },
  },
  nats: {
    servers: ['tls://nats-0:4222', 'tls://nats-1:4222'],
    credentialsFile: '/secrets/job.creds',
    tls: { caFile: '/tls/ca.pem', certFile: '/tls/cert.pem', keyFile: '/tls/key.pem' },
    inboxPrefix: '_INBOX_uid-1',
  },
  coordinator: { workersAddress: 'orders-coordinator:7100', restAddress: '[::1]:7101', listenHost: '0.0.0.0', tls },
  tokens: { workerFile: '/secrets/worker', ownerFile: '/secrets/owner', readerFile: '/secrets/reader' },
  kubernetes: { namespace: 'shop', name: 'orders' },
  worker: { slots: 2, graceMs: 25_000 },
  logLevel: 'debug',
}

/** The minimal config with something else at a place; undefined takes it away. */
function withField(path: string, value: unknown): unknown {
  const config = structuredClone(minimal) as Record<string, unknown>
  const names = path.split('.')
  let object = config
  for (const name of names.slice(0, -1)) object = (object[name] ??= {}) as Record<string, unknown>
  if (value === undefined) delete object[names.at(-1)!]
  else object[names.at(-1)!] = value
  return config
}

const parse = (config: unknown) => parseProcessConfig(JSON.stringify(config), 'worker.json')

function said(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('it was taken')
}

describe('a process config', () => {
  it('is taken as it is written, from the least to the most', () => {
    expect(parse(minimal)).toEqual(minimal)
    expect(parse(full)).toEqual(full)
  })

  it('may be YAML', () => {
    const yaml = `# of orders
version: 1
job: { id: uid-1, name: orders, start: 1, file: /opt/job/job.ts }
storage: { checkpoints: "file:///var/millrace/uid-1" }
nats:
  servers: ["nats://127.0.0.1:4222"]
coordinator: { workersAddress: "127.0.0.1:7100", restAddress: "127.0.0.1:7101" }
tokens: { workerFile: /secrets/worker, ownerFile: /secrets/owner, readerFile: /secrets/reader }
`
    expect(parseProcessConfig(yaml, 'worker.yaml')).toEqual(minimal)
  })

  it.each<[string, unknown, string]>([
    ['version', 2, 'version is not 1, which this millrace reads'],
    ['version', undefined, 'version must be 1'],
    ['job', undefined, 'job is missing'],
    ['job.id', '', 'job.id is empty'],
    ['job.id', 'a b', 'job.id must be visible characters without spaces'],
    ['job.start', 0, 'job.start is below 1'],
    ['job.start', 1.5, 'job.start must be a whole number'],
    ['job.file', 'job.ts', 'job.file must be an absolute path'],
    ['job.parallelism', '4', 'job.parallelism must be a number'],
    ['job.maxParallelism', 40_000, 'job.maxParallelism is above 32768'],
    ['job.settings', { parallelism: 3 }, 'job.settings.parallelism has its place in job'],
    ['job.restore', { from: '/savepoint' }, 'job.restore.from must be s3://bucket/key or file:///path'],
    ['job.restore', { from: 'file:///savepoint', empty: true }, 'job.restore from and empty exclude each other'],
    ['nats.servers', [], 'nats.servers is empty'],
    ['nats.servers', 'nats://x', 'nats.servers must be an array'],
    ['coordinator.workersAddress', '127.0.0.1', 'coordinator.workersAddress must be host:port'],
    ['coordinator.restAddress', '127.0.0.1:70000', 'coordinator.restAddress must be host:port'],
    [
      'coordinator.workersAddress',
      'orders:7100',
      'coordinator.workersAddress is not of this machine alone, so coordinator.tls is needed',
    ],
    [
      'coordinator.listenHost',
      '0.0.0.0',
      'coordinator.listenHost is not of this machine alone, so coordinator.tls is needed: tokens cross the network there',
    ],
    ['coordinator.tls', { certFile: '/c' }, 'coordinator.tls.keyFile is missing; coordinator.tls.caFile is missing'],
    ['worker.slots', 257, 'worker.slots is above 256'],
    ['logLevel', 'loud', 'logLevel must be debug or info or warn or error'],
  ])('with %s = %j is refused', (path, value, answer) => {
    const message = said(() => parse(withField(path, value)))
    expect(message).toMatch(/^MR-D31 The process config is wrong\. worker\.json: /)
    expect(message).toContain(answer)
  })

  it('names everything that is wrong at once', () => {
    expect(said(() => parse({ version: 1, job: { id: 7 } }))).toMatch(
      /job\.id must be a string; job\.name is missing; job\.start is missing; job\.file is missing; storage is missing; nats is missing/,
    )
  })

  it.each<[string, unknown]>([
    ['tokens.workerFile', 'hunter2'],
    ['tokens.workerFile', '/hunter2 with spaces'],
    ['nats.credentialsFile', '-----BEGIN NATS USER JWT-----\nhunter2'],
    ['nats.servers', ['nats://me:hunter2@nats:4222']],
    ['storage.s3', { endpoint: 'https://me:hunter2@s3' }],
    ['storage.s3', { secretAccessKeyFile: 'hunter2', accessKeyIdFile: '/x' }],
    ['coordinator.tls', { ...tls, keyFile: '-----BEGIN PRIVATE KEY-----hunter2' }],
  ])('with a secret in %s is refused without showing it', (path, value) => {
    const message = said(() => parse(withField(path, value)))
    expect(message).toMatch(/^MR-/)
    expect(message).toMatch(/file|File/)
    expect(message).not.toContain('hunter2')
  })

  // A newer operator drives the runtime of the version before.
  it('is taken without the fields that are not known, which are named once', () => {
    // oxlint-disable-next-line no-explicit-any -- fields that no type knows
    const newer = structuredClone(full) as Record<string, any>
    newer['later'] = { any: 1 }
    newer['job'].settings.unaligned = 'auto'
    newer['job'].restore.goesFurther = true
    newer['storage'].colder = 's3://bucket/cold'
    newer['storage'].s3.signing = 'v5'
    newer['coordinator'].tls.renewal = '1h'
    newer['worker'].slotz = 2
    const told: string[] = []
    expect(parseProcessConfig(JSON.stringify(newer), 'worker.json', (message) => told.push(message))).toEqual(full)
    expect(told).toHaveLength(1)
    expect(told[0]).toMatch(/^worker\.json has fields that this millrace does not know, and goes on without them: /)
    const names = ['later', 'job.settings.unaligned', 'job.restore.goesFurther', 'storage.colder']
    for (const name of [...names, 'storage.s3.signing', 'coordinator.tls.renewal', 'worker.slotz'])
      expect(told[0]).toMatch(new RegExp(`[ ;]${name.replaceAll('.', '\\.')}[;.]`))
    expect(parseProcessConfig(JSON.stringify(full), 'worker.json', (message) => told.push(message))).toEqual(full)
    expect(told).toHaveLength(1)
  })

  it('with what is not known beside what is wrong is refused for that', () => {
    const both = { ...minimal, later: 1, coordinator: { ...minimal.coordinator, tlss: tls, workersAddress: 'a:1' } }
    expect(said(() => parse(both))).toMatch(/coordinator\.workersAddress is not of this machine alone/)
    expect(said(() => parse(withField('tokens', { worker: '/secrets/worker' })))).toContain(
      'tokens.workerFile is missing',
    )
  })

  it.each<[string, unknown]>([
    ['nats.token', 'hunter2'],
    ['nats.password', 'hunter2'],
    ['storage.s3', { secretAccessKey: 'hunter2' }],
    ['coordinator.tls', { ...tls, key: '-----BEGIN PRIVATE KEY-----hunter2' }],
  ])('with a secret in %s is told where that belongs, without showing it', (path, value) => {
    let told = ''
    parseProcessConfig(JSON.stringify(withField(path, value)), 'worker.json', (message) => (told = message))
    expect(told).toContain('a secret stands in a file, named by a field that ends in File')
    expect(told).not.toContain('hunter2')
  })

  it('that contradicts itself is refused by those who know', () => {
    expect(said(() => parse(withField('storage.checkpoints', 'gs://bucket')))).toMatch(/^MR-S39 /)
    expect(said(() => parse(withField('storage.savepoints', 'gs://bucket')))).toMatch(/^MR-S39 .*storage\.savepoints/)
    expect(said(() => parse(withField('nats.userFile', '/secrets/user')))).toMatch(/^MR-W37 /)
    expect(said(() => parse(withField('job.settings', { retained: 0 })))).toMatch(/^MR-J08 .*retained is 0/)
  })

  it('that is none, or is not there, says so', async () => {
    expect(said(() => parseProcessConfig('{"version": 1,', 'worker.json'))).toMatch(
      /^MR-D30 .*worker\.json is neither JSON nor YAML/,
    )
    expect(said(() => parseProcessConfig('', 'worker.json'))).toMatch(/^MR-D31 .*the config must be an object/)
    await expect(loadProcessConfig('/nowhere/worker.json', missing)).rejects.toThrow(
      /^MR-D30 .*\/nowhere\/worker\.json: ENOENT/,
    )
  })
})

it('settings win over the job, in words that JSON has', () => {
  const config = (settings: Record<string, unknown>) => ({ job: { ...parse(minimal).job, settings } })
  expect(jobSettingsOf(parse(minimal))).toEqual({ freezeRecords: false })
  expect(
    jobSettingsOf(config({ tolerableFailures: 'unlimited', checkpointIntervalMs: null, freezeRecords: true })),
  ).toEqual({ freezeRecords: true, tolerableFailures: Number.POSITIVE_INFINITY, checkpointIntervalMs: undefined })
})

describe('a secret', () => {
  const files = (text: string) => ({ readFile: async () => new TextEncoder().encode(text) })

  it('is the content of its file without white space around it', async () => {
    expect(await readSecret('tokens.workerFile', '/secrets/worker', files(' a-token\n'))).toBe('a-token')
  })

  it('whose file is empty, missing or no text is a clear error', async () => {
    const read = (from: { readFile: () => Promise<Uint8Array> }) =>
      readSecret('tokens.workerFile', '/secrets/worker', from)
    await expect(read(files(' \n'))).rejects.toThrow(
      /^MR-D32 .*tokens\.workerFile is \/secrets\/worker, which is empty\./,
    )
    await expect(read(missing)).rejects.toThrow(/^MR-D32 .*tokens\.workerFile is \/secrets\/worker: ENOENT/)
    await expect(read({ readFile: async () => Uint8Array.of(0xff) })).rejects.toThrow(/^MR-D32 /)
  })
})

it.each([
  ['host:1', { host: 'host', port: 1 }],
  ['127.0.0.1:7100', { host: '127.0.0.1', port: 7100 }],
  ['[::1]:7100', { host: '::1', port: 7100 }],
  ['::1:7100', undefined],
  ['host', undefined],
  ['host:0', undefined],
  ['host:65536', undefined],
  ['me@host:1', undefined],
  ['http://host:1', undefined],
])('%s is the address %j', (text, address) => {
  expect(parseAddress(text)).toEqual(address)
})

it.each([
  ['localhost', true],
  ['127.0.0.1', true],
  ['127.1.2.3', true],
  ['::1', true],
  ['127.0.0.1.example', false],
  ['10.0.0.1', false],
  ['0.0.0.0', false],
])('%s is on this machine: %s', (host, is) => {
  expect(isLoopback(host)).toBe(is)
})

const missing = {
  readFile: async (): Promise<Uint8Array> => {
    throw new Error('ENOENT: no such file or directory')
  },
}
