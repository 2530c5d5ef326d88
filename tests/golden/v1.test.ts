// What a job of version 1 left behind is read by the code of today, for ever, at the same parallelism and at others.

import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { checkpointId, subtaskIndex, taskKey, vertexId } from '../../runtime/base/ids.ts'
import { assignRestore } from '../../runtime/checkpoint/assignment.ts'
import type { RestoreAssignment } from '../../runtime/checkpoint/assignment.ts'
import { handlesOf } from '../../runtime/checkpoint/handles.ts'
import { decodeManifest } from '../../runtime/checkpoint/manifest.ts'
import type { Manifest } from '../../runtime/checkpoint/manifest.ts'
import { SnapshotDownloader } from '../../runtime/checkpoint/snapshot-reader.ts'
import type { RestoredOperator } from '../../runtime/control/contract.ts'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import { createReader } from '../../runtime/record/bytes.ts'
import type { Codec } from '../../runtime/record/contract.ts'
import type { SnapshotKind } from '../../runtime/record/element.ts'
import { drainTimers, timerText } from '../../runtime/state/conformance-harness.ts'
import type { KeyedStateBackend } from '../../runtime/state/contract.ts'
import { readOperatorState } from '../../runtime/state/operator-state.ts'
import { DirectoryStore } from '../../runtime/storage/directory-store.ts'
import { manifestKey, objectsFolder } from '../../runtime/storage/paths.ts'
import { manualEnvironment } from '../../runtime/testkit/manual-clock.ts'
import * as v1 from './v1.ts'
import * as states from './v1-states.ts'

const environment = manualEnvironment()
const root = objectsFolder(fileURLToPath(new URL('v1', import.meta.url)))
const store = new DirectoryStore({ files: new NodeFiles(), root, environment })
const reader = new SnapshotDownloader({ store, environment })
const cases = (['checkpoint', 'savepoint'] as const).flatMap((kind) =>
  [1, 2, 3, 8].map((parallelism) => ({ kind, parallelism })),
)

describe.each(cases)('the $kind of version 1 at parallelism $parallelism', ({ kind, parallelism }) => {
  it('gives back each value of every kind of keyed state, timers and watermarks', async () => {
    const assignment = await assigned(kind, parallelism)
    let entries = 0
    const timers: string[] = []
    for (let subtask = 0; subtask < parallelism; subtask++) {
      const backend = await restored(assignment, {
        uid: 'everything',
        subtask,
        parallelism,
        wallMs: states.writtenAtMs,
      })
      entries += backend.entryCount
      for (const [index, key] of ownKeys(backend)) {
        backend.setKey(key)
        expect(states.readEverything(backend)).toEqual(states.everythingOf(index, true))
        expect(backend.keyWatermark).toBe(v1.watermarkOf(key))
      }
      for (const domain of ['event', 'processing'] as const) timers.push(...drainTimers(backend, domain).map(timerText))
    }
    expect(entries).toBe(states.keys.length * (states.entriesOfKey.lasting + states.entriesOfKey.timed))
    const registered = states.keys.flatMap((key, index) => states.timersOf(key, index)).map(timerText)
    expect(timers.sort()).toEqual(registered.sort())
  })

  it('lets each entry with a time to live expire at its own millisecond', async () => {
    const assignment = await assigned(kind, parallelism)
    const wallMs = states.writtenAtMs + states.ttlMs + 20
    for (let subtask = 0; subtask < parallelism; subtask++) {
      const backend = await restored(assignment, { uid: 'everything', subtask, parallelism, wallMs })
      for (const [index, key] of ownKeys(backend)) {
        backend.setKey(key)
        expect(states.readEverything(backend)).toEqual(states.everythingOf(index, index > 20))
      }
    }
  })

  it('gives back the accumulators of windows', async () => {
    const assignment = await assigned(kind, parallelism)
    let read = 0
    for (let subtask = 0; subtask < parallelism; subtask++) {
      const backend = await restored(assignment, { uid: 'windows', subtask, parallelism, wallMs: 0 })
      for (const [index, key] of ownKeys(backend)) {
        backend.setKey(key)
        expect(backend.state(states.windowState).entries()).toEqual(states.windowsOf(index))
        read++
      }
    }
    expect(read).toBe(states.keys.length)
  })

  it('deals out operator state: splits once, unions to all, a broadcast to each', async () => {
    const assignment = await assigned(kind, parallelism)
    const splits: unknown[] = []
    for (let subtask = 0; subtask < parallelism; subtask++) {
      splits.push(...(await itemsOf(share(assignment, 'numbers', subtask), 'splits', v1.source.splitCodec)))
      const files = share(assignment, 'files', subtask)
      expect(await itemsOf(files, 'seen', v1.texts)).toEqual([0, 1].flatMap(v1.unionItems))
      expect(await itemsOf(files, 'rules', v1.texts)).toEqual(v1.broadcastItems)
    }
    expect(splits).toEqual(v1.splitsOf.flat())
  })

  it('gives back the enumerator, every transaction once, and what had finished', async () => {
    const assignment = await assigned(kind, parallelism)
    const { codec, handle } = assignment.enumerators.get('numbers')!
    const enumerator = reading(v1.source.enumeratorCodec, codec)(await reader.read(handle))
    expect(enumerator).toEqual(v1.enumeratorState)
    const transactions = Array.from({ length: parallelism }, (_, subtask) => share(assignment, 'files', subtask))
    expect(transactions.flatMap(({ committables = [] }) => committables).toSorted(byTransaction)).toEqual(
      [0, 1].flatMap((subtask) => v1.committablesOf('files', subtask)).toSorted(byTransaction),
    )
    expect([...assignment.finishedBefore].toSorted()).toEqual(['archive', 'past'])
    expect(assignment.committablesWithoutWriter).toEqual(new Map([['archive', v1.committablesOf('archive', 0)]]))
    expect(assignment.dropped).toEqual([])
  })
})

