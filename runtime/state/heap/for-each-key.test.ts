import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpointId, keyGroup } from '../../base/ids.ts'
import type { Key } from '../../record/contract.ts'
import { manualEnvironment } from '../../testkit/manual-clock.ts'
import type { KeyedStateBackend, TypedDescriptor } from '../contract.ts'
import { aggregatingState, listState, mapState, reducingState, valueState } from '../descriptors.ts'
import { createHeapBackend } from './backend.ts'

const { clock } = manualEnvironment()
const open = (): KeyedStateBackend =>
  createHeapBackend({ uid: 'walked', first: keyGroup(0), last: keyGroup(15), maxParallelism: 16, clock })

const number = z.number()
const value = valueState('value', number)
const list = listState('list', number)
const map = mapState('map', { key: 'string', value: number })
const reducing = reducingState('reducing', number, (left, right) => left + right)
const aggregating = aggregatingState('aggregating', number, {
  create: () => 0,
  add: (sum: number, more: number) => sum + more,
  result: (sum) => sum,
})
const timed = valueState('timed', number, { ttl: { ms: 1_000 } })
const timedMap = mapState('timed map', { key: 'number', value: number, ttl: { ms: 1_000 } })

const keys: readonly Key[] = ['a', 7, 0, true, 12n, ['x', 1]]

function keysOf(backend: KeyedStateBackend, descriptor: TypedDescriptor<unknown>): Key[] {
  const visited: Key[] = []
  backend.forEachKey(descriptor, (key) => {
    expect(backend.currentKey).toEqual(key)
    visited.push(key)
  })
  return visited
}

const byText = (left: Key, right: Key): number => (text(left) < text(right) ? -1 : 1)
const text = (key: Key): string => `${typeof key} ${String(key)}`

describe('forEachKey', () => {
  it('visits each key that has something in that state, of any kind, once', () => {
    const backend = open()
    const filled = keys.slice(1)
    for (const key of filled) {
      backend.setKey(key)
      backend.state(value).update(1)
      backend.state(list).add(1)
      backend.state(map).put('one', 1)
      backend.state(map).put('two', 2)
      backend.state(reducing).add(1)
      backend.state(aggregating).add(1)
      backend.state(timed).update(1)
      backend.state(timedMap).put(1, 1)
    }
    backend.setKey(keys[0]!)
    backend.timers.register('event', 1)
    for (const state of [value, list, map, reducing, aggregating, timed, timedMap])
      expect(keysOf(backend, state).toSorted(byText), state.name).toEqual(filled.toSorted(byText))
    expect(keysOf(backend, valueState('empty', number))).toEqual([])
  })

  it('is not disturbed by a visit that removes the key’s entry and makes a new one', () => {
    const backend = open()
    for (const key of keys) {
      backend.setKey(key)
      backend.state(value).update(1)
    }
    let visits = 0
    backend.forEachKey(value, (_key, handle) => {
      visits++
      handle.clear()
      handle.update(visits)
    })
    expect(visits).toBe(keys.length)
  })

  it('changes nothing in a snapshot that runs', async () => {
    const backend = open()
    for (const key of keys) {
      backend.setKey(key)
      backend.state(value).update(1)
    }
    const running = backend.snapshot(
      checkpointId(1),
      {
        write: (_checkpoint, bytes) => {
          const base64 = Buffer.from(bytes).toString('base64')
          return Promise.resolve({ kind: 'inline', base64, crc: 0 })
        },
      },
      { begin: () => undefined, shouldYield: () => false, nextTurn: () => Promise.resolve() },
    )
    backend.forEachKey(value, (_key, handle) => handle.update(2))
    const keyed = await running.done
    const restored = open()
    await restored.restore([keyed], {
      read: (handle) =>
        Promise.resolve(new Uint8Array(Buffer.from(handle.kind === 'inline' ? handle.base64 : '', 'base64'))),
    })
    const stored: unknown[] = []
    restored.forEachKey(value, (_key, handle) => stored.push(handle.get()))
    expect(stored).toEqual(keys.map(() => 1))
  })
})
