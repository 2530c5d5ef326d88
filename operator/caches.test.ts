import { expect, it } from 'vitest'
import { manualEnvironment } from '../runtime/testkit/manual-clock.ts'
import { Caches } from './caches.ts'
import { MemoryApi } from './harness/memory-api.ts'
import { ApiClient } from './kubernetes/client.ts'
import type { ApiConnection } from './kubernetes/client.ts'
import type { ResourceType } from './kubernetes/contract.ts'
import { typeOfKind, types } from './kubernetes/types.ts'
import { componentLabel, jobLabel } from './resources/labels.ts'

const namespace = 'n'

async function started() {
  const { clock, random } = manualEnvironment()
  const client = new MemoryApi(() => clock.wallMs()).client()
  const woken: string[] = []
  const wanted = (key: string): void => void woken.push(key)
  const caches = new Caches({ client, namespaces: [], clock, random, log: () => undefined, wanted })
  caches.start()
  await caches.ready()
  const job = await client.create(types.streamJob, {
    apiVersion: types.streamJob.apiVersion,
    kind: 'StreamJob',
    metadata: { name: 'job', namespace },
  })
  await clock.advanceSettled(100)
  return { clock, client, caches, woken, owner: { namespace, uid: job.metadata.uid! } }
}

it('a worker pod that is gone is lost under its own uid, until another one has its name', async () => {
  const { clock, client, caches, owner } = await started()
  const labels = { 'app.kubernetes.io/managed-by': 'millrace', [jobLabel]: owner.uid, [componentLabel]: 'worker' }
  const make = async (): Promise<string> => {
    const metadata = { name: 'worker-0', namespace, labels }
    const made = await client.create(types.pod, { apiVersion: 'v1', kind: 'Pod', metadata })
    await clock.advanceSettled(100)
    return made.metadata.uid!
  }
  const uids: string[] = []
  for (let pod = 0; pod < 2; pod++) {
    const uid = await make()
    uids.push(uid)
    expect(caches.lostWorkers(owner)).toEqual([])
    const at = { name: 'worker-0', namespace }
    await client.delete(types.pod, at, { precondition: { uid }, gracePeriodSeconds: 0 })
    await clock.advanceSettled(100)
    expect(caches.lostWorkers(owner)).toEqual([{ name: 'worker-0', uid, reason: 'its pod is gone' }])
  }
  expect(uids[0]).not.toBe(uids[1])
  caches.close()
})

for (const copyFirst of [false, true])
  it(`what carries the label of a job in another namespace is nobody's, the copy ${copyFirst ? 'first' : 'last'}`, async () => {
    const { clock, client, caches, woken, owner } = await started()
    const base = { 'app.kubernetes.io/managed-by': 'millrace', [jobLabel]: owner.uid }
    const objects = [
      { type: types.secret, apiVersion: 'v1', labels: { ...base, [componentLabel]: 'access' } },
      { type: types.controllerRevision, apiVersion: 'apps/v1', labels: { ...base, [componentLabel]: 'revision' } },
      { type: types.pod, apiVersion: 'v1', labels: { ...base, [componentLabel]: 'worker' } },
    ] as const
    const make = async (of: string): Promise<void> => {
      for (const { type, apiVersion, labels } of objects)
        await client.create(type, { apiVersion, kind: type.kind, metadata: { name: 'x', namespace: of, labels } })
      await clock.advanceSettled(100)
    }
    const seen = (of: string): readonly unknown[] =>
      caches.ofOwner({ namespace: of, uid: owner.uid }).map(({ kind, metadata }) => [kind, metadata.namespace])
    const itsOwn = objects.map(({ type }) => [type.kind, namespace])
    for (const of of copyFirst ? ['copy', namespace] : [namespace, 'copy']) await make(of)
    expect(seen(namespace)).toEqual(itsOwn)
    woken.length = 0
    for (const { kind, metadata } of caches.ofOwner({ namespace: 'copy', uid: owner.uid })) {
      const { name, uid } = metadata
      const at = { name, namespace: 'copy' }
      await client.delete(typeOfKind(kind)!, at, { precondition: { uid: uid! }, gracePeriodSeconds: 0 })
    }
    await clock.advanceSettled(100)
    expect(seen(namespace)).toEqual(itsOwn)
    expect(caches.lostWorkers(owner)).toEqual([])
    expect(woken).toEqual([])
    expect(seen('copy')).toEqual([])
    caches.close()
  })

/** Answers lists alone, page by page; nothing ever changes. */
function serving(
  { plural }: ResourceType,
  made: { readonly count: number; readonly of: (at: number) => object },
): { readonly connection: ApiConnection; readonly pages: number[] } {
  const pages: number[] = []
  const connection: ApiConnection = {
    send: async ({ path }) => {
      const { pathname, searchParams } = new URL(path, 'http://api')
      const isAll = pathname.endsWith(`/${plural}`) && !searchParams.has('labelSelector')
      const from = Number(searchParams.get('continue') ?? 0)
      const to = Math.min(isAll ? made.count : 0, from + Number(searchParams.get('limit')))
      const items = Array.from({ length: to - from }, (_, index) => made.of(from + index))
      const next = isAll && to < made.count ? { continue: String(to) } : {}
      const body = JSON.stringify({ metadata: { resourceVersion: '9', ...next }, items })
      if (isAll) pages.push(body.length)
      return { status: 200, retryAfter: undefined, body }
    },
    stream: () => {
      const end = Promise.withResolvers<void>()
      return { ended: end.promise, close: () => end.resolve() }
    },
  }
  return { connection, pages }
}

it("of other people's ConfigMaps no more is kept than which version is there, and no page of them is large", async () => {
  const { clock, random } = manualEnvironment()
  const annotation = 'x'.repeat(100_000)
  const { connection, pages } = serving(types.configMap, {
    count: 1_000,
    of: (at) => ({
      metadata: {
        name: `map-${at}`,
        namespace: 'n',
        uid: `uid-${at}`,
        resourceVersion: '7',
        labels: { app: 'web' },
        annotations: { 'kubectl.kubernetes.io/last-applied-configuration': annotation },
        managedFields: [{ manager: 'kubectl', fieldsV1: { 'f:data': {} } }],
      },
    }),
  })
  const client = new ApiClient({ connection, fieldManager: 'test' })
  const list = client.list.bind(client)
  const largest: number[] = []
  client.list = async (type, options) => {
    const listed = await list(type, options)
    largest.push(...listed.items.map((item) => JSON.stringify(item).length))
    return listed
  }
  const caches = new Caches({ client, namespaces: [], clock, random, log: () => undefined, wanted: () => undefined })
  caches.start()
  await caches.ready()
  for (const at of [0, 999])
    expect(caches.userMap('n', `map-${at}`)).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: `map-${at}`, namespace: 'n', uid: `uid-${at}`, resourceVersion: '7' },
    })
  // Also while it is listed: what comes out of a page is small before the next is asked for.
  expect(largest).toHaveLength(1_000)
  expect(Math.max(...largest)).toBeLessThan(200)
  expect(Math.max(...pages)).toBeLessThan(5 * 1024 * 1024)
  caches.close()
})

it('a list of small objects is asked for in few pages', async () => {
  const { connection, pages } = serving(types.configMap, {
    count: 1_000,
    of: (at) => ({ metadata: { name: `map-${at}`, namespace: 'n' } }),
  })
  const { items } = await new ApiClient({ connection, fieldManager: 'test' }).list(types.configMap, {})
  expect(new Set(items.map(({ metadata }) => metadata.name)).size).toBe(1_000)
  expect(pages).toHaveLength(3)
})
