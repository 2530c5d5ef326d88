// The keyed state that lies in tests/golden/v1: each kind, with and without a time to live, timers of both domains, a watermark by block.
// What was stored never changes, and so neither do the declarations here.

import { z } from 'zod'
import type { Key } from '../../runtime/record/contract.ts'
import { typeInfoOf } from '../../runtime/record/type-info.ts'
import type {
  DueTimer,
  KeyedStateBackend,
  MapState,
  StateDescriptor,
  TypedDescriptor,
} from '../../runtime/state/contract.ts'
import { aggregatingState, listState, mapState, reducingState, valueState } from '../../runtime/state/descriptors.ts'

/** Wall time at which the key of index 0 was written; the others follow by a millisecond each. */
export const writtenAtMs = 1_700_000_000_000
export const ttlMs = 86_400_000

export const keys: readonly Key[] = [
  ...Array.from({ length: 40 }, (_, index) => `customer ${index}`),
  '',
  'ä ∑ 😀',
  0,
  -0.5,
  2 ** 40,
  12345678901234567890n,
  true,
  false,
  ['tuple', 1],
  ['tuple', [false, 7n]],
]

const reading = z.object({ count: z.int(), mean: z.number(), text: z.string(), at: z.date(), tag: z.enum(['a', 'b']) })
const sum = (left: number, right: number): number => left + right
const collected = {
  create: (): number[] => [],
  add: (all: number[], value: number) => [...all, value],
  result: (all: readonly number[]) => all.join('+'),
}
const ttl = { ms: ttlMs }

const states = {
  value: valueState('value', reading),
  anything: valueState<unknown>('anything'),
  list: listState('list', z.string()),
  byName: mapState('byName', { key: 'string', value: z.object({ on: z.boolean(), note: z.string().optional() }) }),
  byNumber: mapState('byNumber', { key: 'number', value: z.bigint() }),
  reducing: reducingState('reducing', z.number(), sum),
  aggregating: aggregatingState('aggregating', z.array(z.number()), collected),
  timedValue: valueState('timedValue', z.string(), { ttl }),
  timedList: listState('timedList', z.int(), { ttl }),
  timedMap: mapState('timedMap', { key: 'string', value: z.int(), ttl }),
  timedReducing: reducingState('timedReducing', z.number(), sum, { ttl }),
  timedAggregating: aggregatingState('timedAggregating', z.array(z.number()), collected, { ttl }),
}

export const everythingStates: readonly StateDescriptor[] = Object.values(states)

function handlesIn(backend: KeyedStateBackend) {
  return {
    value: backend.state(states.value),
    anything: backend.state(states.anything),
    list: backend.state(states.list),
    byName: backend.state(states.byName),
    byNumber: backend.state(states.byNumber),
    reducing: backend.state(states.reducing),
    aggregating: backend.state(states.aggregating),
    timedValue: backend.state(states.timedValue),
    timedList: backend.state(states.timedList),
    timedMap: backend.state(states.timedMap),
    timedReducing: backend.state(states.timedReducing),
    timedAggregating: backend.state(states.timedAggregating),
  }
}

/** Writes the current key's state. */
export function writeEverything(backend: KeyedStateBackend, index: number): void {
  const state = handlesIn(backend)
  const [value, anything, list, names, numbers, reduced, aggregated, timed, timedList, timedMap] = everythingOf(
    index,
    true,
  )
  state.value.update(value)
  state.anything.update(anything)
  state.list.addAll(list)
  for (const [name, held] of names) state.byName.put(name, held)
  for (const [number, held] of numbers) state.byNumber.put(number, held)
  state.reducing.add(reduced)
  for (const part of aggregated.split('+')) state.aggregating.add(Number(part))
  state.timedValue.update(timed!)
  state.timedList.addAll(timedList)
  for (const [name, held] of timedMap) state.timedMap.put(name, held)
  state.timedReducing.add(index)
  state.timedAggregating.add(index)
  backend.timers.register('event', 1000 + index, `tag ${index}`)
  backend.timers.register('event', 2000 + index)
  backend.timers.register('processing', writtenAtMs + index)
}

/** The current key's state, as `everythingOf` has it. */
export function readEverything(backend: KeyedStateBackend): unknown {
  const state = handlesIn(backend)
  return [
    state.value.get(),
    state.anything.get(),
    state.list.get(),
    state.byName.entries(),
    state.byNumber.entries(),
    state.reducing.get(),
    state.aggregating.get(),
    state.timedValue.get(),
    state.timedList.get(),
    state.timedMap.entries(),
    state.timedReducing.get(),
    state.timedAggregating.get(),
  ]
}

/** `lives`: what has a time to live has not expired. */
export function everythingOf(index: number, lives: boolean) {
  const text = `A text of more than a few bytes, for the key of index ${index} ∑`
  return [
    { count: index, mean: index / 3, text, at: new Date(writtenAtMs + index), tag: index % 2 === 0 ? 'a' : 'b' },
    { index, list: [null, 'x', { deep: 5n }] },
    ['one', `two ${index}`, ''],
    [
      ['yes', { on: true, note: `note ${index}` }],
      ['no', { on: false }],
    ],
    [
      [index, BigInt(index) ** 20n],
      [-1.5, -1n],
    ],
    index + 0.25,
    `${index}+1`,
    lives ? `timed ${index}` : undefined,
    lives ? [index, -1 - index] : [],
    lives ? ([['first', index]] as [string, number][]) : [],
    lives ? index : undefined,
    lives ? `${index}` : undefined,
  ] as const satisfies readonly unknown[]
}

export function timersOf(key: Key, index: number): DueTimer[] {
  return [
    { key, domain: 'event', timestampMs: 1000 + index, tag: `tag ${index}` },
    { key, domain: 'event', timestampMs: 2000 + index, tag: '' },
    { key, domain: 'processing', timestampMs: writtenAtMs + index, tag: '' },
  ]
}

/** Entries of all kinds and timers that one key has; a list is one, of a map each entry is. */
export const entriesOfKey = { lasting: 12, timed: 5 }

/** Accumulators as windows of 60 s keep them. */
export const windowState: StateDescriptor & TypedDescriptor<MapState<number, { count: number; sum: number }>> = {
  kind: 'map',
  name: 'windows',
  mapKey: 'number',
  mapKeyMeaning: 'starts of windows of 60000 ms',
  accumulators: true,
  value: typeInfoOf<unknown>('windows', z.object({ count: z.int(), sum: z.number() })),
}

export function writeWindows(backend: KeyedStateBackend, index: number): void {
  const windows = backend.state(windowState)
  for (const [start, accumulator] of windowsOf(index)) {
    windows.put(start, accumulator)
    backend.timers.register('event', start + 59_999, 'fire')
  }
}

export function windowsOf(index: number): [number, { count: number; sum: number }][] {
  return [
    [0, { count: index, sum: index / 2 }],
    [60_000 * (1 + index), { count: 1, sum: -index }],
  ]
}
