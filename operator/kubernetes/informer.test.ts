import { describe, expect, it } from 'vitest'
import { manualEnvironment } from '../../runtime/testkit/manual-clock.ts'
import { KubeError } from './contract.ts'
import type { KubeClient, KubeObject, Listed, WatchEvent } from './contract.ts'
import { Informer, staleAfterMs } from './informer.ts'
import { types } from './types.ts'

function pod(name: string, version: number, uid = `uid of ${name}`): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: 'n', name, uid, resourceVersion: String(version) },
  }
}

function subject() {
  const { clock, random, executor } = manualEnvironment()
  let items: readonly KubeObject[] = []
  let listed = 0
  let failing: Error | undefined
  const watches: {
    readonly from: string
    readonly event: (event: WatchEvent) => void
    readonly end: PromiseWithResolvers<void>
  }[] = []
  const client = {
    list: async (): Promise<Listed> => {
      listed++
      if (failing !== undefined) throw failing
      return { items, resourceVersion: '100' }
    },
    watch: (
      _type: unknown,
      { resourceVersion }: { readonly resourceVersion: string },
      event: (event: WatchEvent) => void,
    ) => {
      const end = Promise.withResolvers<void>()
      watches.push({ from: resourceVersion, event, end })
      return { ended: end.promise, close: () => end.resolve() }
    },
  } as unknown as KubeClient
  const changes: string[] = []
  const informer = new Informer({
    client,
    type: types.pod,
    clock,
    random,
    log: () => undefined,
    onChange: ({ metadata }, gone) => changes.push(`${metadata.name} ${gone ? 'gone' : metadata.resourceVersion}`),
  })
  informer.start()
  return {
    informer,
    watches,
    list: (...objects: readonly KubeObject[]) => {
      items = objects
    },
    /** The first watch breaks, and each list is answered by the error until `recover`. */
    refuse: async (error: Error) => {
      failing = error
      watches[0]!.end.reject(new Error('reset'))
      await executor.runAllSettled()
    },
    recover: () => {
      failing = undefined
    },
    lists: () => listed,
    settle: () => executor.runAllSettled(),
    pass: (ms: number) => clock.advanceSettled(ms),
    take: () => changes.splice(0),
  }
}

