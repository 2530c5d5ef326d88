// The operator's process behind an API server that lags, goes silent and refuses. The process's time runs ten times as fast as the server's: what
// it notices after minutes it notices here after some seconds, and a lag is ten times as long for it.

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { FINALIZER } from '../../operator/contract.ts'
import type { OperatorWorld } from '../../operator/harness/operator-world.ts'
import type { KubeObject } from '../../operator/kubernetes/contract.ts'
import { staleAfterMs } from '../../operator/kubernetes/informer.ts'
import { jobLabel } from '../../operator/resources/labels.ts'
import { startApiProxy } from '../servers/support/api-proxy.ts'
import type { ApiCall, ApiProxy, Instead } from '../servers/support/api-proxy.ts'
import { jobsNamespace as namespace, startOperatorProcess } from '../servers/support/operator-process.ts'
import type { OperatorProcess } from '../servers/support/operator-process.ts'

const times = 10
/** The server's and this test's time. */
const lagMs = 2_000
const retryAfterSeconds = 3
/** For so long, ms of the operator's time, it is counted how often a cache asks in vain: a slow machine makes that less, never more. */
const countedMs = 60_000
/** Between them are at the least 0.25, 0.5, 1, 2, 4, 8, 15 and 15 s. Pauses that don't grow made it 14 on a loaded machine. */
const asksMax = 9
const streamJobs = `/apis/millrace.dev/v1alpha1/namespaces/${namespace}/streamjobs`
const testMs = { timeout: 240_000 }

let operator: OperatorProcess
let world: OperatorWorld
let proxy: ApiProxy
beforeAll(async () => {
  operator = await startOperatorProcess({
    nodeFlags: [`--import=./tests/servers/support/fast-time.ts?times=${times}`],
    through: async (server) => (proxy = await startApiProxy(server, times)),
  })
  world = operator.world
}, 1_500_000)
afterEach(() => proxy.clear())
afterAll(async () => {
  await operator?.stop()
  await proxy?.close()
})

const lag = (): void => proxy.watches.weather({ kind: 'delay', ms: lagMs }, 'toClient')

interface Write {
  readonly call: ApiCall
  /** What is written now, or a Status. */
  readonly object: KubeObject
}

/** Of what belongs to jobs, from that call on; answered ones alone. */
function writesSince(first: number): readonly Write[] {
  return proxy.calls
    .slice(first)
    .filter(({ method, path }) => method !== 'GET' && path.includes(`/namespaces/${namespace}/`))
    .filter(({ path, answer }) => answer !== '' && !path.endsWith('/events'))
    .map((call) => ({ call, object: JSON.parse(call.answer) as KubeObject }))
}

const isOf = (name: string, { path }: ApiCall): boolean => new RegExp(`/streamjobs/${name}(/status)?$`).test(path)

/** By POST or by an apply. */
const made = (writes: readonly Write[]): readonly KubeObject[] =>
  writes.filter(({ call }) => call.status === 201).map(({ object }) => object)

const keyOf = ({ kind, metadata }: KubeObject): string => `${kind}/${metadata.name}`

const lineOf = ({ call }: Write): string => `${call.method} ${call.path}: ${call.status}`

const isDone = (deletion: ApiCall): boolean => deletion.method === 'DELETE' && deletion.status === 200

interface Meant {
  readonly uid?: string
  readonly resourceVersion?: string
}

/** What a change or a deletion names as the object that it is meant for. */
function meantOf({ body }: ApiCall): Meant {
  const { metadata, preconditions } = JSON.parse(body) as { readonly metadata?: Meant; readonly preconditions?: Meant }
  return metadata ?? preconditions ?? {}
}

/** Those meant for an older version than the last that the operator itself has written of the object: it has forgotten its own write. */
function forgetful(writes: readonly Write[]): readonly string[] {
  const newest = new Map<string, number>()
  const found = writes.filter(({ call, object }) => {
    const name = call.method === 'POST' ? `/${object.metadata.name}` : ''
    const place = `${call.path.replace(/\/status$/, '')}${name}`
    const isOld = Number(meantOf(call).resourceVersion) < (newest.get(place) ?? 0)
    const { resourceVersion } = object.metadata
    if (resourceVersion !== undefined) newest.set(place, Number(resourceVersion))
    return isOld
  })
  return found.map(lineOf)
}

/** Gives whether that change has been carried out. */
async function edit(name: string, spec: object = {}): Promise<() => Promise<boolean>> {
  const { start } = (await world.status(name))!
  await world.edit(name, { program: { args: { rows: start } }, ...spec })
  return async () => (await world.isSettled(name)) && (await world.status(name))!.start === start + 1
}

const isGone = async (name: string): Promise<boolean> => (await world.job(name)) === undefined

/** A list or a watch of a cache in the namespace of jobs. */
const isCache = ({ method, path }: ApiCall): boolean =>
  method === 'GET' && new RegExp(`/namespaces/${namespace}/[a-z]+$`).test(path)