describe('the snapshots of version 1', () => {
  it.each(['checkpoint', 'savepoint'] as const)(
    'hold all that their manifest names in the folder of the %s',
    async (kind) => {
      const manifest = await manifestOf(kind)
      const folder = { checkpoint: 'chk-7/', savepoint: 'savepoint-8/' }[kind]
      const objects = new Set(handlesOf(manifest).map(({ object }) => object))
      expect(objects.size).toBeGreaterThan(3)
      expect([...objects, manifestKey(manifest.id, kind)].toSorted()).toEqual(await store.list(folder))
      expect(manifest).toMatchObject({ format: 1, kind, job: 'golden', start: 2, incarnation: 3, maxParallelism: 8 })
      const numbers = manifest.vertices.find(({ id }) => id === 'numbers')!
      expect(numbers.finished).toEqual([false, true])
    },
  )
})

async function manifestOf(kind: SnapshotKind): Promise<Manifest> {
  const key = manifestKey(checkpointId(v1.ids[kind]), kind)
  return decodeManifest((await store.read(key))!, key)
}

async function assigned(kind: SnapshotKind, parallelism: number): Promise<RestoreAssignment> {
  const options = { allowNonRestoredState: false, commitsConfirmed: false }
  return assignRestore(await manifestOf(kind), v1.graphAt(parallelism), options)
}

function share(assignment: RestoreAssignment, uid: string, subtask: number): RestoredOperator {
  const key = taskKey({ vertex: vertexId(uid), subtask: subtaskIndex(subtask) })
  return assignment.subtasks.get(key)!.restored.operators[uid] ?? {}
}

interface Restoring {
  readonly uid: string
  readonly subtask: number
  readonly parallelism: number
  readonly wallMs: number
}

async function restored(assignment: RestoreAssignment, restoring: Restoring): Promise<KeyedStateBackend> {
  const { uid, subtask, parallelism, wallMs } = restoring
  const backend = v1.backendOf(uid, subtask, parallelism, wallMs)
  await backend.restore(share(assignment, uid, subtask).keyed ?? [], reader)
  return backend
}

function ownKeys(backend: KeyedStateBackend): (readonly [number, (typeof states.keys)[number]])[] {
  return states.keys.map((key, index) => [index, key] as const).filter(([, key]) => v1.isOf(key, backend))
}

async function itemsOf<T>(operator: RestoredOperator, name: string, codec: Codec<T>): Promise<T[]> {
  const items: T[] = []
  for (const list of operator.operatorState?.[name] ?? []) {
    const read = await readOperatorState(name, list, reader)
    items.push(...read.slice(list.from, list.to).map(reading(codec, list.codec)))
  }
  return items
}

/** With the codec of then, as today's. */
function reading<T>(codec: Codec<T>, stored: Codec<T>['description']): (bytes: Uint8Array) => T {
  const answer = codec.readerOf(stored)
  if ('refused' in answer) throw new Error(answer.refused)
  return (bytes) => answer.codec.decode(createReader(bytes))
}

function byTransaction(left: { readonly transaction: string }, right: { readonly transaction: string }): number {
  return left.transaction < right.transaction ? -1 : 1
}
