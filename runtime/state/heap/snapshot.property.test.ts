// Whatever is done while a snapshot is written, in whatever slices: what is restored is what was there at the cut.

import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkpointId } from '../../base/ids.ts'
import { drainTimers, MemorySnapshots, range, textOf, timerText } from '../conformance-harness.ts'
import type { Key } from '../../record/contract.ts'
import type { KeyedStateBackend, Slices } from '../contract.ts'
import { aggregatingState, listState, mapState, reducingState, valueState } from '../descriptors.ts'
import { createHeapBackend } from './backend.ts'

/** More than the entries between two looks at the slice, so that groups are left half written. */
const KEYS = 300

type Operation =
  | {
      readonly on: 'value' | 'reducing' | 'aggregating' | 'list'
      readonly verb: 'set' | 'change' | 'clear'
      readonly key: number
      readonly value: number
    }
  | {
      readonly on: 'map'
      readonly verb: 'set' | 'change' | 'clear' | 'clearAll'
      readonly key: number
      readonly entry: string
      readonly value: number
    }
  | { readonly on: 'timer'; readonly verb: 'set' | 'clear' | 'fire'; readonly key: number; readonly value: number }
  /** Value state of the MANY keys from this one on: tables grow and shrink. */
  | { readonly on: 'many'; readonly verb: 'set' | 'clear'; readonly key: number; readonly value: number }

const MANY = 200

/** Both kinds of keys have tables of their own. */
const keyOf = (index: number): Key => (index % 3 === 0 ? `key ${index}` : index)

const key = fc.integer({ min: 0, max: KEYS - 1 })
const value = fc.integer({ min: 0, max: 5 })
const single: fc.Arbitrary<Operation> = fc.oneof(
  fc.record({
    on: fc.constantFrom('value', 'reducing', 'aggregating', 'list'),
    verb: fc.constantFrom('set', 'change', 'change', 'clear'),
    key,
    value,
  }),
  fc.record({
    on: fc.constant('map'),
    verb: fc.constantFrom('set', 'set', 'change', 'clear', 'clearAll'),
    key,
    entry: fc.constantFrom('a', 'b', 'c'),
    value,
  }),
  fc.record({ on: fc.constant('timer'), verb: fc.constantFrom('set', 'set', 'clear', 'fire'), key, value }),
)
const operation = fc.oneof(
  { weight: 60, arbitrary: single },
  { weight: 1, arbitrary: fc.record({ on: fc.constant('many'), verb: fc.constantFrom('set', 'clear'), key, value }) },
)

function handles(backend: KeyedStateBackend) {
  return {
    value: backend.state(valueState('value', z.object({ number: z.number(), text: z.string() }))),
    reducing: backend.state(reducingState('reducing', z.number(), (left, right) => left + right)),
    aggregating: backend.state(
      aggregatingState('aggregating', z.array(z.number()), {
        create: (): number[] => [],
        add: (accumulator, added: number) => {
          accumulator.push(added)
          return accumulator
        },
        result: (accumulator) => accumulator.join('+'),
      }),
    ),
    list: backend.state(listState('list', z.number())),
    map: backend.state(mapState('map', { key: 'string', value: z.object({ number: z.number() }) })),
  }
}

function apply(backend: KeyedStateBackend, state: ReturnType<typeof handles>, step: Operation): void {
  if (step.on === 'many') {
    for (let index = 0; index < MANY; index++)
      apply(backend, state, { on: 'value', verb: step.verb, key: (step.key + index) % KEYS, value: step.value })
    return
  }
  backend.setKey(keyOf(step.key))
  if (step.on === 'timer') {
    if (step.verb === 'set') backend.timers.register('event', step.value)
    else if (step.verb === 'clear') backend.timers.delete('event', step.value)
    else backend.takeDue('event', step.value)
  } else if (step.on === 'map') {
    if (step.verb === 'set') state.map.put(step.entry, { number: step.value })
    else if (step.verb === 'clear') state.map.delete(step.entry)
    else if (step.verb === 'clearAll') state.map.clear()
    else
      state.map.mutate(step.entry, (entry) => {
        entry.number += 10
      })
  } else if (step.verb === 'clear') state[step.on].clear()
  else if (step.on === 'value') {
    if (step.verb === 'set') state.value.update({ number: step.value, text: `a longer text, ${step.value}` })
    else
      state.value.mutate((held) => {
        held.number += 10
        held.text += '!'
      })
  } else if (step.on === 'list' && step.verb === 'set') state.list.update([step.value])
  else state[step.on].add(step.value)
}

/** All that a backend holds, as lines in a fixed order. Takes the timers. */
function contentOf(backend: KeyedStateBackend): string[] {
  const state = handles(backend)
  const lines: string[] = []
  for (let index = 0; index < KEYS; index++) {
    backend.setKey(keyOf(index))
    const line = JSON.stringify([
      state.value.get() ?? null,
      state.reducing.get() ?? null,
      state.aggregating.get() ?? null,
      state.list.get(),
      [...state.map.entries()].sort(([left], [right]) => (left < right ? -1 : 1)),
    ])
    lines.push(textOf(index, line))
  }
  lines.push(...drainTimers(backend, 'event').map(timerText).sort())
  return lines
}

/** Slices that the property steers: `turns[i]` operations run before slice i, and a slice lasts `lengths[i]` looks. */
function steered(lengths: readonly number[], between: () => void): Slices {
  let slice = 0
  let looksLeft = 0
  return {
    begin: () => {
      looksLeft = lengths[slice++ % lengths.length]!
    },
    shouldYield: () => looksLeft-- <= 0,
    nextTurn: async () => {
      await Promise.resolve()
      between()
    },
  }
}

describe('a snapshot written in slices', () => {
  it.each([false, true])('restores to the state at its cut (values frozen: %s)', async (freeze) => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(operation, { minLength: 200, maxLength: 600 }),
        fc.array(operation, { minLength: 1, maxLength: 300 }),
        fc.array(fc.nat({ max: 3 }), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 20 }),
        async (before, during, lengths, perTurn) => {
          const store = new MemorySnapshots()
          // Twins: one is read at the cut, the other snapshotted.
          const twin = createHeapBackend({ ...range(), freeze })
          const backend = createHeapBackend({ ...range(), freeze })
          const twinState = handles(twin)
          const state = handles(backend)
          for (const step of before) {
            apply(twin, twinState, step)
            apply(backend, state, step)
          }
          const expected = contentOf(twin)

          let next = 0
          const snapshot = await backend.snapshot(
            checkpointId(1),
            store,
            steered(lengths, () => {
              for (let count = 0; count < perTurn && next < during.length; count++)
                apply(backend, state, during[next++]!)
            }),
          ).done
          const copy = createHeapBackend({ ...range(), freeze })
          await copy.restore([snapshot], store)
          expect(contentOf(copy)).toEqual(expected)
        },
      ),
      { numRuns: 40 },
    )
  })
})
