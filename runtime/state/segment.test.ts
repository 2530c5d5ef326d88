import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpointId, keyGroup } from '../base/ids.ts'
import type { KeyedSnapshot, StateHandle } from '../checkpoint/contract.ts'
import { createReader, createWriter } from '../record/bytes.ts'
import {
  drainTimers,
  MAX_PARALLELISM,
  MemorySnapshots,
  range,
  slicesWith,
  timerText,
  WallClock,
} from './conformance-harness.ts'
import { BlockMemory } from './block-memory.ts'
import type { KeyedStateBackend } from './contract.ts'
import { aggregatingState, listState, mapState, reducingState, valueState } from './descriptors.ts'
import { createHeapBackend } from './heap/backend.ts'
import { BlockWriter, openBlock } from './segment.ts'

const golden = {
  1: new URL('testdata/segment-1.json', import.meta.url),
  2: new URL('testdata/segment-2.json', import.meta.url),
} as const
const pace = { shouldYield: () => false, pause: async () => {} }

/** The state of the golden files. It may grow by new files, never change. */
function goldenState(backend: KeyedStateBackend) {
  return {
    value: backend.state(valueState('value', z.object({ count: z.int(), mean: z.number(), text: z.string() }))),
    anything: backend.state(valueState<unknown>('anything')),
    list: backend.state(listState('list', z.string())),
    byName: backend.state(mapState('byName', { key: 'string', value: z.boolean() })),
    byNumber: backend.state(mapState('byNumber', { key: 'number', value: z.bigint() })),
    reducing: backend.state(reducingState('reducing', z.number(), (left, right) => left + right)),
    aggregating: backend.state(
      aggregatingState('aggregating', z.object({ sum: z.number() }), {
        create: () => ({ sum: 0 }),
        add: ({ sum }, value: number) => ({ sum: sum + value }),
        result: ({ sum }) => sum,
      }),
    ),
  }
}

/** What version 2 has besides. */
function timedState(backend: KeyedStateBackend, ms = 1000) {
  const ttl = { ms }
  return {
    value: backend.state(valueState('timed value', z.string(), { ttl })),
    list: backend.state(listState('timed list', z.int(), { ttl })),
    map: backend.state(mapState('timed map', { key: 'string', value: z.int(), ttl })),
  }
}

const goldenKeys = ['a', 'ä', '', 7, -0.5, 12345678901234567890n, true, ['tuple', 1, [false]]]

function fillGolden(backend: KeyedStateBackend, clock: WallClock): void {
  const state = goldenState(backend)
  const timed = timedState(backend)
  for (const [index, key] of goldenKeys.entries()) {
    backend.setKey(key)
    state.value.update({ count: index, mean: index / 3, text: `text ${index} ∑` })
    state.anything.update({ index, list: [null, 'x'] })
    state.list.addAll(['one', `two ${index}`])
    state.byName.put('yes', true)
    state.byName.put('no', false)
    state.byNumber.put(index, BigInt(index) ** 20n)
    state.reducing.add(index)
    state.aggregating.add(index + 0.25)
    clock.ms = wallStartMs + index
    timed.value.update(`timed ${index}`)
    timed.list.add(index)
    timed.map.put('first', index)
    clock.ms = wallStartMs + 500
    timed.list.add(100 + index)
    timed.map.put('second', 100 + index)
    backend.timers.register('event', 1_700_000_000_000 + index, 'tag')
    backend.timers.register('processing', -index)
  }
  backend.setWatermark(1_700_000_000_004)
}

const wallStartMs = 1_700_000_000_000

function read(version: keyof typeof golden): KeyedSnapshot {
  return JSON.parse(readFileSync(golden[version], 'utf8')) as KeyedSnapshot
}

function withoutMeaning(snapshot: KeyedSnapshot): KeyedSnapshot {
  const states = snapshot.states.map((state) => {
    const { timerMeaning: _, ...rest } = state
    return rest
  })
  return { ...snapshot, states }
}

