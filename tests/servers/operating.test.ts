// What an operator, a person or Kubernetes, does to a distributed job: rescale, savepoints, stop, drain, close, cancel, workers that come
// and go, regions apart, admin commands while nobody runs it.

import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import { realEnvironment } from '../../runtime/local/platform/real-environment.ts'
import { openStores } from '../../runtime/storage/open-stores.ts'
import { HISTORY_PREFIX } from '../../runtime/storage/paths.ts'
import { RunningCommand, runCommand } from '../support/command.ts'
import type { CommandResult } from '../support/command.ts'
import type { DistributedJob } from './support/distributed-job.ts'
import { distributedWorld, keys, splits } from './support/distributed-world.ts'

const world = distributedWorld('operating')
const regionsJob = fileURLToPath(new URL('../../e2e/jobs/regions.ts', import.meta.url))

/** A command as its owner gives it, from another terminal. */
function command(job: DistributedJob, ...words: readonly string[]): Promise<CommandResult> {
  return runCommand([...words, '--config', job.configFile], { folder: job.folder })
}

async function answered(job: DistributedJob, path: string): Promise<Record<string, unknown>> {
  let body: Record<string, unknown> = {}
  await job.until(`${path} to be answered`, async () => {
    const answer = await job.answer('GET', path)
    body = answer?.body ?? {}
    return answer?.status === 200 && body['state'] !== 'pending'
  })
  return body
}

/** Who runs what: slots by worker. */
async function slotsOf(job: DistributedJob): Promise<Record<string, readonly string[]>> {
  const { workers } = (await job.request('GET', '/v1/workers')).body
  return Object.fromEntries(
    workers
      .filter(({ state }: { state: string }) => state === 'registered')
      .map(({ name, running }: { name: string; running: string[] }) => [name, running]),
  )
}

/** The first checkpoint comes before the first record, and what is to be judged whole has to hold some. */
async function delivers(job: DistributedJob): Promise<void> {
  await job.until('records in the ledger', async () => (await world.ledger.report({ book: job.id })).present > 0)
}

/** Of an endless job that has ended: whole up to the last record, of which nothing is known beyond. */
async function expectNoGaps(job: DistributedJob): Promise<void> {
  const report = await world.ledger.report({ book: job.id, splits, keys })
  expect(report).toMatchObject({ exact: true, lost: 0, doubled: 0 })
}

/** After so many rescales, each an incarnation of its own: HEAD tells the new size a moment before. */
async function runsAt(job: DistributedJob, parallelism: number, incarnation: number): Promise<void> {
  await job.until(`parallelism ${parallelism}`, async () => {
    const status = await job.status()
    return status?.state === 'running' && status.parallelism === parallelism && status.incarnation === incarnation
  })
}

