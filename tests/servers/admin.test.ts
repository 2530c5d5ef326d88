// `millrace admin` and `millrace preflight` on a real S3 server, as the operator's admin pod gives them.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requestId } from '../../runtime/base/ids.ts'
import { subjectOf } from '../../runtime/admin/harness.ts'
import type { Subject } from '../../runtime/admin/harness.ts'
import type { AdminReport } from '../../runtime/cli/admin-report.ts'
import type { OpenedStores, StorageConfig } from '../../runtime/storage/contract.ts'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import { realEnvironment } from '../../runtime/local/platform/real-environment.ts'
import { completeSavepoint, stop } from '../../runtime/storage/head.ts'
import { openStores } from '../../runtime/storage/open-stores.ts'
import { runCommand } from '../support/command.ts'
import { countingJob } from '../whole/support/counting-job.ts'
import { startS3Server } from './support/s3-server.ts'
import type { S3Server } from './support/s3-server.ts'

const files = new NodeFiles()
const environment = realEnvironment({ log: () => undefined })
let server: S3Server
let bucket: string
let folder: string

beforeAll(async () => {
  server = await startS3Server()
  bucket = await server.makeBucket()
  folder = await mkdtemp(join(tmpdir(), 'millrace-admin-'))
  await writeFile(join(folder, 'counting.ts'), countingJob)
}, 600_000)

afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
  await server?.stop()
})

interface Stored {
  readonly stores: OpenedStores
  readonly config: string
}

/** What the subject holds, in the bucket below `prefix`, and a process config for it. */
async function stored(prefix: string, subject: Subject, storage = server.storage(bucket, prefix)): Promise<Stored> {
  const stores = await openStores({ storage, files, environment, probe: true })
  for (const key of await subject.objects.list('')) await stores.objects.create(key, (await subject.objects.read(key))!)
  const head = await subject.heads.read()
  if (head !== undefined) expect(await stores.head.swap(undefined, head.bytes)).toMatchObject({ outcome: 'won' })
  return { stores, config: await configFile(prefix, storage) }
}

async function configFile(name: string, storage: StorageConfig): Promise<string> {
  const path = join(folder, `${name}.json`)
  const config = {
    version: 1,
    job: { id: 'job', name: 'counting', start: 1, file: join(folder, 'counting.ts'), args: { count: 10 } },
    storage,
    nats: { servers: ['nats://127.0.0.1:4222'] },
    coordinator: { workersAddress: '127.0.0.1:4001', restAddress: '127.0.0.1:4002' },
    tokens: { workerFile: '/secrets/worker', ownerFile: '/secrets/owner', readerFile: '/secrets/reader' },
  }
  await writeFile(path, JSON.stringify(config))
  return path
}

async function admin(...asked: readonly string[]) {
  const { exitCode, stdout, stderr } = await runCommand(['admin', ...asked, '--output', 'json'], { folder })
  expect(stdout, stderr).not.toBe('')
  return { exitCode, stderr, report: JSON.parse(stdout) as AdminReport }
}

