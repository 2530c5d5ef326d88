import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { checkpointId, requestId, subtaskIndex, taskKey, vertexId } from '../base/ids.ts'
import type { KeyedSnapshot, OperatorStateSnapshot, StateHandle } from '../checkpoint/contract.ts'
import type { CollectedSnapshot } from '../checkpoint/core-contract.ts'
import { SnapshotDownloader } from '../checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../checkpoint/snapshot-writer.ts'
import { graphOf } from '../checkpoint/test-graph.ts'
import { codec, collectedOf, keyedOf, subtaskSnapshot } from '../checkpoint/test-snapshots.ts'
import type { ObjectKey } from '../storage/contract.ts'
import { ForeignFiles } from '../storage/foreign-files.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { MemoryObjectStore } from '../storage/memory-store.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import { Cluster, splits } from '../../tests/support/coordinator-cluster.ts'
import { copiedBytesMax, SelfContained } from './self-contained.ts'

const graph = graphOf({ vertices: [{ id: 'done' }, { id: 'runs' }] })
const key = (vertex: string) => taskKey({ vertex: vertexId(vertex), subtask: subtaskIndex(0) })
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text.padEnd(2000, '.'))

/** Vertex `done` refers to `handles` (a list and two key groups), `runs` to what was written for the snapshot itself. */
async function subject(kind: 'checkpoint' | 'savepoint', objects: Readonly<Record<string, string>>) {
  const environment = manualEnvironment()
  const store = new MemoryObjectStore()
  const files = new MemoryFiles()
  await files.makeDirectory('/other/objects/chk-9')
  const writers = new SnapshotUploader({ store, environment, writers: 1 })
  const handles: StateHandle[] = []
  for (const [object, text] of Object.entries(objects)) {
    const bytes = bytesOf(text)
    if (object.startsWith('file:')) await files.writeNew(object.slice('file://'.length), bytes)
    else await store.create(object as ObjectKey, bytes)
    const crc = crc32(bytes)
    handles.push({ kind: 'object', object, offset: 0, length: bytes.length, crc })
  }
  const keyed: KeyedSnapshot = {
    ...keyedOf({ parallelism: 1, subtask: 0, maxParallelism: 2 }),
    groups: [
      { keyGroup: 0 as never, watermark: 5, handle: handles[0]!, base: [handles[1]!] },
      { keyGroup: 1 as never, watermark: 6 },
    ],
  }
  const list = { redistribution: 'split' as const, codec, items: handles[0]!, count: 1 }
  const collected = {
    ...collectedOf(graph, (vertex) =>
      vertex === 'done'
        ? subtaskSnapshot({ done: { keyed, operatorState: { list } } }, true)
        : subtaskSnapshot({ runs: { operatorState: { list: { ...list, items: handles.at(-1)! } } } }),
    ),
    id: checkpointId(12),
    kind,
  }
  const reader = new SnapshotDownloader({ store, foreign: new ForeignFiles(files), environment })
  const copier = new SelfContained({ reader, writers })
  const make = async (of: CollectedSnapshot) => {
    const copying = copier.copied(copier.needed(of), { signal: new AbortController().signal })
    copying.catch(() => undefined)
    await environment.clock.advanceSettled(1000)
    return copying
  }
  const read = async (handle: StateHandle | undefined) =>
    new TextDecoder().decode(await reader.read(handle!)).replaceAll('.', '')
  return { collected, make, copier, read, store, files }
}

