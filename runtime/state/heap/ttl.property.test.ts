// Against a model that keeps the time of each write and never cleans up: whatever is done and however time passes, states with a time
// to live read as the model does, before a restore and after it.

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MemorySnapshots, range, snapshotOf, WallClock } from '../conformance-harness.ts'
import type { KeyedStateBackend, StateTtl } from '../contract.ts'
import { listState, mapState, valueState } from '../descriptors.ts'
import { createHeapBackend } from './backend.ts'

const ttlMs = 20
const KEYS = 12

interface Step {
  readonly on: 'value' | 'list' | 'map'
  readonly verb: 'write' | 'mutate' | 'read' | 'clear'
  readonly key: number
  readonly entry: number
  readonly afterMs: number
}

const step: fc.Arbitrary<Step> = fc.record({
  on: fc.constantFrom('value', 'list', 'map'),
  verb: fc.constantFrom('write', 'write', 'mutate', 'read', 'read', 'clear'),
  key: fc.integer({ min: 0, max: KEYS - 1 }),
  entry: fc.integer({ min: 0, max: 2 }),
  afterMs: fc.integer({ min: 0, max: 9 }),
})

interface Timed {
  value: number
  atMs: number
}

/** Items per key, of each state a list of them: of the value one at most, of the map one per entry. */
class Model {
  readonly states = {
    value: new Map<number, Map<number, Timed>>(),
    list: new Map<number, Timed[]>(),
    map: new Map<number, Map<number, Timed>>(),
  }
  readonly #refreshesOnRead: boolean

  constructor(refresh: StateTtl['refresh']) {
    this.#refreshesOnRead = refresh === 'on read and write'
  }

  apply({ on, verb, key, entry }: Step, value: number, nowMs: number): void {
    if (verb === 'clear') this.states[on].delete(key)
    else if (verb === 'read') this.read(on, key, nowMs)
    else if (on === 'list') {
      if (verb === 'write') this.states.list.set(key, [...(this.states.list.get(key) ?? []), { value, atMs: nowMs }])
    } else {
      const cells = this.states[on].get(key) ?? new Map<number, Timed>()
      const name = on === 'map' ? entry : 0
      const held = cells.get(name)
      const lives = held !== undefined && nowMs - held.atMs < ttlMs
      if (verb === 'write') cells.set(name, { value, atMs: nowMs })
      else if (lives) cells.set(name, { value: held.value + 100, atMs: nowMs })
      this.states[on].set(key, cells)
    }
  }

  read(on: Step['on'], key: number, nowMs: number): number[] {
    const items = [...(this.states[on].get(key)?.values() ?? [])].filter(({ atMs }) => nowMs - atMs < ttlMs)
    if (this.#refreshesOnRead) for (const item of items) item.atMs = nowMs
    return items.map(({ value }) => value).sort((left, right) => left - right)
  }

  copy(): Model {
    const twin = new Model(this.#refreshesOnRead ? 'on read and write' : 'on write')
    const cells = (map: ReadonlyMap<number, Map<number, Timed>>) =>
      [...map].map(([key, held]) => [key, new Map([...held].map(([name, timed]) => [name, { ...timed }]))] as const)
    for (const [key, held] of cells(this.states.value)) twin.states.value.set(key, held)
    for (const [key, held] of cells(this.states.map)) twin.states.map.set(key, held)
    for (const [key, items] of this.states.list)
      twin.states.list.set(
        key,
        items.map((item) => ({ ...item })),
      )
    return twin
  }
}

function handles(backend: KeyedStateBackend, refresh: StateTtl['refresh']) {
  const ttl = { ms: ttlMs, refresh }
  return {
    value: backend.state(valueState('value', z.object({ n: z.number() }), { ttl })),
    list: backend.state(listState('list', z.number(), { ttl })),
    map: backend.state(mapState('map', { key: 'number', value: z.object({ n: z.number() }), ttl })),
  }
}

type Handles = ReturnType<typeof handles>

function apply(backend: KeyedStateBackend, state: Handles, { on, verb, key, entry }: Step, value: number): void {
  backend.setKey(key)
  const change = (held: { n: number }): void => {
    held.n += 100
  }
  if (verb === 'clear') state[on].clear()
  else if (verb === 'read') read(state, on)
  else if (on === 'list') {
    if (verb === 'write') state.list.add(value)
  } else if (on === 'value') {
    if (verb === 'write') state.value.update({ n: value })
    else state.value.mutate(change)
  } else if (verb === 'write') state.map.put(entry, { n: value })
  else state.map.mutate(entry, change)
}

function read(state: Handles, on: Step['on']): number[] {
  const one = on === 'value' ? state.value.get() : undefined
  if (on === 'value') return one === undefined ? [] : [one.n]
  const items = on === 'list' ? [...state.list.get()] : state.map.entries().map(([, { n }]) => n)
  return items.sort((left, right) => left - right)
}

describe.each(['on write', 'on read and write'] as const)('states with a time to live, refreshed %s', (refresh) => {
  it('read as a model that never cleans up, and restore to it as it was at the cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 20, maxLength: 200 }),
        fc.array(step, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 0, max: 15 }),
        async (before, during, restoredAfterMs) => {
          const store = new MemorySnapshots()
          const clock = new WallClock(1000)
          const backend = createHeapBackend({ ...range(), clock })
          const state = handles(backend, refresh)
          const model = new Model(refresh)
          let value = 0
          const take = (steps: readonly Step[]): void => {
            for (const taken of steps) {
              clock.ms += taken.afterMs
              value++
              apply(backend, state, taken, value)
              model.apply(taken, value, clock.ms)
              backend.setKey(taken.key)
              if (taken.verb === 'read')
                expect(read(state, taken.on)).toEqual(model.read(taken.on, taken.key, clock.ms))
            }
          }
          take(before)
          const atCut = model.copy()
          let next = 0
          const snapshot = await snapshotOf(backend, store, () => take(during.slice(next, (next += 3))))
          const assertReads = (read1: KeyedStateBackend, reads: Handles, expected: Model, nowMs: number): void => {
            for (let key = 0; key < KEYS; key++) {
              read1.setKey(key)
              for (const on of ['value', 'list', 'map'] as const) {
                expect(read(reads, on)).toEqual(expected.read(on, key, nowMs))
              }
            }
          }
          assertReads(backend, state, model, clock.ms)
          const later = new WallClock(clock.ms + restoredAfterMs)
          const copy = createHeapBackend({ ...range(), clock: later })
          await copy.restore([snapshot], store)
          assertReads(copy, handles(copy, refresh), atCut, later.ms)
        },
      ),
      { numRuns: 60 },
    )
  })
})
