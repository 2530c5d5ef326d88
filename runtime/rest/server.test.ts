import { once } from 'node:events'
import { connect } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { checkpointId, requestId, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import { completeCheckpoint } from '../storage/head.ts'
import { settlePromises } from '../testkit/manual-clock.ts'
import { restError } from './errors.ts'
import { snapshotsRemembered } from './job-history.ts'
import { requestsWaitingMax } from './savepoint-requests.ts'
import { checkpointRef } from './test-job.ts'
import { closeServed, ownerToken as token, serve } from './harness.ts'
import type { Call } from './harness.ts'

afterEach(closeServed)

describe('HEAD that cannot be read in time', () => {
  it('is not there for now, and no failure to be told of at each look', async () => {
    const readHead = () => Promise.reject(restError('MR-H12', '2000 ms.'))
    const { call, logged } = await serve({ readHead })
    expect(await call('/v1/job')).toMatchObject({ status: 503, body: { code: 'MR-H12' } })
    expect(logged).toEqual([])
  })
})

describe('an address', () => {
  it('that somebody else has is one clear error', async () => {
    const { address } = await serve()
    const listen = { host: '127.0.0.1', port: Number(new URL(address).port) }
    await expect(serve({ listen })).rejects.toThrow(/^MR-H10 .*127\.0\.0\.1, port \d+: .*EADDRINUSE/)
  })
})

describe('a connection', () => {
  it('that says nothing, or only a part of a request, is cut off: it keeps nobody else out for long', async () => {
    const { address } = await serve()
    const { hostname: host, port } = new URL(address)
    const cutOff = ['', 'GET /livez HTTP/1.1\r\nhost: a\r\n'].map((said) => {
      const socket = connect({ host, port: Number(port) }).on('error', () => undefined)
      socket.resume().write(said)
      return once(socket, 'close', { signal: AbortSignal.timeout(20_000) })
    })
    await Promise.all(cutOff)
  }, 30_000)
})

describe('a request', () => {
  const strangers = ['', 'Bearer', 'Bearer wrong', `Basic ${token}`, `Bearer ${token}x`, `Bearer ${token} x`]
  it.each(strangers)('with the authorization %j is refused, wherever it goes', async (authorization) => {
    const { call, job } = await serve()
    for (const path of ['/v1/job', '/v1/openapi.json', '/nowhere'])
      expect(await call(path, { authorization })).toMatchObject({ status: 401, body: { code: 'MR-H01' } })
    expect(await call('/v1/cancel', { authorization, body: {} })).toMatchObject({ status: 401 })
    expect(job.asked).toEqual([])
  })

  it('for a path that is not there says so, without its query', async () => {
    const { call } = await serve()
    const { status, body } = await call('/v1/jobs?secret=1')
    expect({ status, code: body['code'] }).toEqual({ status: 404, code: 'MR-H02' })
    expect(body['message']).not.toContain('secret')
    expect(await call('/v1/cancel')).toMatchObject({ status: 404, body: { code: 'MR-H02' } })
  })

  const broken: readonly (readonly [string, string, Call])[] = [
    ['no JSON', '/v1/stop', { text: '{"drain":' }],
    ['another type', '/v1/stop', { text: 'drain=true', type: 'application/x-www-form-urlencoded' }],
    ['no object', '/v1/stop', { body: [true] }],
    ['a field that it lacks', '/v1/stop', { body: {} }],
    ['a field of another type', '/v1/stop', { body: { drain: 'yes' } }],
    ['a field that is not known', '/v1/stop', { body: { drain: true, force: true } }],
    ['an empty request id', '/v1/savepoints', { body: { request: '' } }],
    ['a request id that could be a path', '/v1/savepoints', { body: { request: '../head' } }],
    ['a long request id', '/v1/savepoints', { body: { request: 'a'.repeat(65) } }],
    ['a body of many bytes', '/v1/savepoints', { body: { request: 'a'.repeat(20_000) } }],
    ['something for a question that takes nothing', '/v1/cancel', { body: { now: true } }],
  ]
  it.each(broken)('with %s changes nothing, and is told why', async (_, path, given) => {
    const { call, job } = await serve()
    const { status, body } = await call(path, given)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
    expect(body).toEqual({ code: 'MR-H03', message: expect.stringMatching(/^MR-H03 .+/) as string })
    expect(job.asked).toEqual([])
  })

  it('that fails inside is told by its code, and logged without the token', async () => {
    const { call, job, logged } = await serve()
    Object.defineProperty(job, 'head', {
      get: () => {
        throw new Error('the disk is gone')
      },
    })
    const { status, body } = await call('/v1/job')
    expect({ status, code: body['code'] }).toEqual({ status: 500, code: 'MR-H06' })
    expect(logged.join()).toContain('the disk is gone')
    expect(logged.join()).not.toContain(token)
  })
})

describe('the job', () => {
  it('is starting, running, restarting and ending', async () => {
    const { call, history, job } = await serve()
    history.observer.began?.(job.head, job.head.restoredFrom)
    const state = async () => (await call('/v1/job')).body['state']
    expect(await state()).toBe('starting')
    history.observer.running?.()
    expect(await state()).toBe('running')
    job.execution = { ...job.execution!, allRunning: false }
    history.observer.restarting?.({ message: 'a slot was lost', inMs: 100, tasks: 2 })
    expect((await call('/v1/job')).body).toEqual({
      id: 'orders',
      instance: 'i1',
      state: 'restarting',
      start: 1,
      incarnation: 1,
      parallelism: 1,
      maxParallelism: 8,
      restarts: 0,
      sinceMs: 1_700_000_000_000,
      restorePoint: { kind: 'empty' },
      end: { kind: 'none' },
      unconfirmed: null,
      waitsFor: null,
      slotsNeeded: null,
      slotsOffered: null,
      restore: { bytesRead: null, bytes: null, subtasksRestored: 2, subtasks: 2 },
      lastFailure: { atMs: 1_700_000_000_000, message: 'a slot was lost', subtasks: 2, restartInMs: 100 },
    })
    job.head = { ...job.head, end: { kind: 'failed', reason: 'no more' } }
    expect((await call('/v1/job')).body).toMatchObject({ state: 'ending', end: { kind: 'failed', reason: 'no more' } })
  })

  it('has a graph of vertices and edges', async () => {
    const { call } = await serve()
    const { body } = await call('/v1/graph')
    expect(body).toMatchObject({
      vertices: [{ id: 'orders', operators: [{ uid: 'orders', name: 'source', uidGiven: true }] }],
      edges: [{ source: 'orders', target: 'sums', partitioning: 'hash' }],
    })
  })

  it('has subtasks, of which null is unknown and 0 is none', async () => {
    const { call } = await serve()
    const { body } = await call('/v1/subtasks')
    const common = { subtask: 0, attempt: '1.2', status: 'running', worker: null }
    expect(body['subtasks']).toEqual([
      {
        ...common,
        vertex: 'orders',
        recordsIn: null,
        recordsOut: null,
        bytesIn: null,
        bytesOut: null,
        busyMs: null,
        idleMs: null,
        backpressuredMs: null,
        watermark: null,
        stateEntries: null,
        metrics: {},
      },
      {
        ...common,
        vertex: 'sums',
        recordsIn: 10,
        recordsOut: 0,
        bytesIn: 0,
        bytesOut: 0,
        busyMs: 5.5,
        idleMs: 0,
        backpressuredMs: 0,
        watermark: 'end',
        stateEntries: 4,
        metrics: { 'user.cancelled_orders': 3 },
      },
    ])
  })

  it('has checkpoints: those of HEAD, the pending one, and the newest of what completed and failed', async () => {
    const { call, job, history, clock } = await serve()
    const vertex = vertexId('sums')
    const task = { vertex, subtask: subtaskIndex(0) }
    const figures = { finished: false, bytes: 7, syncMs: 1, asyncMs: 2, alignmentMs: 3, startDelayMs: 4 }
    for (let id = 1; id <= snapshotsRemembered + 1; id++) {
      const manifest = checkpointRef(id)
      const snapshot = { operators: {}, ...figures }
      history.observer.checkpointCompleted?.({
        manifest,
        durationMs: 12,
        collected: {
          id: checkpointId(id),
          kind: 'checkpoint',
          triggeredAtMs: 0,
          subtasks: new Map([[taskKey(task), { task, snapshot }]]),
          request: undefined,
        },
      })
    }
    history.observer.checkpointFailed?.({
      id: checkpointId(22),
      kind: 'checkpoint',
      reason: 'expired',
      detail: 'after 10 ms',
    })
    job.head = completeCheckpoint(job.head, { manifest: checkpointRef(9), retainedMax: 3, commitsPending: false })
    clock.advance(50)
    job.checkpoints = {
      ...job.checkpoints!,
      pending: {
        id: checkpointId(23),
        kind: 'checkpoint',
        request: undefined,
        phase: 'collecting',
        triggeredAtMs: 20,
        missing: new Set([taskKey(task)]),
      },
    }
    const { body } = await call('/v1/checkpoints')
    expect(body).toMatchObject({
      counters: { triggered: 3, completed: 2, failed: 1, consecutiveFailures: 1 },
      intervalMs: 10_000,
      pending: { id: 23, forMs: 30, phase: 'collecting', missing: ['sums/0'] },
      retained: [{ id: 9, path: '/store/chk-9/_metadata' }],
      failed: [{ id: 22, reason: 'expired', detail: 'after 10 ms' }],
    })
    const completed = body['completed'] as { readonly id: number }[]
    expect(completed.map(({ id }) => id)).toEqual(Array.from({ length: snapshotsRemembered }, (_, index) => index + 2))
    expect(completed.at(-1)).toMatchObject({ durationMs: 12, subtasks: [{ vertex: 'sums', subtask: 0, ...figures }] })
  })
})

describe('what the job is asked for', () => {
  it('is passed on: a checkpoint, the end', async () => {
    const { call, job } = await serve()
    expect(await call('/v1/checkpoints', { method: 'POST' })).toEqual({ status: 202, body: {} })
    expect(await call('/v1/cancel', { text: '' })).toEqual({ status: 202, body: { end: { kind: 'none' } } })
    expect(job.asked).toEqual(['checkpoint', 'cancel'])
  })

  it('is a savepoint, once, however often the request is repeated, and the answer stays', async () => {
    const { call, job } = await serve()
    const ask = () => call('/v1/savepoints', { body: { request: 'r1' } })
    const pending = { request: 'r1', state: 'pending' }
    expect(await ask()).toEqual({ status: 202, body: pending })
    expect(await ask()).toEqual({ status: 202, body: pending })
    expect(await call('/v1/savepoints/r1')).toEqual({ status: 200, body: pending })
    job.complete(requestId('r1'), 4)
    const done = { request: 'r1', state: 'completed', savepoint: { id: 4, path: '/store/savepoint-4/_metadata' } }
    expect(await ask()).toMatchObject({ status: 200, body: done })
    expect(await call('/v1/savepoints/r1')).toMatchObject({ status: 200, body: done })
    expect(job.asked).toEqual(['savepoint r1'])
  })

  it('has a name of its own when it is given none', async () => {
    const { call, job } = await serve()
    expect((await call('/v1/savepoints', { method: 'POST' })).body).toEqual({ request: 'made-1', state: 'pending' })
    expect((await call('/v1/stop', { body: { drain: true } })).body).toEqual({ request: 'made-2', state: 'pending' })
    expect(job.asked).toEqual(['savepoint made-1', 'drain made-2'])
    expect(await call('/v1/savepoints/other')).toMatchObject({ status: 404, body: { code: 'MR-H02' } })
  })

  it('may fail, which is told; unless HEAD knows of it, the same request may be made again', async () => {
    const { call, job } = await serve()
    const ask = () => call('/v1/stop', { body: { drain: false, request: 's' } })
    await ask()
    job.head = { ...job.head, savepointRequests: [] }
    job.answer(requestId('s'), { outcome: 'failed', detail: 'HEAD cannot be written' })
    await settlePromises()
    const failed = { request: 's', state: 'failed', detail: 'HEAD cannot be written' }
    expect(await call('/v1/savepoints/s')).toEqual({ status: 200, body: failed })
    expect(await ask()).toMatchObject({ status: 202, body: { state: 'pending' } })
    job.head = {
      ...job.head,
      savepointRequests: [],
      savepointResults: [{ request: requestId('s'), outcome: 'failed', detail: 'expired' }],
    }
    expect(await ask()).toEqual({ status: 200, body: { request: 's', state: 'failed', detail: 'expired' } })
    expect(job.asked).toEqual(['stop s', 'stop s'])
  })

  it('is refused under the name of another request: else a stop would be answered by the savepoint of before', async () => {
    const { call, job } = await serve()
    await call('/v1/savepoints', { body: { request: 'r1' } })
    const stop = () => call('/v1/stop', { body: { drain: false, request: 'r1' } })
    expect(await stop()).toMatchObject({ status: 409, body: { code: 'MR-H05' } })
    job.complete(requestId('r1'), 4)
    expect(await stop()).toMatchObject({ status: 409, body: { code: 'MR-H05' } })
    const { call: callAfterRestart, job: next } = await serve()
    next.head = job.head
    expect(await callAfterRestart('/v1/stop', { body: { drain: true, request: 'r1' } })).toMatchObject({ status: 409 })
    expect(next.asked).toEqual([])
  })

  it('is refused before the job has begun, and when too much waits', async () => {
    const { call, job } = await serve()
    const { execution } = job
    job.execution = undefined
    for (const path of ['/v1/savepoints', '/v1/checkpoints'])
      expect(await call(path, { method: 'POST' })).toMatchObject({ status: 409, body: { code: 'MR-H04' } })
    job.execution = execution
    for (let asked = 0; asked < requestsWaitingMax; asked++)
      expect((await call('/v1/savepoints', { method: 'POST' })).status).toBe(202)
    expect(await call('/v1/savepoints', { method: 'POST' })).toMatchObject({ status: 409, body: { code: 'MR-H04' } })
    expect(job.asked).toHaveLength(requestsWaitingMax)
  })
})