describe('an operator', () => {
  it('rescales in place 2, 3, 1 by REST and by command, each request once, takes savepoints, and drains', async () => {
    const job = await world.started({ slots: 2 })
    await job.checkpoints(1)
    const words = { start: 1, request: 'to-three', parallelism: 3 }
    expect((await job.request('POST', '/v1/rescale', words)).status).toBe(202)
    const first = await answered(job, '/v1/rescale/to-three')
    expect(first).toMatchObject({ state: 'completed', checkpoint: { kind: 'checkpoint' } })
    await runsAt(job, 3, 2)
    expect((await job.request('POST', '/v1/rescale', words)).body).toEqual(first)
    expect((await job.request('POST', '/v1/rescale', { ...words, parallelism: 1 })).body.code).toBe('MR-H05')
    await job.checkpoints(1)

    for (let time = 0; time < 2; time++)
      expect(await command(job, 'rescale', '--parallelism', '1', '--request', 'to-one')).toMatchObject({ exitCode: 0 })
    await runsAt(job, 1, 3)
    expect((await job.status()).restarts).toBe(0)
    const refused = await job.ask('/v1/rescale', { parallelism: 50 })
    expect(await answered(job, `/v1/rescale/${refused}`)).toMatchObject({
      state: 'failed',
      detail: 'it needs 50 slots, and the workers offer 4',
    })

    const savepoint = await command(job, 'savepoint', '--request', 'kept')
    expect(savepoint).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/\/objects\/savepoint-\d+\n$/) })
    expect((await command(job, 'savepoint', '--request', 'kept')).stdout).toBe(savepoint.stdout)
    const shown = await command(job, 'status', '--json')
    expect(shown.exitCode, shown.stderr).toBe(0)

    expect(await command(job, 'stop', '--drain')).toMatchObject({ exitCode: 0 })
    await job.left()
    await expectNoGaps(job)
  })

  it('loses no savepoint with its coordinator, nor what has happened before; and goes on at another parallelism', async () => {
    // Seldom enough for a savepoint between two of them.
    const job = await world.started({ slots: 2, args: { checkpointMs: 5_000 } })
    await job.checkpoints(1)
    const [busy] = Object.entries(await slotsOf(job)).find(([, running]) => running.length > 0)!
    await job.replaceWorker(busy)
    await job.until('the restart', async () => (await job.status())?.restarts === 1)
    await job.checkpoints(1)
    await job.until('the history to be stored', async () => (await storedHistory(job)).includes('MR-O11'))

    await job.checkpoints(1)
    await world.ledger.hold({ what: 'preCommit', book: job.id })
    const request = await job.ask('/v1/savepoints')
    await job.until('the savepoint to be pending', async () => {
      const { body } = (await job.answer('GET', '/v1/checkpoints')) ?? {}
      return body?.pending?.kind === 'savepoint'
    })
    await world.ledger.waitForHeld(1, 60_000)
    await job.replaceCoordinator()
    await world.ledger.release()
    expect(await answered(job, `/v1/savepoints/${request}`)).toMatchObject({
      state: 'completed',
      savepoint: { kind: 'savepoint' },
    })
    await job.running()
    const { exceptions } = (await job.request('GET', '/v1/exceptions')).body
    expect(exceptions).toContainEqual(expect.objectContaining({ code: 'MR-O11', incarnation: 1 }))
    expect((await job.request('GET', '/v1/restarts')).body.restarts).toHaveLength(1)
    expect(await job.status()).toMatchObject({ incarnation: 2, restarts: 1 })
    await world.expectExactToTheEnd(job, { parallelism: 3 })
  })

  it('closes a job, works on it while nobody runs it, goes on with the next start, and cancels that', async () => {
    const job = await world.started()
    await delivers(job)
    await job.ask('/v1/close')
    await job.left()
    await expectNoGaps(job)
    const point = await command(job, 'admin', 'restore-point', '--deep', '--output', 'json')
    expect(point.exitCode, point.stderr).toBe(0)
    expect(JSON.parse(point.stdout)).toMatchObject({ outcome: 'found', job: { start: 1, end: { kind: 'suspended' } } })
    // Nothing that the next start needs is taken.
    for (const words of [
      ['commit', '--yes'],
      ['sweep', '--yes'],
    ])
      expect(await command(job, 'admin', ...words)).toMatchObject({ exitCode: 0 })
    expect(await world.ledger.report({ book: job.id })).toMatchObject({ open: 0, preCommitted: 0 })
    expect(await command(job, 'preflight')).toMatchObject({ exitCode: 0 })

    await job.changeJob({ start: 2 })
    await job.startAll()
    await job.checkpoints(1)
    expect(await job.status()).toMatchObject({ start: 2, restorePoint: { kind: 'manifest' } })
    await job.ask('/v1/cancel')
    await job.left()
    await expectNoGaps(job)
    const closed = await command(job, 'admin', 'close', '--deleted', '--yes', '--output', 'json')
    expect(JSON.parse(closed.stdout)).toMatchObject({ job: { start: 2, end: { kind: 'cancelled' } } })
  })

  it('is given commands while its coordinator is away: they are carried out by the next one, or say that there is none', async () => {
    const job = await world.started()
    await job.checkpoints(1)
    await job.coordinator.kill()
    const gaveUp = await command(job, 'savepoint', '--wait', '500')
    expect(gaveUp.exitCode).toBe(1)
    expect(gaveUp.stderr).toMatch(
      /^The coordinator at http:\S+ does not answer \(ECONNREFUSED\)\. Asking again for up to 500 ms\.\nMR-L37 .* did not answer for 500 ms \(ECONNREFUSED\)\. By HEAD start 1 has not ended\.[^\n]*\n$/,
    )
    const given = [['status'], ['savepoint', '--request', 'away'], ['checkpoints', '--trigger']].map(
      (words) => new RunningCommand([...words, '--config', job.configFile], { folder: job.folder }),
    )
    for (const running of given) await running.until(() => running.stderr.includes('Asking again'))
    await job.startCoordinator()
    for (const { ended } of given) {
      const { exitCode, stderr } = await ended
      expect(exitCode, stderr).toBe(0)
      expect(stderr).toMatch(/\nIt answers\.\n$/)
    }
    expect((await answered(job, '/v1/savepoints/away'))['state']).toBe('completed')
    expect(await job.status()).toMatchObject({ state: 'running', restarts: 0 })
    await world.expectExactToTheEnd(job)
  })

  it('closes a job whose coordinator is away: the next one, which stays, ends what runs on, and sends nobody home', async () => {
    const job = await world.started({ coordinatorWords: ['--stay'] })
    await delivers(job)
    await job.coordinator.kill()
    expect(await command(job, 'admin', 'close', '--yes')).toMatchObject({ exitCode: 0 })
    await job.startCoordinator()
    await job.until('its workers to run nothing', async () => {
      const answer = await job.answer('GET', '/v1/workers')
      const workers = (answer?.body?.workers ?? []) as { readonly state: string; readonly running: string[] }[]
      return (
        workers.length === 2 && workers.every(({ state, running }) => state === 'registered' && running.length === 0)
      )
    })
    expect([...job.workers.values()].map(({ running }) => running)).toEqual([true, true])
    expect(await job.status()).toMatchObject({ end: { kind: 'suspended' } })
    await expectNoGaps(job)
  })

  it('has ended, and its coordinator with it: commands say how, from HEAD, and what is to be done', async () => {
    const job = await world.started()
    await job.checkpoints(1)
    const savepoint = (await command(job, 'stop')).stdout.trim()
    await job.left()
    const status = await command(job, 'status')
    expect(status).toMatchObject({ exitCode: 0, stderr: '' })
    expect(status.stdout).toMatch(new RegExp(`^${job.id} was stopped with ${savepoint}\\. Nobody answers at http:`))
    expect(status.stdout).toMatch(/\nThe start after it \(job\.start: 2\) would begin from savepoint \d+, s3:/)
    expect(JSON.parse((await command(job, 'status', '--json')).stdout)).toMatchObject({
      job: { state: 'ended', end: { kind: 'stopped', savepoint: { path: savepoint } } },
    })
    expect((await command(job, 'list')).stdout).toMatch(new RegExp(`\n${job.id} +stopped +1 `))
    for (const words of [['savepoint'], ['cancel'], ['rescale', '--parallelism', '1']]) {
      const refused = await command(job, ...words)
      expect(refused.exitCode).toBe(1)
      expect(refused.stderr).toMatch(/^MR-L38 .* was stopped with s3:\S+ \(start 1\)\. .*admin restore-point/)
    }
    expect((await command(job, 'admin', 'close', '--deleted', '--yes')).exitCode).toBe(0)
    expect(await command(job, 'cancel')).toMatchObject({ exitCode: 0, stderr: `${job.id} is cancelled.\n` })
  })

  it('takes its savepoints to another bucket, goes on from there, and takes them away again', async () => {
    const { s3 } = world.servers
    const [bucket, kept] = [await s3.makeBucket(), await s3.makeBucket()]
    const storage = { ...s3.storage(bucket, 'jobs/apart'), savepoints: `s3://${kept}/apart` }
    const job = await world.started({ storage })
    await job.checkpoints(1)
    const place = new RegExp(`^s3://${kept}/apart/objects/savepoint-\\d+\n$`)
    const plain = (await command(job, 'savepoint')).stdout
    expect(plain).toMatch(place)
    const dispose = (path: string) => command(job, 'admin', 'dispose', path.trim(), '--yes')
    expect(await dispose(plain)).toMatchObject({ exitCode: 0 })
    const stopped = (await command(job, 'stop')).stdout
    expect(stopped).toMatch(place)
    await job.left()
    expect(await dispose(stopped)).toMatchObject({ exitCode: 3, stderr: expect.stringMatching(/^MR-A04 /) })
    const { start } = job.config.job
    await job.changeJob({ start: start + 1, parallelism: 1 })
    await job.startAll()
    await job.checkpoints(1)
    expect(await dispose(stopped)).toMatchObject({ exitCode: 0 })
    await world.expectExactToTheEnd(job)
    const stores = await openStores({ storage, files: new NodeFiles(), environment: quiet, probe: false })
    expect(await stores.objects.list('savepoint-')).toEqual([])
    const [owner, ...left] = await stores.savepoints!.objects.list('')
    expect([owner, ...new Set(left.map((key) => key.split('-')[0]))]).toEqual(['owner', 'savepoint'])
    await stores.close()
  })

  it('begins another job from the savepoint of one that was stopped', async () => {
    const job = await world.started()
    await job.checkpoints(1)
    expect((await command(job, 'stop')).exitCode).toBe(0)
    await job.left()
    const point = await command(job, 'admin', 'restore-point', '--output', 'json')
    const { path, kind } = JSON.parse(point.stdout).job.restorePoint.manifest as { path: string; kind: string }
    expect(kind).toBe('savepoint')
    const report = await world.ledger.report({ book: job.id })
    const perSplit = Math.max(...report.splits.map(({ highest }) => highest)) + 500
    const args = { book: job.id, perSplit, ratePerSecond: undefined }
    const other = await world.started({ restore: { from: path }, args, parallelism: 1 })
    await world.expectExact(other, perSplit, job.id)
  })

  it('gives a job fewer workers than it needs, then more, and takes them away again', async () => {
    const job = await world.started({ workers: 0, graceMs: 20_000 })
    const waitsWith = (slotsOffered: number): Promise<void> =>
      job.until(`the job to wait with ${slotsOffered} slots`, async () => {
        const status = await job.status()
        return status?.waitsFor === 'slots' && status.slotsNeeded === 2 && status.slotsOffered === slotsOffered
      })
    await waitsWith(0)
    await job.startWorker('worker-0')
    await waitsWith(1)
    await job.startWorker('worker-1')
    await job.startWorker('worker-2')
    await job.running()
    await job.until('the third to register', async () => Object.keys(await slotsOf(job)).length === 3)
    expect(await job.status()).toMatchObject({ waitsFor: null, slotsOffered: 3 })
    const idle = Object.entries(await slotsOf(job)).filter(([, running]) => running.length === 0)
    expect(idle).toHaveLength(1)

    // With a spare one its subtasks move behind a stop barrier.
    const [leaving] = Object.entries(await slotsOf(job)).find(([, running]) => running.length > 0)!
    await job.checkpoints(1)
    job.workers.get(leaving)!.signal('SIGTERM')
    await job.until('the worker to leave', () => !job.workers.get(leaving)!.running)
    expect(job.workers.get(leaving)!.end).toEqual({ code: 0, signal: null })
    await job.running()
    await job.checkpoints(1)
    expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0, lastFailure: { subtasks: 4 } })
    expect((await job.status()).lastFailure.message).toMatch(/^MR-O27 /)

    // Without one the job stops there too, and waits.
    const [last] = Object.keys(await slotsOf(job)) as [string]
    job.workers.get(last)!.signal('SIGTERM')
    await job.until('the worker to leave', () => !job.workers.get(last)!.running)
    await waitsWith(1)
    await job.startWorker(last)
    await job.running()
    await job.checkpoints(1)
    await job.startWorker(leaving)
    await job.until('it to register', async () => Object.keys(await slotsOf(job)).length === 3)
    expect((await job.status()).restarts).toBe(0)
    await world.expectExactToTheEnd(job)
  })

  it('loses the worker of one region, and only that region restarts', async () => {
    const perSplit = 10_000
    const args = { url: world.servers.ledger.url, splits, keys, perSplit, ratePerSecond: 4_000, checkpointMs: 200 }
    const job = await world.started({ file: regionsJob, args, parallelism: 1 })
    await job.checkpoints(1)
    type Subtask = { readonly vertex: string; readonly attempt: string }
    const attempts = async (region: string): Promise<readonly string[]> => {
      const { subtasks } = (await job.request('GET', '/v1/subtasks')).body as { readonly subtasks: readonly Subtask[] }
      return subtasks.filter(({ vertex }) => vertex.startsWith(region)).map(({ attempt }) => attempt)
    }
    const before = { left: await attempts('left'), right: await attempts('right') }
    await job.replaceWorker('worker-0')
    await job.until('a restart', async () => (await job.status())?.restarts === 1)
    await job.running()
    const after = { left: await attempts('left'), right: await attempts('right') }
    const unchanged = (['left', 'right'] as const).filter((region) => String(before[region]) === String(after[region]))
    expect(unchanged, JSON.stringify({ before, after })).toHaveLength(1)
    await job.checkpoints(1)
    for (const book of ['left', 'right']) await world.expectExact(job, perSplit, book)
  })
})

const quiet = realEnvironment({ log: () => undefined })

/** As it lies in the object store: what is written down at most every ten seconds. */
async function storedHistory(job: DistributedJob): Promise<string> {
  const { storage } = job.config
  const stores = await openStores({ storage, files: new NodeFiles(), environment: quiet, probe: false })
  try {
    const keys = await stores.objects.list(HISTORY_PREFIX)
    const texts = await Promise.all(keys.map((key) => stores.objects.read(key)))
    return texts.map((bytes) => Buffer.from(bytes ?? []).toString()).join('\n')
  } finally {
    await stores.close()
  }
}
