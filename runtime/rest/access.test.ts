import { afterEach, describe, expect, it } from 'vitest'
import { closeServed, ownerToken, readerToken, serve } from './harness.ts'
import type { Call } from './harness.ts'

afterEach(closeServed)

const tokens = { owner: ownerToken, reader: readerToken }
const reader = `Bearer ${readerToken}`

const owners: readonly (readonly [string, object])[] = [
  ['/v1/stop', { drain: false }],
  ['/v1/cancel', {}],
  ['/v1/close', {}],
  ['/v1/rescale', { parallelism: 2 }],
  ['/v1/workers/w1/lost', { reason: 'its pod is gone' }],
]

describe("the reader's token", () => {
  it('opens what tells of the job, and takes savepoints and checkpoints', async () => {
    const { call, fetched, job } = await serve({ tokens })
    for (const path of ['job', 'graph', 'subtasks', 'checkpoints', 'exceptions', 'restarts', 'workers', 'health'])
      expect((await call(`/v1/${path}`, { authorization: reader })).status, path).toBe(200)
    expect((await fetched('/metrics', { authorization: reader })).status).toBe(200)
    await call('/v1/savepoints', { authorization: reader, body: { request: 'r' } })
    await call('/v1/checkpoints', { authorization: reader, method: 'POST' })
    expect(job.asked).toEqual(['savepoint r', 'checkpoint'])
  })

  it.each(owners)('does not open %s, which the job does not hear of', async (path, body) => {
    const { call, job } = await serve({ tokens })
    const { status, body: answer } = await call(path, { authorization: reader, body })
    expect({ status, code: answer['code'] }).toEqual({ status: 403, code: 'MR-H07' })
    expect(answer['message']).toContain("owner's token")
    expect(answer['message']).not.toContain('kubectl')
    expect(job.asked).toEqual([])
    expect((await call(path, { authorization: `${reader}x`, body })).status).toBe(401)
  })

  it.each([
    ['/v1/stop', `kubectl patch streamjob/orders -n shop --type=merge -p '{"spec":{"state":"suspended"}}'`],
    ['/v1/close', `kubectl patch streamjob/orders -n shop --type=merge -p '{"spec":{"state":"suspended"}}'`],
    ['/v1/cancel', 'kubectl delete streamjob/orders -n shop'],
    ['/v1/rescale', 'kubectl scale streamjob/orders -n shop --replicas='],
  ])('at %s is told the kubectl command where an operator owns the job', async (path, command) => {
    const { call } = await serve({ tokens, kubernetes: { namespace: 'shop', name: 'orders' } })
    const { body } = await call(path, { authorization: reader, method: 'POST' })
    expect(body['message']).toContain(command)
  })
})

describe("the owner's token", () => {
  it.each(owners)('opens %s', async (path, body) => {
    const { call, job } = await serve({ tokens })
    const lost: string[] = []
    job.workers = workersWith((name, reason) => {
      lost.push(`${name}: ${reason}`)
      return true
    })
    expect((await call(path, { body })).status).toBe(202)
    expect([...job.asked, ...lost]).toHaveLength(1)
  })
})

describe('without a token', () => {
  it('there are only the probes', async () => {
    const { call, history, job } = await serve({ tokens })
    const nobody: Call = { authorization: '' }
    expect(await call('/livez', nobody)).toEqual({ status: 200, body: { live: true } })
    expect(await call('/readyz', nobody)).toEqual({ status: 503, body: { ready: false, waitsFor: null } })
    history.observer.began?.(job.head, job.head.restoredFrom)
    expect(await call('/readyz', nobody)).toEqual({ status: 200, body: { ready: true, waitsFor: null } })
    for (const path of ['/metrics', '/v1/health', '/v1/job', '/v1/openapi.json'])
      expect((await call(path, nobody)).status, path).toBe(401)
  })

  it('a process that has not begun says what it waits for', async () => {
    const { call } = await serve({ tokens, waitsFor: () => 'the object store' })
    expect(await call('/readyz', { authorization: '' })).toEqual({
      status: 503,
      body: { ready: false, waitsFor: 'the object store' },
    })
  })

  it('a process that found its job ended is ready: it answers for it', async () => {
    const { call, history, job } = await serve()
    history.observer.ended?.({ kind: 'ended', head: job.head })
    expect((await call('/readyz')).status).toBe(200)
    expect((await call('/v1/job')).body).toMatchObject({ state: 'ended', sinceMs: null })
  })
})

function workersWith(reportLost: (name: string, reason: string) => boolean) {
  return { slotsNeeded: 2, slotsOffered: 1, workers: [], reportLost }
}
