import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MillraceError } from '../../base/errors.ts'
import { checkpointId } from '../../base/ids.ts'
import type { StateHandle } from '../../checkpoint/contract.ts'
import { manyKeys, MemorySnapshots, range, slicesWith, snapshotOf } from '../conformance-harness.ts'
import { keyedStateConformance } from '../conformance.ts'
import { typeInfoOf } from '../../record/type-info.ts'
import type { KeyedStateBackend, MapState, TypedDescriptor } from '../contract.ts'
import { listState, mapState, valueState } from '../descriptors.ts'
import { createHeapBackend } from './backend.ts'
import { Cursor } from './cursor.ts'

const text = valueState('text', z.string())

describe('the heap backend', () => {
  for (const { claim, run } of keyedStateConformance(createHeapBackend)) it(claim, run)
})

describe('the heap backend with frozen values', () => {
  for (const { claim, run } of keyedStateConformance((options) => createHeapBackend({ ...options, freeze: true }))) {
    it(claim, run)
  }

  it('throws where a value is changed outside mutate, also after a restore', async () => {
    const store = new MemorySnapshots()
    const person = valueState('person', z.object({ name: z.string() }))
    const backend = createHeapBackend({ ...range(), freeze: true })
    const given = { name: 'Ada' }
    backend.setKey(1)
    backend.state(person).update(given)
    expect(() => (given.name = 'Eve')).toThrow(TypeError)
    const list = backend.state(listState('list', z.object({ n: z.number() })))
    list.add({ n: 1 })
    expect(() => (list.get() as unknown[]).push(1)).toThrow(TypeError)
    const copy = createHeapBackend({ ...range(), freeze: true })
    await copy.restore([await snapshotOf(backend, store)], store)
    copy.setKey(1)
    expect(() => ((copy.state(person).get() as { name: string }).name = 'Eve')).toThrow(TypeError)
  })

  it('gives accumulators themselves to mutate, since a copy for each record would cost their whole size', () => {
    const backend = createHeapBackend({ ...range(), freeze: true })
    const value = typeInfoOf<unknown>('windows', z.array(z.int()))
    const descriptor: TypedDescriptor<MapState<number, number[]>> = {
      kind: 'map',
      name: 'windows',
      mapKey: 'number',
      accumulators: true,
      value,
    }
    const windows = backend.state(descriptor)
    backend.setKey(1)
    windows.put(0, [1])
    const before = windows.get(0)
    windows.mutate(0, (numbers) => void numbers.push(2))
    expect(windows.get(0)).toEqual([1, 2])
    expect(windows.get(0)).toBe(before)
  })
})

describe('a heap snapshot', () => {
  it('rejects at once when it is aborted, though its store never answers', async () => {
    const backend = filled()
    const never = { write: () => new Promise<StateHandle>(() => {}) }
    const snapshot = backend.snapshot(
      checkpointId(1),
      never,
      slicesWith(() => {}),
    )
    for (let turn = 0; turn < 1000; turn++) await Promise.resolve()
    snapshot.abort()
    await expect(snapshot.done).rejects.toThrow(/MR-T06.*Checkpoint 1/)
    const store = new MemorySnapshots()
    await createHeapBackend(range()).restore([await snapshotOf(backend, store)], store)
  })

  it('is refused while another runs', async () => {
    const backend = filled()
    const store = new MemorySnapshots()
    const first = backend.snapshot(
      checkpointId(1),
      store,
      slicesWith(() => {}),
    )
    expect(() =>
      backend.snapshot(
        checkpointId(2),
        store,
        slicesWith(() => {}),
      ),
    ).toThrow(/another ran/)
    await first.done
    await backend.snapshot(
      checkpointId(2),
      store,
      slicesWith(() => {}),
    ).done
  })

  it('keeps no more than 16 MiB under way to a slow store', async () => {
    const backend = createHeapBackend(range())
    const state = backend.state(text)
    for (const key of manyKeys(400)) {
      backend.setKey(key)
      state.update('x'.repeat(100_000))
    }
    let underWay = 0
    let most = 0
    const slow = {
      write: async (_: number, { length }: Uint8Array): Promise<StateHandle> => {
        underWay += length
        most = Math.max(most, underWay)
        await new Promise((resolve) => setTimeout(resolve, 2))
        underWay -= length
        return { kind: 'object', object: 'o', offset: 0, length, crc: 0 }
      },
    }
    await backend.snapshot(
      checkpointId(1),
      slow,
      slicesWith(() => {}),
    ).done
    // One block may go over; here a block has about 5 MB.
    expect(most).toBeLessThan(16 * 2 ** 20 + 8_000_000)
    expect(most).toBeGreaterThan(8_000_000)
  })
})

