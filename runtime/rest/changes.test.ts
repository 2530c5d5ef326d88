import { afterEach, describe, expect, it } from 'vitest'
import { requestId, start } from '../base/ids.ts'
import { cancel, close, failSavepoint, requestSavepoint, rescale } from '../storage/head.ts'
import { settlePromises } from '../testkit/manual-clock.ts'
import { TestJob, checkpointRef } from './test-job.ts'
import { closeServed, serve } from './harness.ts'

afterEach(closeServed)

/** As a job on a cluster is served: every change names its start and its request. */
async function serveIdentified(job = new TestJob()) {
  const served = await serve({ job, identified: true, readHead: async () => job.head })
  served.history.observer.began?.(job.head, job.head.restoredFrom)
  return { ...served, job }
}

const own = (request: string) => ({ start: 1, request })

describe('a change of a job on a cluster', () => {
  const changes: readonly (readonly [string, object])[] = [
    ['/v1/checkpoints', {}],
    ['/v1/savepoints', {}],
    ['/v1/stop', { drain: false }],
    ['/v1/rescale', { parallelism: 2 }],
    ['/v1/close', {}],
    ['/v1/cancel', {}],
    ['/v1/workers/w1/lost', { reason: 'gone' }],
  ]

  it.each(changes)('at %s must name its start and its request', async (path, body) => {
    const { call, job } = await serveIdentified()
    for (const words of [{}, { start: 1 }, { request: 'r' }])
      expect(await call(path, { body: { ...body, ...words } })).toMatchObject({ status: 400, body: { code: 'MR-H03' } })
    expect(job.asked).toEqual([])
  })

  it.each(changes)(
    'at %s for another start is refused: it was meant for another life of the job',
    async (path, body) => {
      const { call, job } = await serveIdentified()
      for (const other of [0, 2]) {
        const { status, body: answer } = await call(path, { body: { ...body, start: other, request: 'r' } })
        expect({ status, code: answer['code'] }).toEqual({ status: 409, code: 'MR-H08' })
        expect(answer['message']).toContain(`It is for start ${other}, and this is start 1.`)
      }
      expect(job.asked).toEqual([])
    },
  )

  it('is told by HEAD which start this is, before it has begun', async () => {
    const { call, job } = await serve({ identified: true })
    job.head = { ...job.head, start: start(7) }
    expect(await call('/v1/cancel', { body: own('r') })).toMatchObject({ status: 409, body: { code: 'MR-H08' } })
    expect((await call('/v1/cancel', { body: { start: 7, request: 'r' } })).status).toBe(202)
  })

  it('that is repeated is done once', async () => {
    const { call, job } = await serveIdentified()
    let told = 0
    job.workers = {
      slotsNeeded: 1,
      slotsOffered: 1,
      workers: [],
      // The second time it would be known no more.
      reportLost: () => ++told === 1,
    }
    for (const [index, [path, body]] of changes.entries()) {
      const words = { ...body, ...own(`r${index}`) }
      const first = await call(path, { body: words })
      expect([path, first.status]).toEqual([path, 202])
      expect(await call(path, { body: words })).toEqual(first)
    }
    expect(told).toBe(1)
    expect(job.asked).toEqual(['checkpoint', 'savepoint r1', 'stop r2', 'rescale r3 2', 'suspend', 'cancel'])
  })

  it('under the id of another one is refused', async () => {
    const { call, job } = await serveIdentified()
    await call('/v1/rescale', { body: { parallelism: 2, ...own('r') } })
    await call('/v1/checkpoints', { body: own('c') })
    const asked = [...job.asked]
    for (const [path, body] of [
      ['/v1/rescale', { parallelism: 3, ...own('r') }],
      ['/v1/savepoints', own('r')],
      ['/v1/cancel', own('r')],
      ['/v1/cancel', own('c')],
      ['/v1/close', own('c')],
    ] as const)
      expect(await call(path, { body })).toMatchObject({ status: 409, body: { code: 'MR-H05' } })
    expect(job.asked).toEqual(asked)
  })
})

