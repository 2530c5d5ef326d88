// What a window keeps of its records and what it makes of them when it fires.

import type { Key, TypeInfo } from '../record/contract.ts'
import type { AggregateFunction, DeepReadonly } from '../state/contract.ts'
import type { OutputTag } from './output-tag.ts'
import type { TimeWindow } from './window-assigner.ts'

/** What the process function of a window sees besides its arguments. Valid during the call only. */
export interface WindowContext {
  readonly currentWatermark: number
  /** Wall clock, ms since the epoch. */
  readonly processingTimeMs: number
  /** With the timestamp of the window's results. */
  readonly emitTo: <T>(tag: OutputTag<T>, value: T | DeepReadonly<T>) => void
}

export interface WindowContents {
  /** Of the accumulator, as it is kept in state. */
  readonly type: TypeInfo<unknown>
  /** The accumulator of a window's first record. */
  first(value: unknown): unknown
  /** May change the accumulator in place. */
  add(accumulator: unknown, value: unknown): unknown
  /** Of two windows that become one, the earlier first; may change either in place. undefined: these contents cannot be merged. */
  readonly merge: ((earlier: unknown, later: unknown) => unknown) | undefined
  /** What the window emits now; it may fire again when late records come. */
  results(key: Key, window: TimeWindow, accumulator: unknown, context: WindowContext): Iterable<unknown>
}

/** One result per firing. */
export type WindowResultFunction<K, Result, Out> = (
  key: K,
  window: TimeWindow,
  result: Result,
  context: WindowContext,
) => Out

type AnyResultFunction = WindowResultFunction<Key, unknown, unknown>

export function aggregateContents(
  aggregate: AggregateFunction<unknown, unknown, unknown>,
  type: TypeInfo<unknown>,
  process: AnyResultFunction | undefined,
): WindowContents {
  return {
    type,
    first: (value) => aggregate.add(aggregate.create(), value),
    add: (accumulator, value) => aggregate.add(accumulator, value),
    merge: aggregate.merge && ((earlier, later) => aggregate.merge!(earlier, later)),
    results(key, window, accumulator, context) {
      const result = aggregate.result(accumulator)
      return [process === undefined ? result : process(key, window, result, context)]
    },
  }
}

export function reduceContents(
  reduce: (left: unknown, right: unknown) => unknown,
  type: TypeInfo<unknown>,
  process: AnyResultFunction | undefined,
): WindowContents {
  return {
    type,
    first: (value) => value,
    add: reduce,
    merge: reduce,
    results: (key, window, accumulator, context) => [
      process === undefined ? accumulator : process(key, window, accumulator, context),
    ],
  }
}

/** Keeps every record; `type` is that of their list. */
export function listContents(
  type: TypeInfo<unknown>,
  process: WindowResultFunction<Key, readonly unknown[], Iterable<unknown>>,
): WindowContents {
  return {
    type,
    first: (value) => [value],
    add(accumulator, value) {
      ;(accumulator as unknown[]).push(value)
      return accumulator
    },
    merge(earlier, later) {
      const values = earlier as unknown[]
      for (const value of later as unknown[]) values.push(value)
      return values
    },
    // A copy: the function may emit the list as it is, and a late record would change it afterwards.
    results: (key, window, accumulator, context) =>
      process(key, window, [...(accumulator as readonly unknown[])], context),
  }
}
