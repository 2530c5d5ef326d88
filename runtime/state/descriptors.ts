// What a job writes to declare a state: `const count = valueState('count', z.object({ n: z.number() }))`.

import type { ZodType } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import type {
  AggregateFunction,
  AggregatingState,
  ListState,
  MapState,
  ReducingState,
  StateTtl,
  TypedDescriptor,
  ValueState,
} from './contract.ts'
import { stateError } from './errors.ts'

/** Left out: refreshed on write, never returned once expired. */
export interface TtlOptions {
  /** Whole milliseconds of processing time. */
  readonly ms: number
  readonly refresh?: StateTtl['refresh']
  readonly expired?: StateTtl['expired']
}

export interface StateOptions {
  /** How long an entry lives after its last refresh; left out: for ever. */
  readonly ttl?: TtlOptions
}

/** One value per key. Without a schema the value is stored self-describing: any JSON-like value, slower. */
export function valueState<T>(
  name: string,
  schema?: ZodType<T>,
  options: StateOptions = {},
): TypedDescriptor<ValueState<T>> {
  return { kind: 'value', ...named(name, options), value: typeInfoOf<unknown>(name, schema) }
}

/** A list per key, written as a whole at a snapshot. `schema` is the items'; each item has its own time to live. */
export function listState<T>(
  name: string,
  schema?: ZodType<T>,
  options: StateOptions = {},
): TypedDescriptor<ListState<T>> {
  return { kind: 'list', ...named(name, options), value: typeInfoOf<unknown>(name, schema) }
}

interface MapKeys {
  readonly string: string
  readonly number: number
}

/** A map per key, written entry by entry; each entry has its own time to live. `options.value` is the schema of the map's values. */
export function mapState<KeyKind extends keyof MapKeys, V>(
  name: string,
  options: StateOptions & { readonly key: KeyKind; readonly value?: ZodType<V> },
): TypedDescriptor<MapState<MapKeys[KeyKind], V>> {
  const value = typeInfoOf<unknown>(name, options.value)
  return { kind: 'map', ...named(name, options), mapKey: options.key, value }
}

/** One value per key that each `add` combines with; `reduce` returns the new value and changes neither argument. */
export function reducingState<T>(
  name: string,
  schema: ZodType<T> | undefined,
  reduce: (left: T, right: T) => T,
  options: StateOptions = {},
): TypedDescriptor<ReducingState<T>> {
  return {
    kind: 'reducing',
    ...named(name, options),
    value: typeInfoOf<unknown>(name, schema),
    reduce: reduce as (left: unknown, right: unknown) => unknown,
  }
}

/** One accumulator per key; `get` gives the function's result over it. The schema is the accumulator's. */
export function aggregatingState<In, Accumulator, Out>(
  name: string,
  accumulator: ZodType<Accumulator> | undefined,
  aggregate: AggregateFunction<In, Accumulator, Out>,
  options: StateOptions = {},
): TypedDescriptor<AggregatingState<In, Out>> {
  return {
    kind: 'aggregating',
    ...named(name, options),
    accumulator: typeInfoOf<unknown>(name, accumulator),
    aggregate: aggregate as unknown as AggregateFunction<unknown, unknown, unknown>,
  }
}

function named(name: string, { ttl }: StateOptions): { readonly name: string; readonly ttl?: StateTtl } {
  if (name.length === 0) throw stateError('MR-T01', 'A state has an empty name.')
  if (ttl === undefined) return { name }
  const { ms, refresh = 'on write', expired = 'never returned' } = ttl
  const wrong =
    !Number.isSafeInteger(ms) || ms <= 0
      ? `${ms} ms; it must be a whole number of milliseconds above 0`
      : (wrongChoice('refresh', refresh, refreshes) ?? wrongChoice('expired', expired, expiries))
  if (wrong !== undefined) throw stateError('MR-T01', `State '${name}' has a time to live of ${wrong}.`)
  return { name, ttl: { ms, refresh, expired } }
}

const refreshes: readonly string[] = ['on write', 'on read and write'] satisfies StateTtl['refresh'][]
const expiries: readonly string[] = ['never returned', 'returned if not yet cleaned up'] satisfies StateTtl['expired'][]

/** For jobs in JavaScript, and types that were cast: a misspelt choice would quietly be the other one. */
function wrongChoice(option: string, value: string, choices: readonly string[]): string | undefined {
  if (choices.includes(value)) return undefined
  return `${option} '${value}'; it is one of ${choices.map((choice) => `'${choice}'`).join(', ')}`
}
