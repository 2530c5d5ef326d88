import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Key } from '../../record/contract.ts'
import { keyGroupOf } from '../../record/key-group.ts'
import { MAX_PARALLELISM, MemorySnapshots, range, snapshotOf } from '../conformance-harness.ts'
import type { KeyedStateBackend } from '../contract.ts'
import { valueState } from '../descriptors.ts'
import { createHeapBackend } from './backend.ts'

const number = valueState('number', z.int())
const bytes = valueState('bytes', z.instanceof(Uint8Array))
const keyOf = (value: unknown): Key => value as Key
const numbers = Array.from({ length: 300 }, (_, index) => index)

describe('records announced to the heap backend', () => {
  it('are looked at in pieces once there is too much state for the caches', () => {
    const backend = withKeys(60_000)
    expect(backend.announce(numbers, 0, keyOf)).toBe(128)
    expect(backend.announce(numbers, 256, keyOf)).toBe(44)
  })

  it('are left alone as long as there is little state', () => {
    const asked: unknown[] = []
    const answer = withKeys(100).announce(numbers, 10, (value) => {
      asked.push(value)
      return keyOf(value)
    })
    expect([answer, asked]).toEqual([290, []])
  })

  it('are looked at from fewer entries on where these are bytes, written or restored', async () => {
    const backend = createHeapBackend(range())
    const state = backend.state(bytes)
    for (let key = 0; key < 5_000; key++) {
      backend.setKey(key)
      state.update(Uint8Array.of(key & 255))
    }
    expect(backend.announce(numbers, 0, keyOf)).toBe(128)
    const restored = createHeapBackend(range())
    restored.state(bytes)
    const store = new MemorySnapshots()
    await restored.restore([await snapshotOf(backend, store)], store)
    expect([restored.entryCount, restored.announce(numbers, 0, keyOf)]).toEqual([5_000, 128])
  })

  it('change neither the current key nor any state, known keys or not', () => {
    const backend = withKeys(60_000)
    backend.setKey(5)
    backend.announce([7, 70_000, -1, 0.5], 0, keyOf)
    expect([backend.currentKey, backend.state(number).get(), backend.entryCount]).toEqual([5, 5, 60_000])
  })

  it('do not come between the current key and its state, also while entries move to a larger table', () => {
    const backend = createHeapBackend(range(0, 0))
    const state = backend.state(number)
    const keys: number[] = []
    for (let key = 0; keys.length < 87_500; key++) if (keyGroupOf(key, MAX_PARALLELISM) === 0) keys.push(key)
    const [first] = keys as [number]
    for (const [index, key] of keys.entries()) {
      backend.setKey(key)
      state.update(key)
      // The table of 131,072 places is full with 87,381.
      if (index < 87_350) continue
      backend.setKey(first)
      state.get()
      for (let times = 0; times < 80; times++) backend.announce(keys, 0, keyOf)
      state.update(-key)
      backend.setKey(first)
      expect(state.get()).toBe(-key)
    }
  })

  it('are let alone where their keys are of another range', () => {
    const backend = createHeapBackend(range(0, 3))
    const state = backend.state(number)
    const own = Array.from({ length: 120_000 }, (_, key) => key).filter((key) => keyGroupOf(key, MAX_PARALLELISM) <= 3)
    for (const key of own) {
      backend.setKey(key)
      state.update(key)
    }
    expect(numbers.slice(0, 3).map((key) => keyGroupOf(key, MAX_PARALLELISM))).toEqual([1, 5, 6])
    expect([backend.announce(numbers, 0, keyOf), backend.announce(numbers, 1, keyOf)]).toEqual([1, 299])
  })

  it('are not asked for further keys behind one that is no number or cannot be had', () => {
    const backend = withKeys(60_000)
    expect(backend.announce(['text', 1, 2], 0, keyOf)).toBe(3)
    const failing = (): Key => {
      throw new Error('no key')
    }
    expect(backend.announce([1, 2, 3], 1, failing)).toBe(2)
  })
})

function withKeys(count: number): KeyedStateBackend {
  const backend = createHeapBackend(range())
  const state = backend.state(number)
  for (let key = 0; key < count; key++) {
    backend.setKey(key)
    state.update(key)
  }
  return backend
}
