import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import { Coordinators } from './coordinator-client.ts'
import type { CoordinatorAddress, Question } from './coordinator-client.ts'

const address: CoordinatorAddress = { host: 'job-coordinator.n.svc', port: 8081, token: 'secret', authority: 'PEM' }
const manifest = {
  id: 7,
  kind: 'checkpoint',
  path: 's3://b/chk-7',
  start: 3,
  completedAtMs: 5,
  bytes: 10,
  drained: false,
}
const job = {
  start: 3,
  incarnation: 9,
  state: 'running',
  parallelism: 2,
  restarts: 1,
  restorePoint: { kind: 'manifest', manifest },
  end: { kind: 'none' },
  unconfirmed: null,
  slotsNeeded: 2,
  slotsOffered: null,
  restore: null,
  lastFailure: null,
  aFieldOfALaterVersion: true,
}
const answers: Record<string, { status: number; body: unknown }> = {
  '/v1/job': { status: 200, body: job },
  '/v1/checkpoints': {
    status: 200,
    body: {
      counters: { triggered: 1, completed: 1, failed: 0, consecutiveFailures: 0 },
      intervalMs: 500,
      pending: null,
      retained: [manifest],
      completed: [{ ...manifest, durationMs: 1.5, subtasks: null }],
      failed: [],
    },
  },
  '/v1/workers': {
    status: 200,
    body: { workers: [{ name: 'w-0', address: 'a', slots: 1, running: [], state: 'registered', sinceMs: 1 }] },
  },
  '/v1/health': {
    status: 200,
    body: { ready: true, storage: { state: 'failed', detail: null }, nats: { state: 'unknown', detail: null } },
  },
}

function subject() {
  const { clock, random } = manualEnvironment()
  const calls: string[] = []
  const own = { ...answers }
  let open = 0
  const coordinators = new Coordinators({
    clock,
    random,
    dial: () => {
      open++
      return {
        call: async (method, path, body) => {
          calls.push(body === undefined ? `${method} ${path}` : `${method} ${path} ${JSON.stringify(body)}`)
          const answer = own[method === 'GET' ? path : `${method} ${path}`]
          if (answer === undefined) throw new Error('job-coordinator.n.svc: no answer in time')
          return answer
        },
        close: () => open--,
      }
    },
  })
  const question: Question = { uid: 'u', address, why: '', requests: [], hasInterval: false, ageMsMax: 1_000 }
  return { coordinators, calls, own, clock, question, open: () => open }
}