/** By cache: when it asked for a list, or for a watch, from that call on. */
function asked(
  what: 'list' | 'watch',
  first: number,
  isMeant: (path: string) => boolean = () => true,
): ReadonlyMap<string, readonly number[]> {
  const byCache = Map.groupBy(
    proxy.calls
      .slice(first)
      .filter((call) => isCache(call) && isMeant(call.path) && call.isWatch === (what === 'watch')),
    ({ path, query }) => `${path} ${query.get('labelSelector') ?? ''}`,
  )
  return new Map([...byCache].map(([cache, calls]) => [cache, calls.map(({ atMs }) => atMs)]))
}

/** Resolves when so many caches have been refused for that long; gives when each of them asked then, ms of the operator's time. */
async function asksInVain(
  caches: number,
  asking: () => ReadonlyMap<string, readonly number[]>,
): Promise<readonly (readonly number[])[]> {
  const all = (): readonly (readonly number[])[] => [...asking().values()].map((asks) => asks.map((ms) => ms * times))
  const nowMs = (): number => performance.now() * times
  await world.until(`each of ${caches} caches has asked again and again`, () => {
    const isThrough = (asks: readonly number[]): boolean => asks.length > 2 && nowMs() - asks[0]! > countedMs
    return all().length === caches && all().every(isThrough)
  })
  return all().map((asks) => asks.filter((ms) => ms - asks[0]! < countedMs))
}

async function readiness(): Promise<string> {
  const answer = await fetch(`${operator.url}/readyz`)
  return `${answer.status} ${await answer.text()}`
}

function refused(code: number, reason: string, extra: { readonly retryAfterSeconds?: number } = {}): Instead {
  return { kind: 'answer', status: code, body: JSON.stringify(statusOf(code, reason)), ...extra }
}

/** As the API server says it of a watch that it has begun. */
function expired(): Instead {
  const event = { type: 'ERROR', object: statusOf(410, 'Expired') }
  return { kind: 'answer', status: 200, body: `${JSON.stringify(event)}\n` }
}

const statusOf = (code: number, reason: string): object => ({
  apiVersion: 'v1',
  kind: 'Status',
  metadata: {},
  status: 'Failure',
  message: 'by the test',
  reason,
  code,
})

describe('behind an API server whose events lag', () => {
  it('a new job that has the name of one just deleted is left alone, and runs (O1)', testMs, async () => {
    const old = await world.createJob('job')
    await world.until('it runs', () => world.isSettled('job'))
    lag()
    await world.delete('job')
    const stale = await operator.server.request(streamJobs)
    await world.until('it is gone', () => isGone('job'))
    const first = proxy.calls.length
    const uid = await world.createJob('job')
    // Listed again, it is still shown the old one in its deletion, for as long as the events lag.
    proxy.instead = ({ path, isWatch }) =>
      path === streamJobs && !isWatch ? { kind: 'answer', status: 200, body: stale.text } : undefined
    proxy.watches.cut()
    const toOld = (): readonly Write[] =>
      writesSince(first).filter(({ call }) => isOf('job', call) && meantOf(call).uid === old)
    await world.until('it is refused an act on the old one', () => toOld().some(({ call }) => call.status === 409))
    proxy.instead = () => undefined
    await world.until('the new one runs', () => world.isSettled('job'))
    expect(world.coordinators.starts.map(({ uid: of, start, from }) => ({ of, start, from }))).toEqual([
      { of: old, start: 1, from: 'empty' },
      { of: uid, start: 1, from: 'empty' },
    ])
    expect(await world.status('job')).toMatchObject({ jobId: uid, start: 1 })
    const carriedOut = toOld().filter(({ call }) => call.status === 200)
    expect(carriedOut.map(lineOf)).toEqual([])
    const writes = writesSince(first)
    for (const object of made(writes)) {
      expect(object.metadata.labels?.[jobLabel], keyOf(object)).toBe(uid)
      expect(
        object.metadata.ownerReferences?.map((owner) => owner.uid),
        keyOf(object),
      ).toEqual([uid])
    }
    const written = writes
      .filter(({ call }) => isOf('job', call) && call.status === 200)
      .map(({ object }) => object.metadata)
    expect(new Set(written.map((metadata) => metadata.uid))).toEqual(new Set([uid]))
    const held = written.map(({ finalizers = [] }) => finalizers.includes(FINALIZER))
    expect(held.slice(held.indexOf(true))).not.toContain(false)
    expect(writes.filter(({ call }) => isDone(call))).toEqual([])
  })

  it(
    'nothing of a job is made twice, nor anything deleted that the operator did not make, and nothing is left (O2)',
    testMs,
    async () => {
      lag()
      const first = proxy.calls.length
      const uid = await world.createJob('lagging', { parallelism: 2 })
      await world.until('it runs', () => world.isSettled('lagging'))
      await world.until('it is upgraded', await edit('lagging', { upgradeMode: 'savepoint' }))
      expect(await world.status('lagging')).toMatchObject({
        phase: 'RUNNING',
        jobId: uid,
        parallelism: 2,
        restorePoint: { kind: 'savepoint' },
      })
      await world.delete('lagging')
      await world.until('it is gone', () => isGone('lagging'))
      await world.until('nothing is left', async () => (await world.owned(uid)).length === 0)
      const writes = writesSince(first)
      const keys = made(writes).map(keyOf)
      expect(keys.length).toBeGreaterThan(10)
      expect(keys.filter((key, index) => keys.indexOf(key) !== index)).toEqual([])
      expect(writes.filter(({ call }) => call.method === 'POST' && call.status === 409).map(lineOf)).toEqual([])
      expect(forgetful(writes)).toEqual([])
      const own = new Set(made(writes).map(({ metadata }) => metadata.uid))
      const doomed = writes.filter(({ call }) => isDone(call)).map(({ call }) => meantOf(call).uid)
      expect(doomed.length).toBeGreaterThan(0)
      expect(doomed.filter((one) => !own.has(one))).toEqual([])
      const starts = world.coordinators.starts.filter((start) => start.uid === uid)
      expect(starts.map(({ start }) => start)).toEqual([1, 2])
      expect(world.coordinators.heads.get(uid)!.end).toBe('cancelled')
    },
  )
})