describe('a cache of the API server (kubernetes.md rule 10)', () => {
  it('lists, then follows the watch, from the newest version that it has heard of', async () => {
    const { informer, watches, settle, pass, take } = subject()
    await settle()
    watches[0]!.event({ type: 'ADDED', object: pod('a', 101) })
    watches[0]!.event({ type: 'BOOKMARK', resourceVersion: '150' })
    expect(take()).toEqual(['a 101'])
    expect(informer.get('n', 'a')?.metadata.resourceVersion).toBe('101')
    watches[0]!.end.resolve()
    await settle()
    // One that ended so soon is not asked for again at once: a server that refuses watches is left alone.
    expect(watches).toHaveLength(1)
    await pass(1_000)
    expect(watches.map(({ from }) => from)).toEqual(['100', '150'])
  })

  it('lists again when its version is gone, and notices what was deleted meanwhile (O3)', async () => {
    const { watches, list, settle, pass, take, lists } = subject()
    list(pod('a', 1), pod('b', 2))
    await settle()
    watches[0]!.event({ type: 'ADDED', object: pod('a', 1) })
    watches[0]!.event({ type: 'ADDED', object: pod('b', 2) })
    take()
    list(pod('b', 2), pod('c', 3))
    watches[0]!.end.reject(new KubeError(410, 'Expired', 'too old'))
    await settle()
    await pass(1_000)
    expect(lists()).toBe(2)
    expect(take()).toEqual(['c 3', 'a gone'])
  })

  it('lists again from time to time though the watch is well, for a watch may be dead without a word (B28)', async () => {
    const { informer, watches, list, settle, pass, take, lists } = subject()
    await settle()
    for (let minute = 0; minute < 11; minute++) {
      watches.at(-1)!.end.resolve()
      await settle()
      if (minute === 0) list(pod('late', 7))
      await pass(60_000)
    }
    watches.at(-1)!.end.resolve()
    await settle()
    expect(lists()).toBeGreaterThanOrEqual(2)
    expect(take()).toEqual(['late 7'])
    expect(informer.ageMs).toBeLessThan(staleAfterMs)
  })

  it('is stale when nothing was heard for long, and waits longer between tries that fail', async () => {
    const { informer, refuse, recover, settle, pass, lists } = subject()
    await settle()
    expect(informer.ageMs).toBeLessThan(staleAfterMs)
    await refuse(new Error('refused'))
    await pass(10_000)
    const tries = lists()
    expect(tries).toBeGreaterThan(2)
    expect(tries).toBeLessThan(12)
    await pass(staleAfterMs)
    expect(informer.ageMs).toBeGreaterThan(staleAfterMs)
    expect(lists() - tries).toBeLessThan(30)
    recover()
    await pass(60_000)
    expect(informer.ageMs).toBeLessThan(staleAfterMs)
  })

  it('leaves the server alone for as long as it asks', async () => {
    const { refuse, settle, pass, lists } = subject()
    await settle()
    await refuse(new KubeError(429, 'TooManyRequests', 'slow down', 30_000))
    await pass(1_000)
    const tries = lists()
    await pass(28_000)
    expect(lists()).toBe(tries)
    await pass(4_000)
    expect(lists()).toBe(tries + 1)
  })

  it('asks again within two minutes, though it is asked to wait for a day', async () => {
    const { refuse, settle, pass, lists } = subject()
    await settle()
    await refuse(new KubeError(429, 'TooManyRequests', 'slow down', 86_400_000))
    await pass(5_000)
    const tries = lists()
    await pass(120_000)
    expect(lists()).toBeGreaterThan(tries)
  })

  it('waits longer each time while every list is refused, though it is asked for one second alone (429)', async () => {
    const { refuse, settle, pass, lists } = subject()
    await settle()
    await refuse(new KubeError(429, 'TooManyRequests', 'slow down', 1_000))
    await pass(60_000)
    expect(lists()).toBeGreaterThan(4)
    expect(lists()).toBeLessThan(15)
  })

  it('waits longer each time while the version of every list is gone at once (410)', async () => {
    const { watches, settle, pass, lists } = subject()
    await settle()
    const expired = new KubeError(410, 'Expired', 'too old')
    for (let second = 0; second < 60; second++) {
      watches.at(-1)!.end.reject(expired)
      await settle()
      await pass(1_000)
    }
    expect(lists()).toBeGreaterThan(4)
    expect(lists()).toBeLessThan(15)
  })

  it('keeps what it wrote while a list without it was on its way', async () => {
    const { informer, watches, list, settle, pass, take } = subject()
    list(pod('old', 99))
    await settle()
    informer.wrote(pod('own', 101))
    take()
    list()
    watches[0]!.end.reject(new Error('reset'))
    await settle()
    await pass(2_000)
    // The list is of version 100.
    expect(informer.all().map(({ metadata }) => metadata.name)).toEqual(['own'])
  })

  it('begins again at once when what breaks had been well for a while (a load balancer that cuts what is idle)', async () => {
    const { watches, settle, pass, lists } = subject()
    await settle()
    for (let minute = 0; minute < 10; minute++) {
      await pass(60_000)
      const tries = lists()
      watches.at(-1)!.end.reject(new Error('reset'))
      await settle()
      await pass(1_000)
      expect(lists()).toBe(tries + 1)
    }
  })

  it('does not let an old version replace a newer one of its own writing (O2), nor a namesake be deleted for another (O1)', async () => {
    const { informer, watches, settle } = subject()
    await settle()
    informer.wrote(pod('a', 120))
    watches[0]!.event({ type: 'MODIFIED', object: pod('a', 110) })
    expect(informer.get('n', 'a')?.metadata.resourceVersion).toBe('120')
    informer.wrote(pod('a', 130, 'another life'))
    watches[0]!.event({ type: 'DELETED', object: pod('a', 121) })
    expect(informer.get('n', 'a')?.metadata.uid).toBe('another life')
  })
})