describe('what a coordinator says', () => {
  it('is one fact; what it does not know is unknown, not false', async () => {
    const { coordinators, question, open } = subject()
    const fact = await coordinators.ask(question)
    expect(fact).toMatchObject({
      known: true,
      value: {
        start: 3,
        incarnation: 9,
        state: 'running',
        end: 'none',
        completedInStart: true,
        restorePoint: { kind: 'checkpoint', path: 's3://b/chk-7', id: 7, start: 3, madeBy: 3, unconfirmed: false },
        lastCheckpoint: { id: 7, time: '1970-01-01T00:00:00.005Z', durationMs: 2, kind: 'checkpoint' },
        workers: [{ name: 'w-0', state: 'registered' }],
        storageAnswers: false,
        checkpointing: 'on',
      },
    })
    expect(fact.known && [fact.value.natsAnswers, fact.value.slotsOffered]).toEqual([undefined, undefined])
    expect(open()).toBe(0)
  })

  it.each([
    ['an interval', { intervalMs: 500 }, false, 'on'],
    ['none, though one was taken that was asked for', { intervalMs: null }, true, 'off'],
    ['nothing, while the spec has an interval', {}, true, 'on'],
    ['nothing, while the code may have one', {}, false, undefined],
  ])('of its checkpoints: it says %s', async (_, says, hasInterval, checkpointing) => {
    const { coordinators, question, own } = subject()
    const { intervalMs: _interval, ...rest } = own['/v1/checkpoints']!.body as { readonly intervalMs: number }
    own['/v1/checkpoints'] = { status: 200, body: { ...rest, ...says } }
    const fact = await coordinators.ask({ ...question, hasInterval })
    expect(fact.known && fact.value.checkpointing).toBe(checkpointing)
  })

  it('before it has begun is unknown, but for what it waits for', async () => {
    const { coordinators, question, own } = subject()
    own['/v1/job'] = { status: 503, body: { code: 'MR-H11' } }
    expect(await coordinators.ask(question)).toEqual({
      known: false,
      why: 'GET /v1/job was answered by 503',
      services: { storageAnswers: false, natsAnswers: undefined },
    })
  })

  it('is asked again when it is older than somebody needs, and when another request is wanted', async () => {
    const { coordinators, question, calls, clock, own } = subject()
    await coordinators.ask(question)
    await coordinators.ask(question)
    expect(calls.filter((call) => call === 'GET /v1/job')).toHaveLength(1)
    clock.advance(1_300)
    await coordinators.ask(question)
    expect(calls.filter((call) => call === 'GET /v1/job')).toHaveLength(2)
    own['/v1/savepoints/r%2F1'] = {
      status: 200,
      body: { request: 'r/1', state: 'completed', savepoint: { ...manifest, kind: 'savepoint' } },
    }
    own['/v1/rescale/r2'] = { status: 404, body: { code: 'MR-H02' } }
    const fact = await coordinators.ask({
      ...question,
      requests: [
        { name: 'r/1', kind: 'savepoint' },
        { name: 'r2', kind: 'rescale' },
      ],
    })
    expect(fact.known && fact.value.requests).toEqual({ 'r/1': { state: 'completed', path: 's3://b/chk-7', id: 7 } })
  })

  it('is unknown with why when it does not answer, answers strangely, or cannot be asked', async () => {
    const { coordinators, question, own } = subject()
    expect(await coordinators.ask({ ...question, address: undefined, why: 'no pod runs' })).toEqual({
      known: false,
      why: 'no pod runs',
    })
    own['/v1/workers'] = { status: 503, body: 'busy' }
    expect(await coordinators.ask(question)).toMatchObject({ known: false, why: 'GET /v1/workers was answered by 503' })
    own['/v1/workers'] = { status: 200, body: [] }
    expect(await coordinators.ask({ ...question, ageMsMax: 0 })).toMatchObject({
      known: false,
      why: 'the answer to GET /v1/workers is not what was expected',
    })
    delete own['/v1/workers']
    expect(await coordinators.ask({ ...question, ageMsMax: 0 })).toMatchObject({
      known: false,
      why: expect.stringContaining('in time') as string,
    })
  })

  it('of a job that runs as it should one missed answer is no news; several are, and so is one while something is under way', async () => {
    const { coordinators, question, own, clock } = subject()
    const settled: Question = { ...question, ageMsMax: 15_000 }
    expect(await coordinators.ask(settled)).toMatchObject({ known: true })
    const { '/v1/job': answer } = own
    delete own['/v1/job']
    clock.advance(20_000)
    expect(await coordinators.ask(settled)).toMatchObject({ known: true })
    expect(await coordinators.ask({ ...question, ageMsMax: 400 })).toMatchObject({ known: false })
    own['/v1/job'] = answer!
    clock.advance(20_000)
    expect(await coordinators.ask(settled)).toMatchObject({ known: true })
    delete own['/v1/job']
    clock.advance(36_000)
    expect(await coordinators.ask(settled)).toMatchObject({ known: false })
  })

  it('a request carries start and id, and what was known is asked anew', async () => {
    const { coordinators, question, calls, own } = subject()
    await coordinators.ask(question)
    own['POST /v1/stop'] = { status: 202, body: {} }
    await coordinators.request('u', address, { type: 'stop', start: 3, request: 'r', drain: false })
    expect(calls.at(-1)).toBe('POST /v1/stop {"start":3,"request":"r","drain":false}')
    await coordinators.ask(question)
    expect(calls.filter((call) => call === 'GET /v1/job')).toHaveLength(2)
  })

  it('a request that is refused for good is answered as failed; any other refusal is tried again', async () => {
    const { coordinators, question, own } = subject()
    own['POST /v1/rescale'] = { status: 400, body: { code: 'MR-H03', message: '900 is more than 128' } }
    await coordinators.request('u', address, { type: 'rescale', start: 3, request: 'r', parallelism: 900 })
    const fact = await coordinators.ask({ ...question, requests: [{ name: 'r', kind: 'rescale' }] })
    expect(fact.known && fact.value.requests['r']).toEqual({
      state: 'failed',
      detail: 'POST /v1/rescale was answered by 400: 900 is more than 128',
    })
    own['POST /v1/close'] = { status: 409, body: { code: 'MR-H08', message: 'this is start 4' } }
    await expect(coordinators.request('u', address, { type: 'close', start: 3, request: 'c' })).rejects.toThrow(
      'start 4',
    )
    own['POST /v1/workers/w-9/lost'] = { status: 404, body: { code: 'MR-H02' } }
    await coordinators.request('u', address, { type: 'lost', start: 3, request: 'l', worker: 'w-9', reason: 'gone' })
  })

  it('a checkpoint that was asked for is pending with this incarnation alone', async () => {
    const { coordinators, question, own } = subject()
    const asked: Question = { ...question, ageMsMax: 0, requests: [{ name: 'c', kind: 'checkpoint' }] }
    expect(await coordinators.ask(asked)).toMatchObject({ value: { requests: {} } })
    own['POST /v1/checkpoints'] = { status: 202, body: {} }
    await coordinators.request('u', address, { type: 'checkpoint', start: 3, request: 'c' })
    expect(await coordinators.ask(asked)).toMatchObject({ value: { requests: { c: { state: 'pending' } } } })
    own['/v1/job'] = { status: 200, body: { ...job, incarnation: 10 } }
    const fact = await coordinators.ask(asked)
    expect(fact.known && fact.value.requests).toEqual({})
  })

  it('a checkpoint that was asked for and is never begun has failed after a while, unless one is taken now', async () => {
    const { coordinators, question, own, clock } = subject()
    const asked: Question = { ...question, ageMsMax: 0, requests: [{ name: 'c', kind: 'checkpoint' }] }
    await coordinators.ask(asked)
    own['POST /v1/checkpoints'] = { status: 202, body: {} }
    await coordinators.request('u', address, { type: 'checkpoint', start: 3, request: 'c' })
    const state = async () => {
      const fact = await coordinators.ask(asked)
      return fact.known ? fact.value.requests['c']?.state : fact.why
    }
    clock.advance(600_000)
    expect(await state()).toBe('pending')
    clock.advance(100_000)
    expect(await state()).toBe('failed')
    const { '/v1/checkpoints': checkpoints } = own
    const pending = { id: 8, kind: 'checkpoint', phase: 'collecting', forMs: 1, missing: [] }
    own['/v1/checkpoints'] = { status: 200, body: { ...(checkpoints!.body as object), pending } }
    expect(await state()).toBe('pending')
  })

  it('snapshots are known by the greatest id of any, and by the last that failed', async () => {
    const { coordinators, question, own } = subject()
    const asked: Question = { ...question, ageMsMax: 0 }
    expect(await coordinators.ask(asked)).toMatchObject({ value: { snapshots: { newest: 7, isPending: false } } })
    const { '/v1/checkpoints': checkpoints } = own
    const failed = [8, 9].map((id) => ({ id, atMs: 1, reason: 'expired', detail: 'no answer' }))
    const pending = { id: 10, kind: 'savepoint', phase: 'collecting', forMs: 1, missing: [] }
    own['/v1/checkpoints'] = { status: 200, body: { ...(checkpoints!.body as object), failed, pending } }
    expect(await coordinators.ask(asked)).toMatchObject({
      value: { snapshots: { newest: 10, isPending: true, lastFailed: { id: 9, detail: 'expired: no answer' } } },
    })
  })
})
