import { describe, expect, it } from 'vitest'
import { checkpointId, incarnation, jobId, start } from '../base/ids.ts'
import { encodeManifest, fromCollected } from '../checkpoint/manifest.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { collectedOf, handleIn, subtaskSnapshot } from '../checkpoint/test-snapshots.ts'
import type { ObjectKey } from '../storage/contract.ts'
import {
  beginStart,
  cancel,
  close,
  completeCheckpoint,
  fail,
  finish,
  newJob,
  reserveIds,
  restorePointOf,
} from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../storage/memory-store.ts'
import { historyKey, manifestKey, snapshotDataKey } from '../storage/paths.ts'
import { manualEnvironment } from '../testkit/manual-clock.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { discardLeftovers } from './leftovers.ts'
import { checkpointRef as refOf } from '../storage/test-refs.ts'

const graph = graphOf({ vertices: [{ id: 'all' }] })
const dataOf = (id: number, kind: 'checkpoint' | 'savepoint' = 'checkpoint') =>
  snapshotDataKey(checkpointId(id), kind, 'data')
const savepoint = manifestKey(checkpointId(7), 'savepoint')

/** Checkpoint 4, which HEAD is discarding; 5 and 6, which it retains, 6 with a final state in the folder of 3; savepoint 7; and 8 and 9, never completed. */
const kept: readonly ObjectKey[] = [
  dataOf(3),
  ...[5, 6].flatMap((id) => [dataOf(id), refOf(id).path]),
  dataOf(7, 'savepoint'),
  savepoint,
  // Of a savepoint that never completed: its manifest may be on its way.
  dataOf(9, 'savepoint'),
  historyKey(incarnation(1), 1),
]
const left: readonly ObjectKey[] = [
  snapshotDataKey(checkpointId(3), 'checkpoint', 'other'),
  dataOf(4),
  refOf(4).path,
  dataOf(8),
  // Written, and its swap lost.
  refOf(8).path,
]

async function ended(change: (head: Head) => Head, { silent = false }: { readonly silent?: boolean } = {}) {
  const environment = manualEnvironment()
  const store = new MemoryObjectStore()
  const list = store.list.bind(store)
  if (silent) store.list = () => new Promise(() => undefined)
  const manifests = new Map([4, 5, 6].map((id) => [refOf(id).path, manifestOf(id)]))
  for (const key of [...kept, ...left]) await store.create(key, manifests.get(key) ?? new Uint8Array(3))
  const keeper = await HeadKeeper.open(new MemoryHeadStore(), environment)
  await keeper.begin(() => {
    let head = reserveIds(newJob({ job: jobId('job'), start: start(1), parallelism: 1, maxParallelism: 8 }), 10).head
    for (const id of [4, 5, 6])
      head = completeCheckpoint(head, { manifest: refOf(id), retainedMax: 2, commitsPending: false })
    return change(head)
  })
  const options = { graph, store, environment } as unknown as JobCoordinatorOptions
  const beganMs = environment.clock.nowMs()
  const done = discardLeftovers(options, keeper, start(1))
  if (silent) await environment.clock.advanceSettled(10_000)
  await done
  const ms = environment.clock.nowMs() - beganMs
  const { discarding } = (await keeper.read())!
  return { there: await list(''), discarding: discarding.map(({ id }) => id), ms }
}

function manifestOf(id: number): Uint8Array {
  const meta = { job: jobId('job'), start: start(1), incarnation: incarnation(1), graph, enumerators: new Map() }
  const operatorState = {
    list: {
      redistribution: 'split',
      codec: { version: 1, kind: 'bytes', fingerprint: 'b', layout: null },
      items: handleIn(dataOf(3)),
      count: 2,
    },
  } as const
  const snapshot = subtaskSnapshot(id === 6 ? { all: { operatorState } } : {})
  return encodeManifest(fromCollected({ ...collectedOf(graph, () => snapshot), id: checkpointId(id) }, meta))
}

describe('what a job that is over leaves', () => {
  it.each<[string, (head: Head) => Head]>([
    ['finished', finish],
    ['failed', (head) => fail(head, 'why')],
    ['cancelled', (head) => cancel(head, { deleted: false })],
  ])('is what HEAD names, and savepoints: %s', async (_, change) => {
    expect(await ended(change)).toMatchObject({ there: kept.toSorted(), discarding: [] })
  })

  it('is not waited for without end', async () => {
    const { there, ms } = await ended((head) => fail(head, 'why'), { silent: true })
    expect({ there, ms }).toEqual({ there: [...kept, ...left].toSorted(), ms: 10_000 })
  })

  it.each<[string, (head: Head) => Head]>([
    ['suspended: the next start looks back', close],
    ['it goes on in a later start', laterStart],
  ])('is left alone where %s', async (_, change) => {
    expect(await ended(change)).toMatchObject({ there: [...kept, ...left].toSorted(), discarding: [4] })
  })
})

function laterStart(head: Head): Head {
  const begun = { restoredFrom: restorePointOf(head), commitsPending: false, parallelism: 1, maxParallelism: 8 }
  return {
    ...cancel(beginStart(head, { start: start(2), ...begun }), { deleted: false }),
    incarnation: head.incarnation,
  }
}
