import { describe, expect, it } from 'vitest'
import { pause } from '../base/deadline.ts'
import { InvariantError } from '../base/errors.ts'
import { checkpointId, incarnation, jobId, start } from '../base/ids.ts'
import { encodeManifest, fromCollected } from '../checkpoint/manifest.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { collectedOf, listOf, subtaskSnapshot, transaction } from '../checkpoint/test-snapshots.ts'
import { completeCheckpoint, newJob, reserveIds } from '../storage/head.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import type { ObjectKey, SavepointStore } from '../storage/contract.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import { snapshotDataKey, fileKey, manifestKey } from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { CompletedSnapshot } from './coordinator-contract.ts'
import { objectsOfCollected } from './checkpointing.ts'
import { Cleanup, cleanupDeadlineMs, filesDeadlineMs } from './cleanup.ts'
import { sweepWaitMs } from './sink-sweeps.ts'
import type { Commits } from './commits.ts'
import type { Execution } from './execution.ts'

const graph = graphOf({ vertices: [{ id: 'sums' }] })
const snapshotWith = (objects: readonly string[], names: readonly string[] = []) =>
  subtaskSnapshot({
    sums: {
      operatorState: Object.fromEntries(objects.map((object, index) => [`list ${index}`, listOf('union', object)])),
      committables: names.map((name) => transaction(name, 1)),
    },
  })

function manifestRef(id: number): ManifestRef {
  const path = manifestKey(checkpointId(id), 'checkpoint')
  return { id: checkpointId(id), kind: 'checkpoint', path, start: start(1), completedAtMs: 0, bytes: 0 }
}

async function subject(options: { readonly firstId?: number; readonly savepoints?: SavepointStore } = {}) {
  const environment = manualEnvironment()
  /** What lies outside of the job's store, by absolute key. */
  const foreign = new Map<string, Uint8Array>()
  const heads = new MemoryHeadStore()
  const keeper = await HeadKeeper.open(heads, environment)
  await keeper.begin(() => newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 }))
  await keeper.update((head) => reserveIds(head, 1000).head)
  const store = new MemoryObjectStore()
  const deletions: string[] = []
  const remove = store.delete.bind(store)
  store.delete = async (keys) => {
    deletions.push(...keys)
    await remove(keys)
  }
  const swept: (ReadonlySet<string> | undefined)[] = []
  const broken: unknown[] = []
  let quiet: () => Promise<void> = async () => undefined
  const commits = {
    sinks: ['sink'],
    sweep: async (_uid: string, kept: () => Promise<ReadonlySet<string> | undefined>) => void swept.push(await kept()),
  } as unknown as Commits
  const cleanup = new Cleanup({
    store,
    savepoints: options.savepoints,
    keeper,
    environment,
    incarnation: incarnation(1),
    firstId: options.firstId ?? 1,
    commits,
    execution: {} as Execution,
    quiet: () => quiet(),
    onBroken: (error) => void broken.push(error),
    foreign: { read: async (key) => foreign.get(key), readRange: async () => undefined },
  })
  const put = async (...keys: string[]) => {
    for (const key of keys) await store.create(key as ObjectKey, new Uint8Array([1]))
  }
  /** Completes `id`, which uses these objects, retaining one checkpoint. */
  const complete = async (
    id: number,
    objects: readonly string[],
    names: readonly string[] = [],
  ): Promise<CompletedSnapshot> => {
    await put(...objects)
    const collected = { ...collectedOf(graph, () => snapshotWith(objects, names)), id: checkpointId(id) }
    const manifest = manifestRef(id)
    await store.create(
      manifest.path,
      encodeManifest(
        fromCollected(collected, {
          job: jobId('job'),
          start: start(1),
          incarnation: incarnation(1),
          graph,
          enumerators: new Map(),
        }),
      ),
    )
    await keeper.update((head) =>
      completeCheckpoint(head, { manifest, retainedMax: 1, commitsPending: names.length > 0 }),
    )
    return { manifest, collected, durationMs: 1 }
  }
  const clean = (completed: CompletedSnapshot) =>
    cleanup.afterCompleted(completed, objectsOfCollected(completed.collected))
  return {
    cleanup,
    complete,
    clean,
    store,
    put,
    keeper,
    heads,
    deletions,
    swept,
    broken,
    foreign,
    environment,
    setQuiet: (next: () => Promise<void>) => (quiet = next),
    keys: () => store.list(''),
  }
}