describe('a rescale', () => {
  it('is pending, and then completed with the checkpoint that the new size began from', async () => {
    const { call, job } = await serveIdentified()
    const ask = () => call('/v1/rescale', { body: { parallelism: 4, ...own('r') } })
    expect(await ask()).toEqual({ status: 202, body: { request: 'r', state: 'pending' } })
    const request = requestId('r')
    const completed = { manifest: checkpointRef(5), retainedMax: 3, commitsPending: false }
    job.head = rescale(job.head, { request, parallelism: 4, ...completed })
    job.answer(request, { outcome: 'completed', manifest: checkpointRef(5) })
    const done = { request: 'r', state: 'completed', checkpoint: { id: 5, path: '/store/chk-5/_metadata' } }
    expect(await ask()).toMatchObject({ status: 200, body: done })
    expect(await call('/v1/rescale/r')).toMatchObject({ status: 200, body: done })
    expect(await call('/v1/job')).toMatchObject({ body: { parallelism: 4 } })
    expect(job.asked).toEqual(['rescale r 4'])
  })

  it('has its answer after the loss of the coordinator too, and its id is used for nothing else', async () => {
    const before = await serveIdentified()
    await before.call('/v1/rescale', { body: { parallelism: 4, ...own('waits') } })
    const request = requestId('done')
    const completed = { manifest: checkpointRef(5), retainedMax: 3, commitsPending: false }
    const standing = requestSavepoint(before.job.head, { request, mode: 'rescale', parallelism: 4 })
    before.job.head = rescale(standing, { request, parallelism: 4, ...completed })
    const job = new TestJob()
    job.head = before.job.head
    const { call } = await serveIdentified(job)
    const ask = (id: string) => call('/v1/rescale', { body: { parallelism: 4, ...own(id) } })
    expect(await ask('waits')).toEqual({ status: 202, body: { request: 'waits', state: 'pending' } })
    expect(await ask('done')).toMatchObject({ status: 200, body: { state: 'completed', checkpoint: { id: 5 } } })
    expect(await call('/v1/savepoints', { body: own('done') })).toMatchObject({ status: 409 })
    for (const id of ['waits', 'done'])
      expect(await call('/v1/rescale', { body: { parallelism: 3, ...own(id) } })).toMatchObject({ status: 409 })
    expect(job.asked).toEqual([])
  })

  it('has its answer in its own start alone: in the next one its id is told to have been used', async () => {
    const job = new TestJob()
    const failed = requestSavepoint(job.head, { request: requestId('nightly'), mode: 'savepoint' })
    job.head = { ...failSavepoint(failed, { request: requestId('nightly'), detail: 'expired' }), start: start(2) }
    const { call } = await serveIdentified(job)
    const { status, body } = await call('/v1/savepoints', { body: { ...own('nightly'), start: 2 } })
    expect({ status, code: body['code'] }).toEqual({ status: 409, code: 'MR-H05' })
    expect(body['message']).toContain('nightly was to take a savepoint in start 1.')
    expect(job.asked).toEqual([])
  })

  it('above the max parallelism, or to nothing, is refused with the number', async () => {
    const { call, job } = await serveIdentified()
    const ask = (parallelism: number) => call('/v1/rescale', { body: { parallelism, ...own('r') } })
    const { status, body } = await ask(9)
    expect({ status, code: body['code'] }).toEqual({ status: 400, code: 'MR-H03' })
    expect(body['message']).toContain('9 is more than the max parallelism of the job, 8')
    expect(await ask(0)).toMatchObject({ status: 400 })
    expect(await ask(1.5)).toMatchObject({ status: 400 })
    expect(job.asked).toEqual([])
  })

  it('that failed may be asked for again', async () => {
    const { call, job } = await serveIdentified()
    const ask = () => call('/v1/rescale', { body: { parallelism: 4, ...own('r') } })
    await ask()
    job.head = { ...job.head, savepointRequests: [] }
    job.answer(requestId('r'), { outcome: 'failed', detail: 'it needs 4 slots, and the workers offer 2' })
    await settlePromises()
    expect((await call('/v1/rescale/r')).body).toMatchObject({
      state: 'failed',
      detail: 'it needs 4 slots, and the workers offer 2',
    })
    expect(await ask()).toMatchObject({ status: 202 })
  })
})

describe('a change that HEAD holds', () => {
  it('waits, whatever this process heard of it: it will be carried out (rule 21)', async () => {
    const { call, job } = await serveIdentified()
    const ask = () => call('/v1/stop', { body: { drain: false, ...own('r') } })
    await ask()
    job.answer(requestId('r'), { outcome: 'failed', detail: 'HEAD stayed unclear' })
    await settlePromises()
    expect((await call('/v1/savepoints/r')).body).toMatchObject({ state: 'pending' })
    expect((await ask()).body).toMatchObject({ state: 'pending' })
    job.complete(requestId('r'), 5)
    expect((await call('/v1/savepoints/r')).body).toMatchObject({ state: 'completed' })
  })
})

