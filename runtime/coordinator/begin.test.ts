import { describe, expect, it } from 'vitest'
import { checkpointId, jobId, start } from '../base/ids.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { cancel, close, completeCheckpoint, fail, reserveIds } from '../storage/head.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import { manifestKey, manifestKeyOfFolder, snapshotDataKey } from '../storage/paths.ts'
import type { ObjectKey } from '../storage/contract.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import { beginJob } from './begin.ts'

const graph = graphOf({ vertices: [{ id: 'a', parallelism: 2 }] })
const job = jobId('test')

async function storeWith(change?: (head: Head) => Head) {
  const store = new MemoryHeadStore()
  const objects = new MemoryObjectStore()
  const environment = manualEnvironment()
  const keeper = async () => HeadKeeper.open(store, environment)
  if (change !== undefined) {
    const first = await keeper()
    await beginJob({ keeper: first, store: objects, environment, graph, job, start: start(3) })
    await first.update(change)
  }
  return {
    begin: async (wanted?: number) =>
      beginJob({
        keeper: await keeper(),
        store: objects,
        environment,
        graph,
        job,
        start: wanted === undefined ? undefined : start(wanted),
      }),
    keeper,
    store,
    objects,
    environment,
  }
}

const summaryOf = ({ outcome, head }: { outcome: string; head: Head }) =>
  `${outcome}: start ${head.start}, incarnation ${head.incarnation}, from ${head.restoredFrom.kind}, end ${head.end.kind}`

describe('beginning (rules 2 and 28)', () => {
  const cases: readonly [string, ((head: Head) => Head) | undefined, number | undefined, string][] = [
    ['the first start of a job', undefined, undefined, 'begun: start 1, incarnation 1, from empty, end none'],
    ['a start chosen by whoever starts it', undefined, 7, 'begun: start 7, incarnation 1, from empty, end none'],
    ['the same start again', (head) => head, undefined, 'begun: start 3, incarnation 2, from empty, end none'],
    ['a suspended start, by the same command', close, undefined, 'begun: start 4, incarnation 2, from empty, end none'],
    ['a suspended start, restarted as it was', close, 3, 'ended: start 3, incarnation 1, from empty, end suspended'],
    ['a failed start', (head) => fail(head, 'why'), undefined, 'ended: start 3, incarnation 1, from empty, end failed'],
    [
      'a cancelled start, with a later one asked for',
      (head) => cancel(head, { deleted: false }),
      4,
      'begun: start 4, incarnation 2, from empty, end none',
    ],
    ['a start lower than that of HEAD', (head) => head, 2, 'stale: start 3, incarnation 1, from empty, end none'],
  ]
  for (const [what, change, wanted, expected] of cases) {
    it(`${what}: ${expected}`, async () => {
      const { begin } = await storeWith(change)
      expect(summaryOf(await begin(wanted))).toBe(expected)
    })
  }

  it("the next start begins at HEAD's restore point, keeps what is unconfirmed, and its ids go on", async () => {
    const manifest: ManifestRef = {
      id: checkpointId(5),
      kind: 'checkpoint',
      path: manifestKey(checkpointId(5), 'checkpoint'),
      start: start(3),
      completedAtMs: 0,
      bytes: 1,
    }
    const { begin } = await storeWith((head) =>
      close(completeCheckpoint(reserveIds(head, 1000).head, { manifest, retainedMax: 1, commitsPending: true })),
    )
    const begun = await begin()
    expect(summaryOf(begun)).toBe('begun: start 4, incarnation 2, from manifest, end none')
    expect(begun.head.unconfirmed).toEqual(manifest)
    expect(begun.head.reservedIds).toBe(1000)
  })

  it('refuses the HEAD of another job', async () => {
    const { keeper, objects, environment } = await storeWith((head) => head)
    await expect(
      beginJob({ keeper: await keeper(), store: objects, environment, graph, job: jobId('other'), start: undefined }),
    ).rejects.toThrow(/MR-O17/)
  })

  it.each([
    ['checkpoints', manifestKey(checkpointId(5), 'checkpoint')],
    ['savepoints', manifestKey(checkpointId(5), 'savepoint')],
    ['uploads of a savepoint', snapshotDataKey(checkpointId(5), 'savepoint', 'data')],
  ])('refuses to begin from empty where %s are and HEAD is gone', async (_, key) => {
    const { begin, store, objects } = await storeWith((head) => head)
    await objects.create(key, new Uint8Array(1))
    expect((await begin()).outcome).toBe('begun')
    store.remove()
    await expect(begin()).rejects.toThrow(new RegExp(`MR-S16.*${key}`))
    expect(await store.read()).toBeUndefined()
  })

  it('refuses to begin from empty where only the place for savepoints has one, and says where', async () => {
    const { keeper, store, objects, environment } = await storeWith()
    const place = new MemoryObjectStore()
    await place.create(manifestKey(checkpointId(5), 'savepoint'), new Uint8Array(1))
    const savepoints = { objects: place, nameOf: (key: ObjectKey) => `s3://other/objects/${key}` as ObjectKey }
    const options = { store: objects, savepoints, environment, graph, job: jobId('a'), start: start(1) }
    await expect(beginJob({ ...options, keeper: await keeper() })).rejects.toThrow(
      /^MR-S16 .*s3:\/\/other\/objects\/savepoint-5\/_metadata/,
    )
    expect(await store.read()).toBeUndefined()
  })

  it('refuses to begin where there is no HEAD of a job that goes on, and says what helps at an empty place too', async () => {
    const { keeper, store, objects, environment } = await storeWith()
    const options = { store: objects, environment, graph, job: jobId('a'), start: start(2) }
    const restore = { goesOn: true, allowNonRestoredState: false, allowDrained: false }
    const begin = async () => beginJob({ ...options, keeper: await keeper(), restore })
    const lost = { code: 'MR-S19', message: expect.stringMatching(/restoreFrom.*upgradeMode stateless/) }
    await expect(begin()).rejects.toMatchObject(lost)
    await objects.create(manifestKey(checkpointId(5), 'checkpoint'), new Uint8Array(1))
    await expect(begin()).rejects.toMatchObject(lost)
    expect(await store.read()).toBeUndefined()
  })

  it('begins beside a savepoint that was put into its store under a name of its own', async () => {
    const { begin, objects } = await storeWith()
    await objects.create(manifestKeyOfFolder('savepoint-monday'), new Uint8Array(1))
    expect((await begin()).outcome).toBe('begun')
  })
})
