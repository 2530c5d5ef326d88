// Keyed state on the heap against a bare JS Map of objects, and what a snapshot of a million keys costs.

import { z } from 'zod'
import { checkpointId, keyGroup } from '../runtime/base/ids.ts'
import type { StateHandle } from '../runtime/checkpoint/contract.ts'
import { realEnvironment } from '../runtime/local/platform/real-environment.ts'
import type { KeyedStateBackend, ValueState } from '../runtime/state/contract.ts'
import { valueState } from '../runtime/state/descriptors.ts'
import { createHeapBackend } from '../runtime/state/heap/backend.ts'
import type { Figure } from './figure.ts'

interface Total {
  count: number
  sum: number
}

const total = valueState('total', z.object({ count: z.number(), sum: z.number() }))
const MAX_PARALLELISM = 128
const environment = realEnvironment({ log: () => undefined })
const SLICE_MS = 5
/** Of each figure the best of so many rounds counts: the machine has other work. */
const ROUNDS = 3

/** Read-modify-write per second over 10k and 1M number keys, then a snapshot of 1M keys. */
export async function run(emit: (figure: Figure) => void): Promise<void> {
  for (const keyCount of [10_000, 1_000_000]) {
    const keys = shuffledKeys(keyCount, 4_000_000)
    const cases = [
      { name: 'update', peer: 'Map.set of a new object', ours: updateState, theirs: updateMap },
      { name: 'mutate', peer: 'object in a Map changed in place', ours: mutateState, theirs: mutateMap },
    ]
    for (const { name, peer, ours, theirs } of cases) {
      const backend = newBackend()
      const state = backend.state(total)
      const map = new Map<number, Total>()
      let value = 0
      let peerValue = 0
      for (let round = 0; round <= ROUNDS; round++) {
        const own = perSecond(keys.length, () => ours(backend, state, keys))
        const bare = perSecond(keys.length, () => theirs(map, keys))
        // The first round inserts.
        if (round === 0) continue
        value = Math.max(value, own)
        peerValue = Math.max(peerValue, bare)
      }
      emit({
        bench: 'state',
        case: `${name} over ${keyCount} keys`,
        metric: 'read-modify-write',
        value,
        unit: '1/s',
        peer,
        peerValue,
        ratio: value / peerValue,
      })
    }
  }
  await snapshotOfMillion(emit)
}

async function snapshotOfMillion(emit: (figure: Figure) => void): Promise<void> {
  const backend = newBackend()
  updateState(
    backend,
    backend.state(total),
    Float64Array.from({ length: 1_000_000 }, (_, key) => key),
  )
  for (let round = 1; round <= ROUNDS; round++) {
    let sliceStart = performance.now()
    let longestMs = 0
    let bytes = 0
    const endSlice = (): void => {
      longestMs = Math.max(longestMs, performance.now() - sliceStart)
    }
    const start = sliceStart
    const { done } = backend.snapshot(
      checkpointId(round),
      {
        write: (_, block): Promise<StateHandle> => {
          bytes += block.length
          return Promise.resolve({ kind: 'object', object: 'bench', offset: 0, length: block.length, crc: 0 })
        },
      },
      {
        begin: () => {
          sliceStart = performance.now()
        },
        shouldYield: () => performance.now() - sliceStart > SLICE_MS,
        nextTurn: () => {
          endSlice()
          return new Promise((resolve) => setImmediate(resolve))
        },
      },
    )
    const syncMs = performance.now() - start
    await done
    endSlice()
    if (round < ROUNDS) continue
    const figure = { bench: 'state', case: 'snapshot of 1000000 keys' }
    emit({ ...figure, metric: 'duration', value: performance.now() - start, unit: 'ms' })
    emit({ ...figure, metric: 'sync part', value: syncMs, unit: 'ms' })
    emit({ ...figure, metric: `longest slice (budget ${SLICE_MS} ms)`, value: longestMs, unit: 'ms' })
    emit({ ...figure, metric: 'bytes', value: bytes, unit: 'B' })
  }
}

function newBackend(): KeyedStateBackend {
  return createHeapBackend({
    uid: 'bench',
    first: keyGroup(0),
    last: keyGroup(MAX_PARALLELISM - 1),
    maxParallelism: MAX_PARALLELISM,
    clock: environment.clock,
  })
}

function updateState(backend: KeyedStateBackend, state: ValueState<Total>, keys: Float64Array): void {
  for (let index = 0; index < keys.length; index++) {
    backend.setKey(keys[index]!)
    const old = state.get()
    state.update(old === undefined ? { count: 1, sum: index } : { count: old.count + 1, sum: old.sum + index })
  }
}

function updateMap(map: Map<number, Total>, keys: Float64Array): void {
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!
    const old = map.get(key)
    map.set(key, old === undefined ? { count: 1, sum: index } : { count: old.count + 1, sum: old.sum + index })
  }
}

function mutateState(backend: KeyedStateBackend, state: ValueState<Total>, keys: Float64Array): void {
  let added = 0
  const change = (value: Total): void => {
    value.count++
    value.sum += added
  }
  for (let index = 0; index < keys.length; index++) {
    backend.setKey(keys[index]!)
    added = index
    if (state.get() === undefined) state.update({ count: 1, sum: index })
    else state.mutate(change)
  }
}

function mutateMap(map: Map<number, Total>, keys: Float64Array): void {
  for (let index = 0; index < keys.length; index++) {
    const key = keys[index]!
    const value = map.get(key)
    if (value === undefined) map.set(key, { count: 1, sum: index })
    else {
      value.count++
      value.sum += index
    }
  }
}

function perSecond(count: number, work: () => void): number {
  const start = performance.now()
  work()
  return (count / (performance.now() - start)) * 1000
}

/** Keys in an order that no cache foresees; the same in each run. */
function shuffledKeys(keyCount: number, length: number): Float64Array {
  const keys = new Float64Array(length)
  let random = 1
  for (let index = 0; index < length; index++) {
    random = (Math.imul(random, 1664525) + 1013904223) >>> 0
    keys[index] = index < keyCount ? index : random % keyCount
  }
  return keys
}