describe('a job that has ended', () => {
  it('says so to whoever asks for a snapshot, and is not asked', async () => {
    const { call, job } = await serveIdentified()
    job.head = cancel(job.head, { deleted: false })
    const ended = { request: 'r', state: 'ended', detail: 'the job has ended (cancelled)' }
    expect(await call('/v1/savepoints', { body: own('r') })).toEqual({ status: 200, body: ended })
    expect(await call('/v1/stop', { body: { drain: true, ...own('r') } })).toEqual({ status: 200, body: ended })
    expect(await call('/v1/rescale', { body: { parallelism: 2, ...own('r') } })).toEqual({ status: 200, body: ended })
    expect(job.asked).toEqual([])
  })

  it('says so of what it was asked for before, whether its coordinator says it or HEAD', async () => {
    const { call, job } = await serveIdentified()
    await call('/v1/savepoints', { body: own('told') })
    // HEAD never had it.
    job.head = { ...job.head, savepointRequests: [] }
    await call('/v1/savepoints', { body: own('waits') })
    job.answer(requestId('told'), { outcome: 'ended', detail: 'the job has ended' })
    await settlePromises()
    expect((await call('/v1/savepoints/told')).body).toEqual({
      request: 'told',
      state: 'ended',
      detail: 'the job has ended',
    })
    job.head = close(job.head)
    expect((await call('/v1/savepoints/waits')).body).toMatchObject({ state: 'ended' })
  })
})

describe('a process that another one has overtaken', () => {
  it('passes nothing on, and says so: the job runs elsewhere', async () => {
    const { call, job, history } = await serveIdentified()
    history.observer.ended?.({ kind: 'fenced', head: job.head })
    for (const [path, body] of [
      ['/v1/savepoints', {}],
      ['/v1/checkpoints', {}],
      ['/v1/rescale', { parallelism: 2 }],
      ['/v1/close', {}],
      ['/v1/cancel', {}],
    ] as const) {
      const { status, body: answer } = await call(path, { body: { ...body, ...own('r') } })
      expect({ path, status, code: answer['code'] }).toEqual({ path, status: 409, code: 'MR-H04' })
      expect(answer['message']).toContain('does not run it any more (fenced)')
    }
    expect(job.asked).toEqual([])
  })
})

describe('to close a job', () => {
  it('is asked for until HEAD has it', async () => {
    const { call, job } = await serveIdentified()
    const ask = () => call('/v1/close', { body: own('r') })
    expect(await ask()).toEqual({ status: 202, body: { end: { kind: 'none' } } })
    job.head = close(job.head)
    expect(await ask()).toEqual({ status: 200, body: { end: { kind: 'suspended' } } })
    expect(job.asked).toEqual(['suspend'])
  })

  it('does nothing to an end that is there, whichever', async () => {
    const { call, job } = await serveIdentified()
    job.head = cancel(job.head, { deleted: false })
    expect(await call('/v1/close', { body: own('r') })).toEqual({ status: 200, body: { end: { kind: 'cancelled' } } })
    expect(job.asked).toEqual([])
  })

  it('is passed on though HEAD cannot be read: the coordinator closes it when it can', async () => {
    const job = new TestJob()
    const { call, history } = await serve({
      job,
      identified: true,
      readHead: () => Promise.reject(new Error('the store is away')),
    })
    history.observer.began?.(job.head, job.head.restoredFrom)
    expect(await call('/v1/close', { body: own('r') })).toEqual({ status: 202, body: { end: null } })
    expect(await call('/v1/cancel', { body: own('c') })).toEqual({ status: 202, body: { end: null } })
    expect(job.asked).toEqual(['suspend', 'cancel'])
  })
})

describe("a worker's loss", () => {
  it('of a worker that is not there, or of a local job, is refused', async () => {
    const { call, job } = await serveIdentified()
    const report = () => call('/v1/workers/w9/lost', { body: { reason: 'evicted', ...own('r') } })
    expect(await report()).toMatchObject({ status: 404, body: { code: 'MR-H02' } })
    job.workers = { slotsNeeded: 1, slotsOffered: 0, workers: [], reportLost: () => false }
    expect(await report()).toMatchObject({ status: 404, body: { code: 'MR-H02' } })
    job.workers = { ...job.workers, reportLost: () => true }
    expect((await report()).status).toBe(202)
  })
})
