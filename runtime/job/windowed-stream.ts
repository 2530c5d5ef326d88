// Windows of a keyed stream. The results of event-time windows have the timestamp of the window's last millisecond.

import { z } from 'zod'
import type { OutputTag } from '../operators/output-tag.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { StreamSchema } from '../operators/stream-schema.ts'
import type { AnyTrigger, Trigger } from '../operators/trigger.ts'
import { checkAllowedLateness } from '../operators/window-assigner.ts'
import type { WindowAssigner } from '../operators/window-assigner.ts'
import { aggregateContents, listContents, reduceContents } from '../operators/window-contents.ts'
import type { WindowContents, WindowResultFunction } from '../operators/window-contents.ts'
import { windowWork } from '../operators/window-work.ts'
import type { Key, TypeInfo } from '../record/contract.ts'
import { typeInfoOf } from '../record/type-info.ts'
import type { AggregateFunction, DeepReadonly } from '../state/contract.ts'
import { commonType } from './common-type.ts'
import { aggregateFunctions, functionsOf } from './stream-builder.ts'
import type { StreamBuilder, UserFunctions } from './stream-builder.ts'
import type { StreamInput } from './stream-node.ts'
import type { OperatorStream, OutputOptions } from './stream.ts'
import type { AggregateOptions } from './keyed-stream.ts'

interface WindowedParts {
  readonly builder: StreamBuilder
  readonly inputs: readonly StreamInput[]
  readonly functions: UserFunctions
  readonly assigner: WindowAssigner
  readonly trigger?: AnyTrigger
  readonly allowedLatenessMs?: number
  readonly lateTag?: string
}

/** Makes one record of the window's result. */
export interface WindowResultOptions<K, Result, Out> {
  readonly schema?: StreamSchema<Out>
  readonly process: WindowResultFunction<K, Result, Out | DeepReadonly<Out>>
}

type AnyResultFunction = WindowResultFunction<Key, unknown, unknown>

export class WindowedStream<K, T> {
  readonly #parts: WindowedParts

  constructor(parts: WindowedParts) {
    this.#parts = parts
  }

  /** When windows fire and are emptied, instead of once at their end. A global window needs one. */
  trigger<State>(trigger: Trigger<T, State>): WindowedStream<K, T> {
    return new WindowedStream({ ...this.#parts, trigger })
  }

  /** Of event-time windows. A window that has fired takes records for so much longer, and fires again for each. Default 0. */
  allowedLateness(allowedLatenessMs: number): WindowedStream<K, T> {
    return new WindowedStream({ ...this.#parts, allowedLatenessMs: checkAllowedLateness(allowedLatenessMs) })
  }

  /** Of event-time windows: where records go that are too late for all their windows; without it they are counted and dropped. Read them by `sideOutput`. */
  lateTo(tag: OutputTag<T>): WindowedStream<K, T> {
    return new WindowedStream({ ...this.#parts, lateTag: tag.name })
  }

  /**
   * Keeps one accumulator per window and emits the function's result, which must not be the accumulator itself. With `process`,
   * what it makes of key, window and result instead. Session windows need its `merge`.
   */
  aggregate<Accumulator, Result, Out>(
    aggregate: AggregateFunction<DeepReadonly<T>, Accumulator, Result>,
    options: { readonly accumulator?: StreamSchema<NoInfer<Accumulator>> } & WindowResultOptions<
      K,
      NoInfer<Result>,
      Out
    >,
  ): OperatorStream<Out>
  aggregate<Accumulator, Result>(
    aggregate: AggregateFunction<DeepReadonly<T>, Accumulator, Result>,
    options?: AggregateOptions<NoInfer<Accumulator>, NoInfer<Result>>,
  ): OperatorStream<Result>
  aggregate<Out>(
    aggregate: AggregateFunction<DeepReadonly<T>, unknown, unknown>,
    options: AggregateOptions<unknown, Out> & { readonly process?: unknown } = {},
  ): OperatorStream<Out> {
    const process = options.process as AnyResultFunction | undefined
    const accumulator = typeOfSchema('accumulator', options.accumulator)
    const contents = aggregateContents(aggregate, accumulator, process)
    return this.#operator<Out>(contents, typeOfSchema('window output', options.schema) as TypeInfo<unknown>, {
      ...functionsOf(aggregate, aggregateFunctions),
      process,
    })
  }

  /** Keeps one record per window, combined from all. The function changes neither argument. */
  reduce<Out>(
    reduce: (left: DeepReadonly<T>, right: DeepReadonly<T>) => T | DeepReadonly<T>,
    options: WindowResultOptions<K, DeepReadonly<T>, Out>,
  ): OperatorStream<Out>
  reduce(reduce: (left: DeepReadonly<T>, right: DeepReadonly<T>) => T | DeepReadonly<T>): OperatorStream<T>
  reduce<Out>(
    reduce: (left: DeepReadonly<T>, right: DeepReadonly<T>) => unknown,
    options?: { readonly schema?: StreamSchema<Out>; readonly process: unknown },
  ): OperatorStream<Out> {
    const process = options?.process as AnyResultFunction | undefined
    const type = commonType(this.#parts.inputs)
    const contents = reduceContents(reduce as (left: unknown, right: unknown) => unknown, type, process)
    const output = options === undefined ? type : (typeOfSchema('window output', options.schema) as TypeInfo<unknown>)
    return this.#operator<Out>(contents, output, { reduce, process })
  }

  /** Keeps every record until the window fires; any number of results. Dear: prefer aggregate where it does. */
  process<Out>(
    process: WindowResultFunction<K, readonly DeepReadonly<T>[], Iterable<NoInfer<Out | DeepReadonly<Out>>>>,
    options: { readonly schema: StreamSchema<Out> },
  ): OperatorStream<Out>
  process<Out>(process: WindowResultFunction<K, readonly DeepReadonly<T>[], Iterable<Out>>): OperatorStream<Out>
  process<Out>(process: unknown, options: OutputOptions<Out> = {}): OperatorStream<Out> {
    const untyped = process as WindowResultFunction<Key, readonly unknown[], Iterable<unknown>>
    const contents = listContents(listType(commonType(this.#parts.inputs)), untyped)
    return this.#operator<Out>(contents, typeOfSchema('window output', options.schema) as TypeInfo<unknown>, {
      process,
    })
  }

  #operator<Out>(contents: WindowContents, output: TypeInfo<unknown>, functions: UserFunctions): OperatorStream<Out> {
    const { builder, inputs, assigner, trigger, allowedLatenessMs, lateTag } = this.#parts
    const { create, states, timerMeaning } = windowWork({ assigner, trigger, contents, allowedLatenessMs, lateTag })
    const ofTrigger = trigger === undefined ? {} : functionsOf(trigger, triggerFunctions)
    return builder.operator<Out>(
      { kind: 'window', inputs, work: { kind: 'operator', create }, output, stateful: true, states, timerMeaning },
      { ...this.#parts.functions, ...functions, ...ofTrigger },
    )
  }
}

/** Of a Trigger. */
export const triggerFunctions = ['onRecord', 'onEnd', 'onEventTime', 'onProcessingTime', 'onMerge', 'clear']

export function listType(item: TypeInfo<unknown>): TypeInfo<unknown> {
  const name = `list of ${item.name}`
  return item.schema === undefined
    ? typeInfoOf<unknown>(name)
    : (typeInfoOf(name, z.array(item.schema)) as TypeInfo<unknown>)
}