describe('behind an API server whose watches are dead without a word', () => {
  it('a change and a deletion are noticed before the caches are stale, with few reconnects (O3)', testMs, async () => {
    for (const name of ['edited', 'removed']) await world.createJob(name)
    for (const name of ['edited', 'removed']) await world.until('it runs', () => world.isSettled(name))
    const first = proxy.calls.length
    const beganMs = performance.now()
    proxy.watches.weather({ kind: 'drop' }, 'toClient')
    const isUpgraded = await edit('edited')
    await world.delete('removed')
    const areStale = (): boolean => (performance.now() - beganMs) * times >= staleAfterMs
    const missed = (): readonly string[] =>
      ['edited', 'removed'].filter((name) => !writesSince(first).some(({ call }) => isOf(name, call)))
    await world.until('both are noticed, or it is too late', () => missed().length === 0 || areStale())
    expect(missed()).toEqual([])
    expect([...asked('list', first).keys()]).toContain(`${streamJobs} `)
    for (const [cache, { length }] of asked('watch', first)) expect(length, cache).toBeLessThanOrEqual(3)
    proxy.clear()
    proxy.watches.cut()
    await world.until('it is upgraded', isUpgraded)
    await world.until('it is gone', () => isGone('removed'))
  })
})

describe('behind an API server that refuses', () => {
  beforeAll(async () => {
    await world.createJob('refused')
    await world.until('it runs', () => world.isSettled('refused'))
  })

  it(
    'lists with 429, or watches with 410: each cache lists again, and waits longer each time (O3)',
    testMs,
    async () => {
      const first = proxy.calls.length
      const isCore = (path: string): boolean => path.startsWith('/api/v1/')
      proxy.instead = (call) => {
        if (!isCache(call) || call.isWatch === isCore(call.path)) return undefined
        return call.isWatch ? expired() : refused(429, 'TooManyRequests', { retryAfterSeconds })
      }
      proxy.watches.cut()
      const isUpgraded = await edit('refused')
      for (const asks of await asksInVain(6, () => asked('list', first, isCore))) {
        expect(asks.length).toBeLessThanOrEqual(asksMax)
        // Never sooner than it was asked to; timers are exact to a ms of the server's time.
        const pausesMs = asks.slice(1).map((ms, index) => ms - asks[index]!)
        expect(Math.min(...pausesMs)).toBeGreaterThan(retryAfterSeconds * 1_000 - 2 * times)
      }
      const isOther = (path: string): boolean => !isCore(path)
      for (const asks of await asksInVain(8, () => asked('watch', first, isOther)))
        expect(asks.length).toBeLessThanOrEqual(asksMax)
      proxy.clear()
      await world.until('it is upgraded', isUpgraded)
    },
  )

  it(
    'all that caches ask: it is not ready while they are stale, tries seldom, and is ready again after (O3)',
    testMs,
    async () => {
      expect(await readiness()).toBe('200 ready\n')
      const first = proxy.calls.length
      const beganMs = performance.now()
      proxy.instead = (call) => {
        if (!isCache(call)) return undefined
        return call.path.endsWith('/streamjobs') ? { kind: 'silence' } : refused(503, 'ServiceUnavailable')
      }
      proxy.watches.cut()
      const isUpgraded = await edit('refused')
      const stale = /^503 not ready: nothing was heard of StreamJob, Savepoint, Pod, .* for too long/
      const isLate = (): boolean => (performance.now() - beganMs) * times >= 1.5 * staleAfterMs
      await world.until('it is not ready, or it is too late', async () => stale.test(await readiness()) || isLate())
      expect(await readiness()).toMatch(stale)
      // 0.5 s, doubled up to 30 s.
      for (const [cache, { length }] of asked('list', first)) expect(length, cache).toBeLessThan(30)
      proxy.clear()
      await world.until('it is ready again', async () => (await readiness()) === '200 ready\n')
      await world.until('it is upgraded', isUpgraded)
    },
  )
})
