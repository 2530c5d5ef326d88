import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Key } from '../../record/contract.ts'
import { range } from '../conformance-harness.ts'
import type { KeyedStateBackend } from '../contract.ts'
import { valueState } from '../descriptors.ts'
import { createHeapBackend } from './backend.ts'

const number = valueState('number', z.int())
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

  it('change neither the current key nor any state, known keys or not', () => {
    const backend = withKeys(60_000)
    backend.setKey(5)
    backend.announce([7, 70_000, -1, 0.5], 0, keyOf)
    expect([backend.currentKey, backend.state(number).get(), backend.entryCount]).toEqual([5, 5, 60_000])
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
