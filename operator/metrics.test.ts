import { afterEach, describe, expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import { Events } from './events.ts'
import { MemoryApi } from './harness/memory-api.ts'
import { fastClock, OperatorWorld } from './harness/operator-world.ts'
import { readiness } from './health.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { serveHealth } from './platform/http-servers.ts'
import type { RunningServer } from './platform/http-servers.ts'

let server: RunningServer | undefined
let world: OperatorWorld | undefined
afterEach(async () => {
  await server?.close()
  await world?.close()
  server = undefined
  world = undefined
})

describe('metrics', () => {
  it('count looks, requests and jobs', async () => {
    const clock = fastClock(20)
    const api = new MemoryApi(() => clock.wallMs())
    world = new OperatorWorld({ client: api.client(), clock, makesPods: true, namespace: 'n', deadlineMs: 15_000 })
    const operator = await world.operate('first', { client: api.client() })
    await world.createJob('job', { parallelism: 2 })
    await world.until('it runs', () => world!.isSettled('job'))
    const text = await operator.metrics.text()
    const valueOf = (name: string): number => {
      const line = text.split('\n').find((one) => one.startsWith(`${name} `))
      return Number(line?.split(' ').at(-1))
    }
    expect(valueOf('millrace_jobs')).toBe(1)
    expect(valueOf('millrace_job_phase{namespace="n",name="job",phase="RUNNING"}')).toBe(1)
    expect(valueOf('millrace_job_parallelism{namespace="n",name="job"}')).toBe(2)
    expect(valueOf('millrace_job_restarts{namespace="n",name="job"}')).toBe(0)
    expect(valueOf('millrace_operator_leading')).toBe(1)
    expect(valueOf('millrace_operator_reconcile_total{kind="StreamJob",result="ok"}')).toBeGreaterThan(5)
    expect(valueOf('millrace_operator_api_requests_total{verb="status",kind="StreamJob",code="2xx"}')).toBeGreaterThan(
      3,
    )
    expect(valueOf('millrace_operator_cache_age_seconds{kind="Pod"}')).toBeGreaterThanOrEqual(0)
    await world.delete('job')
    await world.until('it is gone', async () => (await world!.job('job')) === undefined)
    await world.until('it is forgotten', async () => !(await operator.metrics.text()).includes('name="job"'))
  })
})

describe('readiness', () => {
  it('is false with the reason', () => {
    expect(readiness({ isFilled: true, stale: [], isLeaseKnown: true })).toEqual({ status: 200, body: 'ready\n' })
    expect(readiness({ isFilled: false, stale: ['Pod'], isLeaseKnown: false })).toEqual({
      status: 503,
      body: 'not ready: the caches are not filled yet: Pod; it is not known who leads\n',
    })
    expect(readiness({ isFilled: true, stale: ['Pod'], isLeaseKnown: true }).body).toContain('Pod')
  })

  it('is served, and so is nothing else', async () => {
    server = await serveHealth(0, {
      '/readyz': () => ({ status: 503, body: 'no\n' }),
      '/metrics': () => Promise.reject(new Error('broken')),
    })
    const at = `http://127.0.0.1:${server.port}`
    expect((await fetch(`${at}/readyz?verbose`)).status).toBe(503)
    expect((await fetch(`${at}/metrics`)).status).toBe(500)
    expect((await fetch(`${at}/other`)).status).toBe(404)
    expect((await fetch(`${at}/readyz`, { method: 'POST' })).status).toBe(404)
  })
})

describe('events', () => {
  it('are told once in a while, within what the API server takes, and nobody fails by them', async () => {
    const { clock } = manualEnvironment()
    const api = new MemoryApi(() => clock.wallMs())
    const about: KubeObject = {
      apiVersion: types.streamJob.apiVersion,
      kind: 'StreamJob',
      metadata: { name: 'job', namespace: 'n', uid: 'u', resourceVersion: '7' },
    }
    let isDown = false
    const client = api.client({
      before: () => {
        if (isDown) throw new Error('down')
      },
    })
    const events = new Events({ client, clock, instance: 'pod', log: () => undefined })
    const word = { type: 'event', kind: 'Warning', reason: 'Failed', message: 'ü'.repeat(2_000) } as const
    await events.tell(about, word)
    await events.tell(about, word)
    const [event, ...more] = api.all(types.event)
    expect(more).toEqual([])
    expect(event).toMatchObject({
      type: 'Warning',
      reason: 'Failed',
      regarding: { kind: 'StreamJob', name: 'job', uid: 'u' },
    })
    expect(Buffer.byteLength(event!['note'] as string)).toBeLessThanOrEqual(1_024)
    expect(event!['eventTime']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    // Another operator tells the same of the same version: it is the same event.
    await new Events({ client, clock, instance: 'other', log: () => undefined }).tell(about, word)
    expect(api.all(types.event)).toHaveLength(1)
    clock.advance(11 * 60_000)
    await events.tell({ ...about, metadata: { ...about.metadata, resourceVersion: '8' } }, word)
    expect(api.all(types.event)).toHaveLength(2)
    isDown = true
    await events.tell(about, { ...word, message: 'another' })
  })
})