async function restoredFrom(snapshot: KeyedSnapshot, clock?: WallClock): Promise<KeyedStateBackend> {
  const backend = createHeapBackend(range(undefined, undefined, clock))
  await backend.restore([snapshot], new MemorySnapshots())
  return backend
}

describe('the segment format', () => {
  it.each([1, 2] as const)('reads what version %i wrote, for ever', async (version) => {
    const backend = await restoredFrom(read(version))
    const state = goldenState(backend)
    expect(backend.restoredWatermark).toBe(1_700_000_000_004)
    for (const [index, key] of goldenKeys.entries()) {
      backend.setKey(key)
      expect(state.value.get()).toEqual({ count: index, mean: index / 3, text: `text ${index} ∑` })
      expect(state.anything.get()).toEqual({ index, list: [null, 'x'] })
      expect(state.list.get()).toEqual(['one', `two ${index}`])
      expect(state.byName.entries()).toEqual([
        ['yes', true],
        ['no', false],
      ])
      expect(state.byNumber.entries()).toEqual([[index, BigInt(index) ** 20n]])
      expect(state.reducing.get()).toBe(index)
      expect(state.aggregating.get()).toBe(index + 0.25)
    }
    expect(backend.entryCount).toBe(goldenKeys.length * (version === 1 ? 10 : 14))
    const fired = [...drainTimers(backend, 'event'), ...drainTimers(backend, 'processing')].map(timerText)
    const registered = goldenKeys.flatMap((key, index) => [
      timerText({ key, domain: 'event', timestampMs: 1_700_000_000_000 + index, tag: 'tag' }),
      timerText({ key, domain: 'processing', timestampMs: -index, tag: '' }),
    ])
    expect(fired.sort()).toEqual(registered.sort())
  })

  it('reads the times of what version 2 wrote, to the millisecond', async () => {
    const backend = await restoredFrom(read(2), new WallClock(wallStartMs + 1004))
    const { value, list, map } = timedState(backend)
    for (const [index, key] of goldenKeys.entries()) {
      backend.setKey(key)
      // Written at the millisecond of its index, it lives for 1000: what was written at 4 is gone at 1004.
      const lives = index > 4
      expect(value.get()).toBe(lives ? `timed ${index}` : undefined)
      expect(list.get()).toEqual(lives ? [index, 100 + index] : [100 + index])
      expect(map.keys()).toEqual(lives ? ['first', 'second'] : ['second'])
    }
  })

  it('writes the same bytes today', async () => {
    // What timers stand for has come into the description since, not into the bytes.
    expect(withoutMeaning(await inlineSnapshot())).toEqual(read(2))
  })

  it('lays out a block as its header comment says', async () => {
    const writer = new BlockWriter({ keyGroup: keyGroup(5), watermark: -2 }, new BlockMemory())
    writer.beginSection(0)
    writer.endSection()
    writer.beginSection(1)
    writer.entries.u8(1)
    writer.endEntry()
    writer.addWritten(2, Uint8Array.of(1, 1))
    writer.endSection()
    const block = (await writer.finish(pace))!
    const reader = createReader(block)
    expect(Buffer.from(reader.raw(4)).toString()).toBe('MRSG')
    expect([reader.u8(), reader.u8(), reader.u16(), reader.i53(), reader.u32(), reader.u16()]).toEqual([
      2,
      1,
      5,
      -2,
      block.length,
      1,
    ])
    expect([reader.u16(), reader.u32(), reader.u32()]).toEqual([1, 3, 3])
    expect(block.length).toBe(22 + 14 + 4 + 3)
  })

  it('has the same bytes in memory that was used before, whether entries come one by one or in writers of their own', async () => {
    const memory = new BlockMemory()
    const text = (index: number): string => `${index}`.repeat(50)
    const count = 20_000
    const written = async (ownEvery: number): Promise<Uint8Array> => {
      const block = new BlockWriter({ keyGroup: keyGroup(5), watermark: 9 }, memory)
      block.beginSection(0)
      for (let index = 0; index < count; index++) {
        if (index % ownEvery === 0) {
          const own = createWriter()
          own.string(text(index))
          block.addWriter(1, own)
        } else {
          block.entries.string(text(index))
          block.endEntry()
        }
      }
      block.endSection()
      return (await block.finish(pace))!.slice()
    }
    const first = await written(Number.POSITIVE_INFINITY)
    const reader = createReader(first, 22 + 14 + 4)
    for (let index = 0; index < count; index++) expect(reader.string()).toBe(text(index))
    expect(reader.position).toBe(first.length)
    for (const ownEvery of [Number.POSITIVE_INFINITY, 1000, 7])
      expect(Buffer.compare(await written(ownEvery), first)).toBe(0)
    memory.close()
    expect(Buffer.compare(await written(1000), first)).toBe(0)
  })

  it('says which state, key group and object a flipped bit hit', async () => {
    const backend = createHeapBackend(range())
    const state = backend.state(valueState('total', z.string()))
    backend.setKey('a')
    state.update('a text to be damaged')
    const store = new MemorySnapshots()
    const snapshot = await backend.snapshot(
      checkpointId(3),
      store,
      slicesWith(() => {}),
    ).done
    const [object, bytes] = [...store.objects][0]!
    bytes[bytes.length - 3]! ^= 4
    const group = snapshot.groups.find((candidate) => candidate.handle !== undefined)!.keyGroup
    await expect(createHeapBackend(range()).restore([snapshot], store)).rejects.toThrow(
      `MR-T03 Stored state is damaged; nothing of it was used. The section of state 'total' has a wrong CRC (operator 'suite', key group ${group}, object ${object} at 0).`,
    )
  })

  it('refuses a block of another key group, of another watermark, and one that is cut short', async () => {
    const writer = new BlockWriter({ keyGroup: keyGroup(5), watermark: 9 }, new BlockMemory())
    writer.beginSection(0)
    writer.addWritten(1, Uint8Array.of(1, 2))
    writer.endSection()
    const block = (await writer.finish(pace))!
    const description = {
      name: 'total',
      kind: 'value',
      codecs: { key: { version: 1, kind: 'key', fingerprint: '', layout: null } },
    } as const
    const place = { uid: 'u', keyGroup: keyGroup(5), watermark: 9, object: 'o', format: 2, states: [description] }
    expect(openBlock(block, place)).toHaveLength(1)
    expect(() => openBlock(block, { ...place, keyGroup: keyGroup(6) })).toThrow(/MR-T03.*key group 5/)
    expect(() => openBlock(block, { ...place, watermark: 8 })).toThrow(/MR-T03.*watermark 9/)
    expect(() => openBlock(block, { ...place, states: [] })).toThrow(/MR-T03/)
    for (let length = 0; length < block.length; length++) {
      expect(() => openBlock(block.subarray(0, length), place)).toThrow(/MR-T03/)
    }
  })

  it('refuses a snapshot of a later format and one that builds on older blocks', async () => {
    const snapshot = await inlineSnapshot()
    const restore = (changed: KeyedSnapshot): Promise<void> =>
      createHeapBackend(range()).restore([changed], new MemorySnapshots())
    await expect(restore({ ...snapshot, format: 3 })).rejects.toThrow(/MR-T05.*format 3; this version reads 1 to 2/)
    const base = snapshot.groups.find((group) => group.handle !== undefined)!.handle!
    await expect(
      restore({ ...snapshot, groups: snapshot.groups.map((group) => ({ ...group, base: [base] })) }),
    ).rejects.toThrow(/MR-T05/)
  })
})

async function inlineSnapshot(): Promise<KeyedSnapshot> {
  const clock = new WallClock(wallStartMs)
  const backend = createHeapBackend({ ...range(undefined, undefined, clock), maxParallelism: MAX_PARALLELISM })
  fillGolden(backend, clock)
  const write = (_: number, bytes: Uint8Array): Promise<StateHandle> =>
    Promise.resolve({ kind: 'inline', base64: Buffer.from(bytes).toString('base64'), crc: 0 })
  return await backend.snapshot(
    checkpointId(1),
    { write },
    slicesWith(() => {}),
  ).done
}