describe('a heap restore', () => {
  it('says which states a lost object hits, and leaves what may pass to the caller', async () => {
    const store = new MemorySnapshots()
    const snapshot = await snapshotOf(filled(), store)
    const failing = (retry: boolean) => ({
      read: () =>
        Promise.reject(
          new MillraceError('MR-C99', { meaning: 'Lost.', who: 'external system', retry, remedy: '' }, ''),
        ),
    })
    await expect(createHeapBackend(range()).restore([snapshot], failing(false))).rejects.toThrow(
      /MR-T03.*'text'.*key group 0.*MR-C99/,
    )
    await expect(createHeapBackend(range()).restore([snapshot], failing(true))).rejects.toThrow(/^MR-C99/)
  })

  it('refuses a map state whose keys have another type now', async () => {
    const store = new MemorySnapshots()
    const backend = createHeapBackend(range())
    backend.setKey(1)
    backend.state(mapState('map', { key: 'string', value: z.number() })).put('1', 1)
    const copy = createHeapBackend(range())
    await copy.restore([await snapshotOf(backend, store)], store)
    expect(() => copy.state(mapState('map', { key: 'number', value: z.number() }))).toThrow(/MR-T02.*'map'/)
  })
})

describe('a value that mutate changes', () => {
  it('stays removed if the change removes it, whatever it returns', () => {
    const backend = createHeapBackend(range())
    const state = backend.state(text)
    for (const key of [1, 'one']) {
      backend.setKey(key)
      state.update('before')
      state.mutate(() => {
        state.clear()
        return 'after'
      })
      expect(state.get()).toBeUndefined()
    }
    expect(backend.entryCount).toBe(0)
    backend.forEachKey(text, (key) => expect(key).toBe('nobody'))
  })
})

describe('the cursor', () => {
  it('lets the tables forget what they found before a version is used again', () => {
    let wraps = 0
    const cursor = new Cursor(() => wraps++)
    cursor.version = 2 ** 30 - 2
    cursor.moveTo('a', 'a', 0, 0)
    cursor.moveTo('b', 'b', 0, 0)
    expect([wraps, cursor.version]).toEqual([1, 1])
  })
})

function filled(): KeyedStateBackend {
  const backend = createHeapBackend(range())
  const state = backend.state(text)
  for (const key of manyKeys(400)) {
    backend.setKey(key)
    state.update('something')
  }
  return backend
}

describe('stored timers', () => {
  /** As that operator's backend writes them; an earlier version did not say what they stand for. */
  const storedBy = async (timerMeaning: string | undefined, store: MemorySnapshots, held = true) => {
    const backend = createHeapBackend({ ...range(), timerMeaning })
    backend.setKey('key')
    if (held) backend.timers.register('event', 5)
    return await snapshotOf(backend, store)
  }
  const restored = async (timerMeaning: string | undefined, ...stored: Parameters<typeof storedBy>) => {
    const backend = createHeapBackend({ ...range(), timerMeaning })
    await backend.restore([await storedBy(...stored)], stored[1])
    return backend.entryCount
  }

  it('of another meaning, or for an operator that has none, are refused before one fires', async () => {
    const store = new MemorySnapshots()
    expect(await restored('windows', 'windows', store)).toBe(1)
    await expect(restored('windows', 'joins', store)).rejects.toThrow(
      "Operator 'suite', state 'timers': they were stored as joins and are windows now.",
    )
    await expect(restored(undefined, 'joins', store)).rejects.toThrow(/MR-T02.*stored as joins, and there are none now/)
  })

  it('of an earlier version, which did not write their meaning, are taken by any operator that has timers', async () => {
    const store = new MemorySnapshots()
    expect(await restored('windows', undefined, store)).toBe(1)
    await expect(restored(undefined, undefined, store)).rejects.toThrow(/MR-T02.*there are none now/)
  })

  it('are told from none at all, also where some fire while they are written', async () => {
    const store = new MemorySnapshots()
    expect(await restored(undefined, 'joins', store, false)).toBe(0)
    const backend = createHeapBackend({ ...range(), timerMeaning: 'joins' })
    backend.setKey('key')
    backend.timers.register('event', 5)
    const { states } = await snapshotOf(backend, store, () => void backend.takeDue('event', 5))
    expect(states[0]?.timerMeaning).toBe('joins')
  })
})