describe('on S3', () => {
  it('a job is closed, looked at, swept and rid of its savepoint; again there is nothing to do', async () => {
    const subject = await subjectOf()
    const savepoint = await subject.write({ id: 4, kind: 'savepoint' })
    await subject.keeper.update((head) => completeSavepoint(head, { request: requestId('r'), manifest: savepoint }))
    await subject.complete({ id: 6 })
    await subject.put('chk-7/torn', 'shared/unnamed')
    const { stores, config } = await stored('swept', subject)
    const at = ['--config', config]

    const path = `s3://${bucket}/swept/objects/chk-6`
    expect(await admin('restore-point', '--deep', ...at)).toMatchObject({
      exitCode: 0,
      report: {
        outcome: 'found',
        contents: { objects: 1 },
        job: { restorePoint: { manifest: { path } }, end: { kind: 'none' } },
      },
    })
    expect(await admin('close', '--start', '1', '--yes', ...at)).toMatchObject({
      exitCode: 0,
      report: { outcome: 'done', job: { end: { kind: 'suspended' } } },
    })
    expect(await admin('close', '--yes', ...at)).toMatchObject({ exitCode: 0, report: { outcome: 'nothing to do' } })
    expect(await admin('sweep', '--yes', ...at)).toMatchObject({
      exitCode: 0,
      report: { outcome: 'done', objects: ['chk-7/torn', 'shared/unnamed'] },
    })
    const place = `s3://${bucket}/swept/objects/savepoint-4`
    expect(await admin('dispose', place, '--yes', ...at)).toMatchObject({
      exitCode: 0,
      report: { outcome: 'done', savepoint: place },
    })
    expect(await admin('dispose', `${place}/_metadata`, '--yes', ...at)).toMatchObject({
      report: { outcome: 'nothing to do' },
    })
    expect(await stores.objects.list('')).toEqual(['chk-6/_metadata', 'chk-6/data'])
    await stores.close()
  })

  it('commits that a later start permitted are refused to the config of an earlier one', async () => {
    const subject = await subjectOf({ start: 2 })
    await subject.complete({ id: 5, start: 2, transactions: ['theirs'] })
    const { stores, config } = await stored('later', subject)
    const before = await stores.head.read()
    expect(await admin('commit', '--yes', '--config', config)).toMatchObject({
      exitCode: 3,
      report: { outcome: 'refused', error: { code: 'MR-A09' } },
    })
    expect(await stores.head.read()).toEqual(before)
    await stores.close()
  })

  it("another job's savepoint is found with its HEAD, which may need it", async () => {
    const subject = await subjectOf()
    const { stores, config } = await stored('mine', subject)
    const other = await subjectOf()
    const manifest = await other.write({ id: 4, kind: 'savepoint', job: 'other' })
    await other.write({ id: 5, kind: 'savepoint', job: 'other' })
    await other.keeper.update((head) => stop(head, { request: requestId('r'), manifest, commitsPending: false }))
    const theirs = await stored('theirs', other)
    const dispose = (id: number, ...more: readonly string[]) =>
      admin('dispose', `s3://${bucket}/theirs/objects/savepoint-${id}`, '--yes', '--config', config, ...more)
    expect(await dispose(5)).toMatchObject({ exitCode: 3, report: { error: { code: 'MR-A05' } } })
    expect(await dispose(4, '--foreign')).toMatchObject({ exitCode: 3, report: { error: { code: 'MR-A04' } } })
    expect(await dispose(5, '--foreign')).toMatchObject({ exitCode: 0, report: { outcome: 'done' } })
    expect(await theirs.stores.objects.list('')).toEqual(['savepoint-4/_metadata', 'savepoint-4/data'])
    await stores.close()
    await theirs.stores.close()
  })

  it('a preflight is held against what lies there, and by its address against a savepoint of another job', async () => {
    const subject = await subjectOf()
    await subject.complete({ id: 6 })
    const { stores, config } = await stored('checked', subject)
    const ask = async (...more: readonly string[]) => {
      const { exitCode, stdout } = await runCommand(['preflight', '--config', config, '--output', 'json', ...more], {
        folder,
      })
      return { exitCode, report: JSON.parse(stdout) as { readonly reasons: readonly { readonly code: string }[] } }
    }
    expect(await ask()).toMatchObject({ exitCode: 3, report: { answer: 'no', reasons: [{ code: 'MR-C11' }] } })
    expect(await ask('--against', `s3://${bucket}/checked/objects/chk-6`)).toMatchObject({
      exitCode: 3,
      report: { reasons: [{ code: 'MR-C11' }], against: { path: `s3://${bucket}/checked/objects/chk-6` } },
    })
    await stores.close()
  })

  it('no HEAD is none; a store that refuses or does not answer is unclear, and tells no secret', async () => {
    const empty = await configFile('empty', server.storage(bucket, 'empty'))
    expect(await admin('close', '--yes', '--config', empty)).toMatchObject({
      exitCode: 0,
      report: { outcome: 'none', job: null },
    })
    const secretAccessKeyFile = join(folder, 'wrong-secret')
    await writeFile(secretAccessKeyFile, 'a-wrong-secret')
    const storage = server.storage(bucket, 'empty')
    const wrong = await configFile('wrong', { ...storage, s3: { ...storage.s3, secretAccessKeyFile } })
    const refused = await admin('close', '--yes', '--config', wrong)
    expect(refused).toMatchObject({ exitCode: 4, report: { outcome: 'unclear' } })
    expect(JSON.stringify(refused)).not.toContain('a-wrong-secret')
    const noBucket = await configFile('no-bucket', server.storage('tests-of-nobody', 'empty'))
    expect(await admin('close', '--yes', '--config', noBucket)).toMatchObject({
      exitCode: 4,
      report: { error: { code: 'MR-S32' } },
    })
    const gone = await configFile('gone', server.storage(bucket, 'empty', 9))
    const preflight = await runCommand(['preflight', '--config', gone, '--output', 'json'], { folder })
    expect(preflight.exitCode).toBe(4)
    expect(JSON.parse(preflight.stdout)).toMatchObject({ answer: 'could not run', slotsNeeded: 1 })
  })
})