const data = (id: number, name: string): string => snapshotDataKey(checkpointId(id), 'checkpoint', name)

describe('clean-up of a job that began outside of its store', () => {
  const manifest = { ...manifestRef(3), path: fileKey('/other/objects/chk-3/_metadata') }

  it('keeps the transactions of that restore point from the sweep, and deletes nothing by the names of its objects', async () => {
    const { cleanup, keeper, foreign, swept, deletions, put } = await subject()
    const collected = collectedOf(graph, () => snapshotWith(['chk-3/a'], ['t-of-other']))
    const meta = { job: jobId('other'), start: start(1), incarnation: incarnation(1), graph, enumerators: new Map() }
    foreign.set(manifest.path, encodeManifest(fromCollected({ ...collected, id: checkpointId(3) }, meta)))
    await put('chk-3/a')
    await keeper.update((head) => ({ ...head, restoredFrom: { kind: 'manifest', manifest }, unconfirmed: manifest }))
    await cleanup.sweep()
    expect(swept).toEqual([new Set(['t-of-other'])])
    expect(deletions).toEqual([])
  })

  it('sweeps nothing while that restore point cannot be read', async () => {
    const { cleanup, keeper, swept, environment } = await subject()
    await keeper.update((head) => ({ ...head, restoredFrom: { kind: 'manifest', manifest } }))
    await cleanup.sweep()
    expect(swept).toEqual([])
    expect(environment.lines).toContainEqual(
      expect.objectContaining({ fields: expect.objectContaining({ error: expect.stringMatching(/MR-O18/) }) }),
    )
  })
})

