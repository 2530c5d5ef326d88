import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { jobInput } from './job-input.ts'
import type { JobWords } from './job-input.ts'
import { jobFileOf, writeForJob } from './job-module-files.ts'

let folder = ''
let manifests = 0

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-input-'))
  await mkdir(join(folder, 'code/inner'), { recursive: true })
  await writeFile(join(folder, 'job.ts'), 'export {}')
  await writeFile(join(folder, 'code/job.ts'), 'export default 1')
  await writeFile(join(folder, 'code/no name of a key'), '')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function input(spec: string, words: Partial<JobWords> = {}) {
  const jobFile = `job-${manifests++}.yaml`
  const head = 'apiVersion: millrace.dev/v1alpha1\nkind: StreamJob\nmetadata: { name: orders }\nspec:\n'
  await writeFile(join(folder, jobFile), head + spec)
  return jobInput({ jobFile, args: {}, parallelism: undefined, configMaps: [], ...words }, folder)
}

const path = '  program: { module: { path: job.ts } }\n'
const mapped = '  program: { module: { configMap: { name: code, key: job.ts } } }\n'
const beside =
  '---\napiVersion: v1\nkind: ConfigMap\nmetadata: { name: code }\ndata: { job.ts: "export default 2", other.ts: "" }\n'