describe('a snapshot made self-contained', () => {
  it('as a savepoint copies everything from outside of its own folder, once an object, and changes nothing else', async () => {
    const { collected, make, read, store } = await subject('savepoint', {
      'chk-7/a': 'first',
      'file:///other/objects/chk-9/b': 'second',
      'savepoint-12/c': 'own',
    })
    const result = await make(collected)
    const { keyed, operatorState } = result.subtasks.get(key('done'))!.snapshot.operators['done']!
    const [group, empty] = keyed!.groups
    expect(await read(group!.handle)).toBe('first')
    expect(await read(group!.base![0])).toBe('second')
    expect(operatorState!['list']!.items).toEqual(group!.handle)
    expect(empty).toEqual({ keyGroup: 1, watermark: 6 })
    expect(result.subtasks.get(key('runs'))).toEqual(collected.subtasks.get(key('runs')))
    const objects = await store.list('savepoint-12/')
    expect(objects).toHaveLength(2)
    expect(
      [group!.handle, group!.base![0]].every(
        (handle) => handle!.kind === 'object' && objects.includes(handle!.object as ObjectKey),
      ),
    ).toBe(true)
  })

  it('as a checkpoint keeps what lies in the store of the job, but no savepoint of it and nothing of another one', async () => {
    const { collected, make, read } = await subject('checkpoint', {
      'savepoint-7/a': 'of the user',
      'file:///other/objects/chk-9/b': 'of another job',
      'chk-3/c': 'of an earlier checkpoint',
    })
    const result = await make(collected)
    const [group] = result.subtasks.get(key('done'))!.snapshot.operators['done']!.keyed!.groups
    for (const handle of [group!.handle!, group!.base![0]!])
      expect(handle).toMatchObject({ object: expect.stringMatching(/^chk-12\//) })
    expect([await read(group!.handle), await read(group!.base![0])]).toEqual(['of the user', 'of another job'])
    const { items } = result.subtasks.get(key('runs'))!.snapshot.operators['runs']!.operatorState!['list']!
    expect(items).toMatchObject({ object: 'chk-3/c' })
  })

  it('is the same one when nothing needs a copy', async () => {
    const { collected, copier } = await subject('checkpoint', { 'chk-7/a': 'a', 'shared/b': 'b' })
    expect(copier.needed(collected)).toEqual({ snapshot: collected, missing: new Map() })
  })

  it('copies for a checkpoint once: later ones name the copy of the one that completed, and no original is needed then', async () => {
    const { collected, make, copier, read, files, store } = await subject('checkpoint', {
      'file:///other/objects/chk-9/a': 'first',
      'file:///other/objects/chk-9/b': 'second',
    })
    const groupOf = ({ subtasks }: CollectedSnapshot) =>
      subtasks.get(key('done'))!.snapshot.operators['done']!.keyed!.groups[0]!
    const completed = await make({ ...collected, id: checkpointId(13) })
    copier.completed(completed)
    for (const name of ['a', 'b']) await files.remove(`/other/objects/chk-9/${name}`)
    const later = await make({ ...collected, id: checkpointId(14) })
    expect(groupOf(later)).toEqual(groupOf(completed))
    expect(groupOf(later).handle).toMatchObject({ object: expect.stringMatching(/^chk-13\//) })
    const savepoint = await make({ ...collected, id: checkpointId(15), kind: 'savepoint' })
    expect(groupOf(savepoint).handle).toMatchObject({ object: expect.stringMatching(/^savepoint-15\//) })
    expect(await read(groupOf(savepoint).base![0])).toBe('second')
    expect(await store.list('chk-14/')).toEqual([])
  })

  it('does not come to be when something cannot be read: the snapshot must fail', async () => {
    const { collected, make, store } = await subject('savepoint', { 'chk-7/a': 'a', 'chk-7/b': 'b' })
    await store.delete(['chk-7/b' as ObjectKey])
    await expect(make(collected)).rejects.toThrow(/MR-C50/)
  })
})

describe('copies', () => {
  const MiB = 1024 * 1024

  /** Final states of these lengths, and reads and writes that settle when the test says so. */
  function slowly(lengths: readonly number[]) {
    const story: string[] = []
    const waiting = new Map<string, () => void>()
    const step = async (name: string): Promise<void> => {
      story.push(name)
      await new Promise<void>((resolve) => waiting.set(name, resolve))
    }
    const reader = {
      read: async (handle: StateHandle) => {
        const piece = handle.kind === 'object' ? handle.object.slice('savepoint-1/'.length) : ''
        await step(`read ${piece}`)
        return new TextEncoder().encode(piece)
      },
    }
    const write = async (of: number, bytes: Uint8Array): Promise<StateHandle> => {
      const object = new TextDecoder().decode(bytes)
      await step(`write ${object} for ${of}`)
      return { kind: 'object', object: `${folder}-${of}/${object}`, offset: 0, length: bytes.length, crc: 0 }
    }
    let folder = ''
    const ofKind = (kind: 'checkpoint' | 'savepoint') => {
      folder = kind === 'checkpoint' ? 'chk' : 'savepoint'
      return { write }
    }
    const copier = new SelfContained({ reader, writers: { ofKind } })
    const items = lengths.map((length, n): [string, OperatorStateSnapshot] => [
      `list ${n}`,
      {
        redistribution: 'split',
        codec,
        // Of a savepoint, so that a checkpoint must copy it as well.
        items: { kind: 'object', object: `savepoint-1/piece${n}`, offset: 0, length, crc: 0 },
        count: 1,
      },
    ])
    const collected = collectedOf(graph, (vertex) =>
      subtaskSnapshot(vertex === 'done' ? { done: { operatorState: Object.fromEntries(items) } } : {}, true),
    )
    const copy = (id: number, kind: 'checkpoint' | 'savepoint' = 'savepoint') => {
      const stop = new AbortController()
      const needed = copier.needed({ ...collected, id: checkpointId(id), kind })
      let pieces = 0
      const copied = copier.copied(needed, { signal: stop.signal, onPiece: () => void pieces++ })
      copied.catch(() => undefined)
      return { copied, stop, pieces: () => pieces }
    }
    const settle = async (...names: string[]) => {
      for (const name of names) {
        waiting.get(name)!()
        await settlePromises()
      }
    }
    return { copy, copier, story, settle }
  }

  it('have no more bytes in memory than there is room for, and a larger piece goes alone', async () => {
    expect(copiedBytesMax).toBe(64 * MiB)
    const { copy, story, settle } = slowly([30 * MiB, 30 * MiB, 30 * MiB, 80 * MiB, 1, 1])
    const { copied } = copy(12)
    await settlePromises()
    expect(story).toEqual(['read piece0', 'read piece1'])
    await settle('read piece0')
    expect(story).toEqual(['read piece0', 'read piece1', 'write piece0 for 12'])
    await settle('write piece0 for 12')
    expect(story.slice(3)).toEqual(['read piece2'])
    await settle('read piece1', 'write piece1 for 12')
    expect(story.slice(4)).toEqual(['write piece1 for 12'])
    await settle('read piece2', 'write piece2 for 12')
    expect(story.slice(5)).toEqual(['write piece2 for 12', 'read piece3'])
    await settle('read piece3', 'write piece3 for 12')
    expect(story.slice(7)).toEqual(['write piece3 for 12', 'read piece4', 'read piece5'])
    await settle('read piece4', 'read piece5', 'write piece4 for 12', 'write piece5 for 12')
    const { operatorState } = (await copied).subtasks.get(key('done'))!.snapshot.operators['done']!
    expect(Object.values(operatorState!).map(({ items }) => items)).toMatchObject(
      [0, 1, 2, 3, 4, 5].map((n) => ({ object: `savepoint-12/piece${n}` })),
    )
  })

  it('that are given up end at once and begin nothing more; the next ones wait for what was under way', async () => {
    const { copy, story, settle } = slowly([40 * MiB, 20 * MiB, 40 * MiB])
    const { copied, stop } = copy(12)
    await settlePromises()
    await settle('read piece0')
    stop.abort()
    await expect(copied).rejects.toBe(stop.signal.reason)
    const next = copy(13)
    await settlePromises()
    expect(story).toEqual(['read piece0', 'read piece1', 'write piece0 for 12'])
    await settle('read piece1')
    expect(story).toHaveLength(3)
    await settle('write piece0 for 12')
    expect(story.slice(3)).toEqual(['read piece0', 'read piece1'])
    await settle('read piece0', 'read piece1', 'write piece0 for 13', 'write piece1 for 13')
    await settle('read piece2', 'write piece2 for 13')
    expect((await next.copied).id).toBe(13)
  })

  const placesIn = ({ subtasks }: CollectedSnapshot): unknown[] =>
    Object.values(subtasks.get(key('done'))!.snapshot.operators['done']!.operatorState!).map(({ items }) =>
      items.kind === 'object' ? items.object : items,
    )

  it('of a checkpoint that is given up are what the next one goes on from, also those that land late', async () => {
    const { copy, copier, story, settle } = slowly([30 * MiB, 30 * MiB, 40 * MiB, 40 * MiB])
    const first = copy(12, 'checkpoint')
    await settlePromises()
    await settle('read piece0', 'write piece0 for 12', 'read piece1')
    first.stop.abort()
    await expect(first.copied).rejects.toBe(first.stop.signal.reason)
    const second = copy(13, 'checkpoint')
    await settle('write piece1 for 12')
    expect(story.slice(4)).toEqual(['read piece2'])
    await settle('read piece2', 'write piece2 for 13')
    second.stop.abort()
    await expect(second.copied).rejects.toBe(second.stop.signal.reason)
    // It was under way.
    await settle('read piece3')
    const third = copy(14, 'checkpoint')
    await settlePromises()
    await settle('read piece3', 'write piece3 for 14')
    const completed = await third.copied
    expect(placesIn(completed)).toEqual(['chk-12/piece0', 'chk-12/piece1', 'chk-13/piece2', 'chk-14/piece3'])
    copier.completed(completed)
    // And from then on nothing is to be copied.
    expect(placesIn(await copy(15, 'checkpoint').copied)).toEqual(placesIn(completed))
  })

  it('are not gone on from once a checkpoint has completed that does not name them: it lets them be deleted', async () => {
    const { copy, copier, story, settle } = slowly([40 * MiB, 40 * MiB])
    const first = copy(12, 'checkpoint')
    await settlePromises()
    await settle('read piece0', 'write piece0 for 12', 'read piece1')
    first.stop.abort()
    await expect(first.copied).rejects.toBe(first.stop.signal.reason)
    copier.completed({ id: checkpointId(13), kind: 'checkpoint' })
    // Too late as well.
    await settle('write piece1 for 12')
    const next = copy(14, 'checkpoint')
    await settlePromises()
    expect(story.slice(4)).toEqual(['read piece0'])
    await settle('read piece0', 'write piece0 for 14', 'read piece1', 'write piece1 for 14')
    expect(placesIn(await next.copied)).toEqual(['chk-14/piece0', 'chk-14/piece1'])
  })

  it('of a savepoint are its own alone, and each is told of', async () => {
    const { copy, copier, settle } = slowly([40 * MiB, 40 * MiB])
    const first = copy(12)
    await settlePromises()
    await settle('read piece0', 'write piece0 for 12', 'read piece1', 'write piece1 for 12')
    expect([placesIn(await first.copied), first.pieces()]).toEqual([['savepoint-12/piece0', 'savepoint-12/piece1'], 2])
    copier.completed({ id: checkpointId(12), kind: 'savepoint' })
    const next = copy(13, 'checkpoint')
    await settlePromises()
    await settle('read piece0', 'write piece0 for 13', 'read piece1', 'write piece1 for 13')
    expect(placesIn(await next.copied)).toEqual(['chk-13/piece0', 'chk-13/piece1'])
  })

  it('that take for ever hold up no restart, nor the cancellation behind it', async () => {
    const cluster = new Cluster()
    cluster.inlinesNothing = true
    const options = { regions: true, parallelism: splits + 1, settings: { checkpointIntervalMs: undefined } }
    const coordinator = cluster.coordinator(options)
    const run = coordinator.run()
    await cluster.pass(60_000, () => cluster.appended > 100)
    // A sink that stands at its end of data waits for it.
    coordinator.checkpoint()
    expect(await cluster.pass(10_000, () => coordinator.checkpoints?.finished.size === 1)).toBe(true)
    const readRange = cluster.objects.readRange.bind(cluster.objects)
    cluster.objects.readRange = () => new Promise(() => undefined)
    const answer = coordinator.savepoint(requestId('mine'))
    await cluster.pass(10_000, () => coordinator.checkpoints?.pending?.phase === 'writing')
    // What the restart reads is answered.
    cluster.objects.readRange = readRange
    cluster.slots.values().next().value!.end('its thread ended')
    expect(await cluster.answerOf(answer)).toMatchObject({
      outcome: 'failed',
      detail: expect.stringMatching(/^subtask lost/),
    })
    expect(cluster.restarts).toEqual([expect.stringContaining('MR-O11')])
    expect(await cluster.pass(100, () => coordinator.execution?.allRunning === true)).toBe(true)
    coordinator.cancel()
    expect(await cluster.ended(run, 100)).toEqual({ kind: 'cancelled' })
    expect(await cluster.objects.list('savepoint-2/_metadata')).toEqual([])
  })
})
