import { describe, expect, it } from 'vitest'
import { InvariantError } from '../base/errors.ts'
import { pause } from '../base/deadline.ts'
import { checkpointId, incarnation, jobId, start } from '../base/ids.ts'
import { encodeManifest, fromCollected } from '../checkpoint/manifest.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { collectedOf, subtaskSnapshot } from '../checkpoint/test-snapshots.ts'
import {
  addPin,
  beginStart,
  cancel,
  completeCheckpoint,
  discardCancelled,
  fail,
  newJob,
  reserveIds,
  restorePointOf,
} from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import { manifestKey, snapshotDataKey } from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { cleanupDeadlineMs } from './cleanup.ts'
import { discardAfterCancel, discardAllOfCancelled } from './discard-cancelled.ts'
import { finishCommitsAfter } from './permitted-commits.ts'
import { checkpointRef as refOf } from '../storage/test-refs.ts'

const deleting = graphOf({ vertices: [{ id: 'all' }] })
const graphWith = (onCancellation: 'retain' | 'delete') => ({
  ...deleting,
  settings: { ...deleting.settings, onCancellation },
})
const savepointKeys = [manifestKey(checkpointId(7), 'savepoint'), snapshotDataKey(checkpointId(7), 'savepoint', 'a')]

/** Checkpoints 5 and 6 and a savepoint, all with data; `change` is what becomes of HEAD. */
async function subject(change: (head: Head) => Head, onCancellation: 'retain' | 'delete' = 'delete', commits = false) {
  const environment = manualEnvironment()
  const store = new MemoryObjectStore()
  const heads = new MemoryHeadStore()
  for (const id of [5, 6]) {
    const meta = {
      job: jobId('job'),
      start: start(1),
      incarnation: incarnation(1),
      graph: deleting,
      enumerators: new Map(),
    }
    const collected = { ...collectedOf(deleting, () => subtaskSnapshot({})), id: checkpointId(id) }
    await store.create(refOf(id).path, encodeManifest(fromCollected(collected, meta)))
    await store.create(snapshotDataKey(checkpointId(id), 'checkpoint', 'data'), new Uint8Array(3))
  }
  for (const key of savepointKeys) await store.create(key, new Uint8Array(3))
  const keeper = await HeadKeeper.open(heads, environment)
  await keeper.begin(() => {
    const job = newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 })
    let head = reserveIds(job, 10).head
    for (const id of [5, 6])
      head = completeCheckpoint(head, { manifest: refOf(id), retainedMax: 2, commitsPending: commits })
    return change(head)
  })
  const graph = graphWith(onCancellation)
  const discard = async () => {
    await discardAfterCancel({ graph, store, environment }, await HeadKeeper.open(heads, environment), start(1))
    const head = (await keeper.read())!
    return { retained: head.retained.map(({ id }) => id), discarding: head.discarding.map(({ id }) => id) }
  }
  const endAfter = () =>
    finishCommitsAfter({ graph, store, environment } as unknown as JobCoordinatorOptions, keeper, {
      start: start(1),
      outcome: { kind: 'cancelled' },
    })
  return { discard, endAfter, keeper, store, environment }
}

const cancelled = (head: Head): Head => cancel(head, { deleted: false })

/** What a later start has made of HEAD before the coordinator of this one looks at it. */
const laterStart = (head: Head): Head => ({
  ...cancelled(
    beginStart(head, {
      start: start(2),
      restoredFrom: restorePointOf(head),
      commitsPending: false,
      parallelism: 1,
      maxParallelism: 8,
    }),
  ),
  incarnation: head.incarnation,
})

describe('the checkpoints of a cancelled job', () => {
  it('are deleted with their data where the job says so; its savepoints stay', async () => {
    const { discard, store } = await subject(cancelled)
    expect(await discard()).toEqual({ retained: [], discarding: [] })
    expect(await store.list('')).toEqual(savepointKeys.toSorted())
  })

  it.each<[string, (head: Head) => Head, 'retain' | 'delete', boolean]>([
    ['stay where the job says nothing else', cancelled, 'retain', false],
    ['stay while its commits are unconfirmed', cancelled, 'delete', true],
    ['stay when it has failed instead', (head) => fail(head, 'why'), 'delete', false],
  ])('%s', async (_, change, onCancellation, commits) => {
    const { discard, store } = await subject(change, onCancellation, commits)
    expect(await discard()).toEqual({ retained: [5, 6], discarding: [] })
    expect(store.size).toBe(6)
  })

  it.each([false, true])(
    'stay, and its commits too, when it is a later start that was cancelled: with commits %s',
    async (commits) => {
      const { discard, endAfter, keeper, store } = await subject(laterStart, 'delete', commits)
      const before = await keeper.readBegun()
      expect(await discard()).toEqual({ retained: [5, 6], discarding: [] })
      await endAfter()
      expect(await keeper.readBegun()).toEqual(before)
      expect([before.unconfirmed?.id, store.size]).toEqual([commits ? 6 : undefined, 6])
    },
  )

  it('stay where they are pinned', async () => {
    const { discard, store } = await subject((head) =>
      cancelled(addPin(head, { manifest: refOf(5), reason: 'upgrade' })),
    )
    expect(await discard()).toEqual({ retained: [5], discarding: [] })
    expect(await store.list('chk-')).toEqual(['chk-5/_metadata', 'chk-5/data'])
  })

  it('are deleted by the next command after a crash between its steps', async () => {
    const { discard, store } = await subject((head) => discardCancelled(cancelled(head)))
    await store.delete([snapshotDataKey(checkpointId(5), 'checkpoint', 'data')])
    expect(await discard()).toEqual({ retained: [], discarding: [] })
    expect(await store.list('chk-')).toEqual([])
  })

  it('that cannot be deleted stay in HEAD for the next command, and nothing fails', async () => {
    const { discard, store } = await subject(cancelled)
    const remove = store.delete.bind(store)
    store.delete = () => Promise.reject(new Error('down'))
    expect(await discard()).toEqual({ retained: [], discarding: [5, 6] })
    store.delete = remove
    expect(await discard()).toEqual({ retained: [], discarding: [] })
  })

  it('that are deleted before the deadline, in a slow store, are taken out of HEAD', async () => {
    const { keeper, store, environment } = await subject(cancelled)
    const remove = store.delete.bind(store)
    store.delete = async (keys) => {
      // Two calls for each of the two checkpoints.
      await pause(environment.clock, 80_000)
      await remove(keys)
    }
    const discarding = discardAllOfCancelled({ store, environment }, keeper, start(1))
    const refused = expect(discarding).rejects.toThrow(/MR-S01/)
    await environment.clock.advanceSettled(cleanupDeadlineMs)
    await refused
    expect(await store.read(refOf(5).path)).toBeUndefined()
    expect((await keeper.read())!.discarding.map(({ id }) => id)).toEqual([6])
  })

  it('that are none of the job’s break it loudly: nothing is deleted, and no warning hides it', async () => {
    const savepoint: ManifestRef = { ...refOf(7), kind: 'savepoint', path: savepointKeys[0]! }
    const { discard, endAfter, store, environment } = await subject((head) => ({
      ...cancelled(head),
      discarding: [savepoint],
    }))
    await expect(discard()).rejects.toBeInstanceOf(InvariantError)
    await expect(endAfter()).rejects.toBeInstanceOf(InvariantError)
    expect([store.size, environment.lines]).toEqual([6, []])
  })
})