describe('clean-up after a completed checkpoint', () => {
  it('deletes what retention dropped, data first and the manifest last, then takes it out of HEAD (rule 7)', async () => {
    const { complete, clean, deletions, keeper, keys } = await subject()
    await clean(await complete(5, [data(5, 'x'), data(5, 'y')]))
    expect(deletions).toEqual([])
    await clean(await complete(7, [data(7, 'z')]))
    expect(deletions).toEqual([data(5, 'x'), data(5, 'y'), 'chk-5/_metadata'])
    expect((await keeper.read())!.discarding).toEqual([])
    expect(await keys()).toEqual(['chk-7/_metadata', data(7, 'z')])
  })

  it('spares what a retained one still uses, and takes uploads that nobody acknowledged', async () => {
    const { complete, clean, keys, put } = await subject()
    await clean(await complete(5, [data(5, 'final'), data(5, 'x')]))
    await put(data(5, 'unacknowledged'))
    await clean(await complete(7, [data(5, 'final')]))
    expect(await keys()).toEqual(['chk-5/final', 'chk-7/_metadata'])
  })

  it('deletes state of an aborted snapshot only after a later one has completed, and only what that one does not use (R8, B14)', async () => {
    const { complete, clean, cleanup, put, keys } = await subject()
    await put(data(3, 'lost'), data(3, 'reused'), data(3, 'unseen'), 'chk-3/_metadata')
    cleanup.orphans.aborted(checkpointId(3), 'checkpoint')
    cleanup.orphans.add(checkpointId(3), snapshotWith([data(3, 'lost'), data(3, 'reused')]))
    await clean(await complete(2, [data(2, 'x')]))
    expect(await keys()).toContain(data(3, 'lost'))
    await clean(await complete(4, [data(3, 'reused')]))
    expect(await keys()).toEqual([data(3, 'reused'), 'chk-4/_metadata'])
    // A late acknowledgement of it.
    await put(data(3, 'late'))
    cleanup.orphans.add(checkpointId(3), snapshotWith([data(3, 'late')]))
    await clean(await complete(6, [data(6, 'y')]))
    expect(await keys()).toEqual(['chk-6/_metadata', data(6, 'y')].toSorted())
  })

  it('takes away what an earlier incarnation, killed meanwhile, wrote for checkpoints that never completed', async () => {
    const { complete, clean, put, keys } = await subject({ firstId: 8 })
    await complete(5, [data(5, 'x')])
    await put(data(6, 'unfinished'), 'chk-6/_metadata', data(7, 'used'), data(8, 'own'))
    await clean(await complete(9, [data(9, 'y'), data(7, 'used')]))
    expect(await keys()).toEqual([data(7, 'used'), data(8, 'own'), 'chk-9/_metadata', data(9, 'y')])
  })

  it('never deletes a file of a savepoint that the job began from, also when a final state that lies there is discarded (rule 7)', async () => {
    const { complete, clean, cleanup, put, keys } = await subject()
    const theirs = snapshotDataKey(checkpointId(2), 'savepoint', 'final')
    await put(theirs, 'savepoint-2/_metadata')
    cleanup.orphans.add(checkpointId(3), snapshotWith([theirs]))
    await clean(await complete(4, [data(4, 'x')]))
    expect(await keys()).toEqual(['chk-4/_metadata', data(4, 'x'), 'savepoint-2/_metadata', theirs])
  })

  it('takes the folder of a savepoint that failed: nobody was given it', async () => {
    const { complete, clean, cleanup, put, keys } = await subject()
    const left = snapshotDataKey(checkpointId(3), 'savepoint', 'written')
    await put(left, 'savepoint-3/_metadata')
    cleanup.orphans.aborted(checkpointId(3), 'savepoint')
    await clean(await complete(4, [data(4, 'x')]))
    expect(await keys()).toEqual(['chk-4/_metadata', data(4, 'x')])
  })

  it("takes what a failed savepoint left where savepoints have a place of their own, late copies too, and of others' there nothing", async () => {
    const place = new MemoryObjectStore()
    const nameOf = (key: ObjectKey): ObjectKey => `file:///place/objects/${key}` as ObjectKey
    const { complete, clean, cleanup, put, keys } = await subject({ savepoints: { objects: place, nameOf } })
    const here = snapshotDataKey(checkpointId(3), 'savepoint', 'written')
    const acknowledged = snapshotDataKey(checkpointId(3), 'savepoint', 'acknowledged')
    const others = ['owner', 'savepoint-2/_metadata', 'savepoint-2/data'] as ObjectKey[]
    for (const key of [here, acknowledged, ...others]) await place.create(key, new Uint8Array(1))
    await put(data(3, 'lost'))
    cleanup.orphans.aborted(checkpointId(3), 'savepoint')
    cleanup.orphans.add(checkpointId(3), snapshotWith([acknowledged, data(3, 'lost')]))
    await clean(await complete(4, [data(4, 'x')]))
    expect(await keys()).toEqual(['chk-4/_metadata', data(4, 'x')])
    expect(await place.list('')).toEqual(others)

    await place.create(here, new Uint8Array(1))
    cleanup.orphans.aborted(checkpointId(3), 'savepoint')
    await clean(await complete(5, [data(5, 'y')]))
    expect(await place.list('')).toEqual(others)
  })

  it('takes what failed checkpoints left though the place for savepoints is away, and that once it is back', async () => {
    const place = new MemoryObjectStore()
    const list = place.list.bind(place)
    const nameOf = (key: ObjectKey): ObjectKey => `file:///place/objects/${key}` as ObjectKey
    const { complete, clean, cleanup, put, keys } = await subject({ savepoints: { objects: place, nameOf } })
    await place.create(snapshotDataKey(checkpointId(2), 'savepoint', 'written'), new Uint8Array(1))
    await put(data(3, 'lost'))
    cleanup.orphans.aborted(checkpointId(2), 'savepoint')
    cleanup.orphans.aborted(checkpointId(3), 'checkpoint')
    place.list = async () => Promise.reject(new Error('away'))
    await clean(await complete(4, [data(4, 'x')]))
    expect(await keys()).toEqual(['chk-4/_metadata', data(4, 'x')])
    place.list = list
    await clean(await complete(5, [data(5, 'y')]))
    expect(await place.list('')).toEqual([])
  })

  it('deletes nothing when a manifest that HEAD names cannot be read, and goes on the next time', async () => {
    const { complete, clean, store, deletions, environment, keys } = await subject()
    await clean(await complete(5, [data(5, 'x')]))
    const read = store.read.bind(store)
    store.read = async () => undefined
    const completed = await complete(7, [data(7, 'y')])
    await clean(completed)
    expect(deletions).toEqual([])
    expect(environment.lines.map(({ message }) => message)).toEqual([
      expect.stringContaining('cleaning up failed'),
      expect.stringContaining('sweeping transactions failed'),
    ])
    store.read = read
    await clean(completed)
    expect(await keys()).toEqual(['chk-7/_metadata', data(7, 'y')])
  })

  it('that the store does not answer is given up, and its call ends before the next: the newest of those that waited stands for all', async () => {
    const { complete, clean, cleanup, store, environment, keys, swept } = await subject()
    const list = store.list.bind(store)
    let hung = 0
    let answer!: (keys: ObjectKey[]) => void
    store.list = () => {
      hung++
      return new Promise((resolve) => (answer = resolve))
    }
    const cleaned: Promise<void>[] = []
    for (const id of [5, 6, 7, 8]) {
      cleaned.push(clean(await complete(id, [data(id, 'x')])))
      cleaned.push(cleanup.sweep())
    }
    await environment.clock.advanceSettled(cleanupDeadlineMs - 1)
    expect(hung).toBe(1)
    store.list = list
    await environment.clock.advanceSettled(2 * cleanupDeadlineMs)
    expect(await keys()).toContain(data(5, 'x'))
    answer([])
    await environment.clock.advanceSettled(0)
    await Promise.all(cleaned)
    expect(environment.lines.map(({ fields }) => String(fields?.['error']))).toEqual([
      expect.stringContaining('MR-S01'),
    ])
    expect(await keys()).toEqual(['chk-8/_metadata', data(8, 'x')])
    expect(swept).toHaveLength(2)
  })

  it('of many files in a slow store does what there is time for, says so in HEAD, leaves time for the sweep, and goes on the next time', async () => {
    const { complete, store, environment, keeper, keys, cleanup, swept } = await subject()
    const ids = [2, 3, 4, 5, 6, 7, 8]
    for (const id of ids) await complete(id, [data(id, 'x')])
    const completed = await complete(9, [data(9, 'x')])
    const remove = store.delete.bind(store)
    let deleting = 0
    let deletingMost = 0
    store.delete = async (some) => {
      deletingMost = Math.max(deletingMost, ++deleting)
      await pause(environment.clock, 20_000)
      deleting--
      await remove(some)
    }
    const cleaned = cleanup.afterCompleted(completed, new Set())
    const left = async () => (await keeper.read())!.discarding.map(({ id }) => id)
    // Two calls each.
    await environment.clock.advanceSettled(filesDeadlineMs - 1)
    expect([await left(), swept]).toEqual([ids, []])
    await environment.clock.advanceSettled(20_000)
    await cleaned
    expect(await left()).toEqual([6, 7, 8])
    expect(swept).toHaveLength(1)
    void cleanup.afterCompleted(completed, new Set())
    await environment.clock.advanceSettled(cleanupDeadlineMs)
    expect([await left(), await keys(), deletingMost]).toEqual([[], ['chk-9/_metadata', data(9, 'x')], 1])
    expect(environment.lines).toEqual([])
  })

  it('that was given up deletes nothing more when the call that it waited for is answered', async () => {
    const { complete, clean, store, environment, deletions } = await subject()
    await complete(5, [data(5, 'x')])
    await complete(6, [data(6, 'x')])
    const completed = await complete(7, [data(7, 'x')])
    const read = store.read.bind(store)
    let answer!: () => void
    store.read = async (key) => {
      if (key === 'chk-5/_metadata') await new Promise<void>((resolve) => (answer = resolve))
      return read(key)
    }
    const cleaned = clean(completed)
    await environment.clock.advanceSettled(cleanupDeadlineMs)
    expect(environment.lines).toHaveLength(1)
    answer()
    await cleaned
    // What it had begun with it ends, so that its manifest goes last.
    expect(deletions).toEqual([data(5, 'x'), 'chk-5/_metadata'])
  })

  it('goes on with files while a sink does not answer a sweep, and sweeps with what HEAD says when it does', async () => {
    const { complete, clean, cleanup, environment, keys, swept, setQuiet } = await subject()
    const answer = Promise.withResolvers<void>()
    setQuiet(() => answer.promise)
    const first = clean(await complete(5, [data(5, 'x')], ['t5']))
    await environment.clock.advanceSettled(sweepWaitMs)
    await first
    setQuiet(async () => undefined)
    await clean(await complete(7, [data(7, 'x')], ['t7']))
    expect(await keys()).toEqual(['chk-7/_metadata', data(7, 'x')])
    expect(swept).toEqual([])
    answer.resolve()
    await environment.clock.advanceSettled(0)
    expect(swept, 'as it is now, not as it was').toEqual([new Set(['t7'])])
    await cleanup.sweep()
    expect(swept).toHaveLength(2)
  })

  it('sweeps also where files cannot be deleted', async () => {
    const { complete, clean, store, swept } = await subject()
    await clean(await complete(5, [data(5, 'x')]))
    store.list = () => Promise.reject(new Error('no permission'))
    await clean(await complete(7, [data(7, 'x')]))
    expect(swept).toHaveLength(2)
  })

  it.each<[string, Partial<ManifestRef>]>([
    ['a savepoint is to be discarded', { kind: 'savepoint', path: manifestKey(checkpointId(3), 'savepoint') }],
    ['the store’s own', {}],
  ])('that meets a broken invariant (%s) is loud about it and goes no further', async (_, ref) => {
    const { complete, clean, cleanup, keeper, store, broken, environment, keys, swept } = await subject()
    const list = store.list.bind(store)
    store.list = async (prefix) => {
      if (prefix === 'chk-3/') throw new InvariantError('no such folder')
      return list(prefix)
    }
    await keeper.update((head) => ({ ...head, discarding: [{ ...manifestRef(3), ...ref }] }))
    await clean(await complete(5, [data(5, 'x')]))
    await clean(await complete(7, [data(7, 'y')]))
    await cleanup.sweep()
    expect(broken).toEqual([expect.any(InvariantError)])
    expect([environment.lines, swept]).toEqual([[], []])
    expect(await keys()).toContain(data(5, 'x'))
  })

  it('is not the business of a coordinator that was overtaken, nor of one that has ended', async () => {
    const { complete, clean, heads, environment, deletions, swept, cleanup } = await subject()
    await complete(5, [data(5, 'x')])
    const completed = await complete(7, [data(7, 'y')])
    const other = await HeadKeeper.open(heads, environment)
    await other.begin((head) => ({ ...head!, incarnation: incarnation(2) }))
    await clean(completed)
    await cleanup.sweep()
    expect([deletions, swept]).toEqual([[], [undefined]])
    cleanup.close()
    await cleanup.sweep()
    expect(swept).toHaveLength(1)
  })

  it('sweeps with the transactions of the restore point, but only once nothing is on its way to HEAD (rule 24)', async () => {
    const { complete, cleanup, swept, setQuiet } = await subject()
    await complete(5, [], ['t5'])
    // A snapshot is fully acknowledged while the sweep lists; what it holds of an attempt that was given up must be seen.
    setQuiet(async () => void (await complete(6, [], ['t5', 't6'])))
    await cleanup.sweep()
    expect(swept.map((kept) => [...kept!])).toEqual([['t5', 't6']])
  })
})

describe('orphans', () => {
  it('are forgotten oldest first beyond their bound: leaving a file is safe', async () => {
    const { cleanup, complete, clean, put, keys } = await subject()
    await put(data(1, 'first'))
    cleanup.orphans.add(checkpointId(1), snapshotWith([data(1, 'first')]))
    for (let n = 0; n < 10_000; n++) cleanup.orphans.add(checkpointId(2), snapshotWith([data(2, `n${n}`)]))
    await clean(await complete(5, []))
    expect(await keys()).toEqual([data(1, 'first'), 'chk-5/_metadata'])
  })
})