describe('what a command is about', () => {
  it('is code in an image, where the manifest names one and the file is not here: not to be run', async () => {
    const { module } = await input('  program: { image: me/orders:1, module: { path: /opt/orders/job.ts } }\n')
    expect(module).toEqual({ kind: 'in image', image: 'me/orders:1', path: '/opt/orders/job.ts' })
    await expect(jobFileOf(module, { name: 'default/orders', folder })).rejects.toThrow(
      /^MR-L22 .*\/opt\/orders\/job\.ts is no file here; spec\.program\.image is me\/orders:1\./,
    )
    expect((await input('  program: { image: me/orders:1, module: { path: job.ts } }\n')).module).toEqual({
      kind: 'file',
      path: join(folder, 'job.ts'),
      image: 'me/orders:1',
    })
    // Without an image a file that is not there is one that is missing.
    await expect(input('  program: { module: { path: /opt/orders/job.ts } }\n')).rejects.toThrow(/^MR-L12 /)
  })

  it('is a job file and its name, all else being the job’s own', async () => {
    const words = { jobFile: 'code/job.ts', args: { a: 1 }, parallelism: 3, configMaps: [] }
    expect(await jobInput(words, folder)).toEqual({
      name: 'code',
      module: { kind: 'file', path: join(folder, 'code/job.ts') },
      args: { a: 1 },
      parallelism: 3,
      maxParallelism: undefined,
      settings: {},
      manifest: undefined,
    })
    await expect(jobInput({ ...words, jobFile: 'gone.ts' }, folder)).rejects.toThrow(/MR-L12 .*gone\.ts/)
    await writeFile(join(folder, 'a b.ts'), '')
    await expect(jobInput({ ...words, jobFile: 'a b.ts' }, folder)).rejects.toThrow(/MR-L11 .*"a b".*--name/)
  })

  it('is what a manifest says, in the job’s terms', async () => {
    const spec = `
  parallelism: 4
  maxParallelism: 64
  checkpointing: { interval: 5s, mode: at-least-once, timeout: 1m, minPause: 2s, tolerableFailures: unlimited, retained: 2, onCancellation: delete }
  restartStrategy: { type: failure-rate, failuresPerInterval: 3, interval: 1m }
  failoverStrategy: full
  allowNonRestoredState: true
  restoreFrom: old/savepoint-3
`
    expect(await input(path + spec)).toEqual({
      name: 'default/orders',
      module: { kind: 'file', path: join(folder, 'job.ts') },
      args: {},
      parallelism: 4,
      maxParallelism: 64,
      settings: {
        checkpointIntervalMs: 5_000,
        checkpointMode: 'at-least-once',
        checkpointTimeoutMs: 60_000,
        minPauseMs: 2_000,
        tolerableFailures: Number.POSITIVE_INFINITY,
        retained: 2,
        onCancellation: 'delete',
        restartStrategy: { type: 'failure-rate', failuresPerInterval: 3, intervalMs: 60_000, delayMs: 1_000 },
        failoverStrategy: 'full',
      },
      manifest: {
        state: 'running',
        restoreFrom: join(folder, 'old/savepoint-3'),
        allowNonRestoredState: true,
        unused: [],
      },
    })
  })

  it.each([
    ['{ type: none }', { type: 'none' }],
    ['{ type: fixed-delay, attempts: 2, delay: 3s }', { type: 'fixed-delay', attempts: 2, delayMs: 3_000 }],
    [
      '{ type: exponential-delay }',
      {
        type: 'exponential-delay',
        initialDelayMs: 100,
        maxDelayMs: 60_000,
        multiplier: 1.5,
        resetAfterMs: 600_000,
        jitter: 0.1,
      },
    ],
  ])('has the restart strategy %s', async (written, settings) => {
    expect((await input(`${path}  restartStrategy: ${written}\n`)).settings).toEqual({ restartStrategy: settings })
  })

  it('leaves to the job what the manifest does not say, parallelism excepted', async () => {
    expect(await input(path)).toMatchObject({ parallelism: 1, maxParallelism: undefined, settings: {} })
  })

  it('is what the command line says where both say something', async () => {
    const spec = '  program: { module: { path: job.ts }, args: { a: 1, b: 1 } }\n  parallelism: 4\n'
    expect(await input(spec, { args: { b: 2 }, parallelism: 2 })).toMatchObject({
      args: { a: 1, b: 2 },
      parallelism: 2,
    })
  })

  it('takes a folder for the savepoints; a bucket is for a cluster', async () => {
    const spec = (savepoints: string) => `  program: { module: { path: job.ts } }
  storage: { savepoints: "${savepoints}" }
`
    const folder = await input(spec('file:///kept'))
    expect(folder.manifest).toMatchObject({ savepoints: 'file:///kept', unused: [] })
    const bucket = await input(spec('s3://kept/here'))
    expect(bucket.manifest).toMatchObject({ savepoints: undefined, unused: ['storage.savepoints'] })
  })

  it('names each field that is for a cluster alone', async () => {
    const spec = `  program: { image: "x:1", module: { path: job.ts }, args: {} }
  state: suspended
  parallelism: 1
  upgradeMode: last-state
  restoreMode: no-claim
  restoreNonce: 1
  restartNonce: 1
  savepointNonce: 1
  checkpointNonce: 1
  stateBackend: { type: heap }
  storage: { checkpoints: "s3://a/b" }
  savepoints: { every: 6h }
  rollback: { enabled: true }
  deletion: { savepoint: false }
  ttlAfterFinished: 1h
  serviceAccountName: a
  nats: { url: "nats://a" }
  logLevel: info
  ingress: { host: a }
  coordinator: { resources: {}, podTemplate: {} }
  worker: { slots: 2, podTemplate: {} }
`
    const { manifest } = await input(spec)
    expect(manifest?.state).toBe('suspended')
    expect(manifest?.unused).toEqual([
      'program.image',
      'upgradeMode',
      'restoreNonce',
      'restartNonce',
      'savepointNonce',
      'checkpointNonce',
      'storage.checkpoints',
      'savepoints',
      'rollback',
      'deletion',
      'ttlAfterFinished',
      'serviceAccountName',
      'nats',
      'logLevel',
      'ingress',
      'coordinator.resources',
      'coordinator.podTemplate',
      'worker.slots',
      'worker.podTemplate',
    ])
  })

  it('goes on from HEAD where it says latest, and is refused an address that is no folder', async () => {
    expect((await input(`${path}  restoreFrom: latest\n`)).manifest?.restoreFrom).toBeUndefined()
    expect((await input(`${path}  restoreFrom: /abs/savepoint-1\n`)).manifest?.restoreFrom).toBe('/abs/savepoint-1')
    await expect(input(`${path}  restoreFrom: s3://bucket/savepoint-1\n`)).rejects.toThrow(
      /MR-L16 .*spec\.restoreFrom is s3:\/\/bucket\/savepoint-1; on this machine it must be a folder/,
    )
  })

  it('is refused where the manifest’s job file is not there, or its name is one of a later job', async () => {
    await expect(input('  program: { module: { path: gone.ts } }\n')).rejects.toThrow(
      /MR-L12 .*gone\.ts \(spec\.program/,
    )
    await writeFile(
      join(folder, 'later.yaml'),
      `apiVersion: millrace.dev/v1alpha1\nkind: StreamJob\nmetadata: { name: orders.2 }\nspec:\n${path}`,
    )
    const words = { jobFile: 'later.yaml', args: {}, parallelism: undefined, configMaps: [] }
    await expect(jobInput(words, folder)).rejects.toThrow(/MR-L16 .*metadata\.name.*"default\/orders\.2"/)
  })
})

describe('the code of a manifest', () => {
  it('comes from the ConfigMap beside it, and rather from what --config-map names: a folder’s files or one file', async () => {
    const keysOf = async (words: Partial<JobWords>) => {
      const { module } = await input(mapped + beside, words)
      return module.kind === 'files'
        ? [...module.files].map(([key, bytes]) => `${key}: ${Buffer.from(bytes).toString()}`)
        : []
    }
    expect(await keysOf({})).toEqual(['job.ts: export default 2', 'other.ts: '])
    expect(await keysOf({ configMaps: [['code', 'code']] })).toEqual(['job.ts: export default 1'])
    expect(await keysOf({ configMaps: [['code', 'code/job.ts']] })).toEqual(['job.ts: export default 1'])
  })

  it('that is nowhere is refused with what to do', async () => {
    await expect(input(mapped)).rejects.toThrow(/MR-L19 .*has no ConfigMap code\. Put the ConfigMap/)
    await expect(input(mapped.replace('job.ts', 'main.ts') + beside)).rejects.toThrow(
      /MR-L19 .*no key main\.ts; it has job\.ts, other\.ts/,
    )
    await expect(input(mapped, { configMaps: [['code', 'nowhere']] })).rejects.toThrow(/MR-L19 .*nowhere/)
    await expect(input(mapped + beside, { configMaps: [['cod', 'code']] })).rejects.toThrow(
      /MR-L11 .*--config-map cod: the manifest's module is of the ConfigMap code/,
    )
    await expect(input(path, { configMaps: [['code', 'code']] })).rejects.toThrow(/MR-L11 .*is of no ConfigMap/)
  })

  it('is written side by side to a folder that other code never gets', async () => {
    const module = (text: string) => ({
      kind: 'files' as const,
      key: 'job.ts',
      files: new Map([['job.ts', Buffer.from(text)]]),
    })
    const at = { name: 'default/orders', folder }
    const first = await writeForJob(module('one'), at)
    const second = await writeForJob(module('two'), at)
    expect(await writeForJob(module('one'), at)).toBe(first)
    expect([String(await readFile(first)), String(await readFile(second))]).toEqual(['one', 'two'])
    const folders = await readdir(join(folder, '.millrace/default/orders'))
    expect(folders).toHaveLength(2)
    expect(folders.every((name) => /^code-[0-9a-f]{16}$/.test(name))).toBe(true)
  })
})
