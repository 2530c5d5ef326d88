// What a job writes to declare a state: `const count = valueState('count', z.object({ n: z.number() }))`.

import type { ZodType } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import type {
  AggregateFunction,
  AggregatingState,
  ListState,
  MapState,
  ReducingState,
  TypedDescriptor,
  ValueState,
} from './contract.ts'
import { stateError } from './errors.ts'

/** One value per key. Without a schema the value is stored self-describing: any JSON-like value, slower. */
export function valueState<T>(name: string, schema?: ZodType<T>): TypedDescriptor<ValueState<T>> {
  return { kind: 'value', name: checkedName(name), value: typeInfoOf<unknown>(name, schema) }
}

/** A list per key, written as a whole at a snapshot. `schema` is the items'. */
export function listState<T>(name: string, schema?: ZodType<T>): TypedDescriptor<ListState<T>> {
  return { kind: 'list', name: checkedName(name), value: typeInfoOf<unknown>(name, schema) }
}

interface MapKeys {
  readonly string: string
  readonly number: number
}

/** A map per key, written entry by entry. `options.value` is the schema of the map's values. */
export function mapState<KeyKind extends keyof MapKeys, V>(
  name: string,
  options: { readonly key: KeyKind; readonly value?: ZodType<V> },
): TypedDescriptor<MapState<MapKeys[KeyKind], V>> {
  return { kind: 'map', name: checkedName(name), mapKey: options.key, value: typeInfoOf<unknown>(name, options.value) }
}

/** One value per key that each `add` combines with; `reduce` returns the new value and changes neither argument. */
export function reducingState<T>(
  name: string,
  schema: ZodType<T> | undefined,
  reduce: (left: T, right: T) => T,
): TypedDescriptor<ReducingState<T>> {
  return {
    kind: 'reducing',
    name: checkedName(name),
    value: typeInfoOf<unknown>(name, schema),
    reduce: reduce as (left: unknown, right: unknown) => unknown,
  }
}

/** One accumulator per key; `get` gives the function's result over it. The schema is the accumulator's. */
export function aggregatingState<In, Accumulator, Out>(
  name: string,
  accumulator: ZodType<Accumulator> | undefined,
  aggregate: AggregateFunction<In, Accumulator, Out>,
): TypedDescriptor<AggregatingState<In, Out>> {
  return {
    kind: 'aggregating',
    name: checkedName(name),
    accumulator: typeInfoOf<unknown>(name, accumulator),
    aggregate: aggregate as unknown as AggregateFunction<unknown, unknown, unknown>,
  }
}

function checkedName(name: string): string {
  if (name.length === 0) throw stateError('MR-T01', 'A state has an empty name.')
  return name
}
