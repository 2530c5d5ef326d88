// A stream dealt out by key: what needs state begins here.

import type { BroadcastDeclaration } from '../operators/broadcast-state.ts'
import { KeyedProcessOperator, PROCESS_TIMERS } from '../operators/keyed-process.ts'
import type { AnyKeyedProcessFunction, KeyedProcessFunction, StateDeclaration } from '../operators/keyed-process.ts'
import { RollingAggregateOperator, rollingAggregateState } from '../operators/rolling-aggregate.ts'
import { RollingReduceOperator, rollingReduceState } from '../operators/rolling-reduce.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { StreamSchema } from '../operators/stream-schema.ts'
import type { WindowAssigner } from '../operators/window-assigner.ts'
import type { TypeInfo } from '../record/contract.ts'
import type { AggregateFunction, DeepReadonly, StateDescriptor } from '../state/contract.ts'
import { BroadcastStream, KeyedBroadcastConnectedStream } from './broadcast-stream.ts'
import { commonType } from './common-type.ts'
import { jobError } from './errors.ts'
import { IntervalJoin } from './interval-joined-stream.ts'
import { KeyedConnectedStreams } from './keyed-connected-stream.ts'
import type { KeyedConnectedParts } from './keyed-connected-stream.ts'
import { callerLocation } from './location.ts'
import { aggregateFunctions, functionsOf } from './stream-builder.ts'
import type { StreamBuilder, UserFunctions } from './stream-builder.ts'
import type { StreamInput } from './stream-node.ts'
import type { OperatorStream, OutputOptions } from './stream.ts'
import { WindowedStream } from './windowed-stream.ts'

export interface AggregateOptions<Accumulator, Result> {
  /** Of the accumulator in state; without it, it describes itself. */
  readonly accumulator?: StreamSchema<Accumulator>
  /** Of the results. */
  readonly schema?: StreamSchema<Result>
}

declare const key: unique symbol

export class KeyedStream<K, T> {
  readonly #builder: StreamBuilder
  readonly #inputs: readonly StreamInput[]
  readonly #functions: UserFunctions
  /** Holds K in the type; never set. */
  declare readonly [key]: K

  constructor(builder: StreamBuilder, inputs: readonly StreamInput[], functions: UserFunctions) {
    this.#builder = builder
    this.#inputs = inputs
    this.#functions = functions
  }

  /** State and timers per key. The schema types `emit`. */
  process<Out = unknown, States extends StateDeclaration = StateDeclaration>(
    process: KeyedProcessFunction<K, T, States, Out>,
    options: OutputOptions<Out> = {},
  ): OperatorStream<Out> {
    const shared = process as unknown as AnyKeyedProcessFunction
    return this.#operator<Out>({
      kind: 'process',
      create: () => new KeyedProcessOperator(shared),
      output: typeOfSchema('process output', options.schema) as TypeInfo<unknown>,
      states: Object.values(process.state ?? {}),
      timerMeaning: PROCESS_TIMERS,
      functions: functionsOf(process, ['process', 'onTimer']),
    })
  }

  /** Combines each record with its key's result so far, and emits the new result. The function changes neither argument. */
  reduce(reduce: (left: DeepReadonly<T>, right: DeepReadonly<T>) => T | DeepReadonly<T>): OperatorStream<T> {
    const output = commonType(this.#inputs)
    const state = rollingReduceState(output)
    const untyped = reduce as (left: unknown, right: unknown) => unknown
    return this.#operator<T>({
      kind: 'reduce',
      create: () => new RollingReduceOperator(untyped, state),
      output,
      states: [state],
      functions: { reduce },
    })
  }

  /** Adds each record to its key's accumulator and emits the result so far, which must not be the accumulator itself. */
  aggregate<Accumulator, Result>(
    aggregate: AggregateFunction<DeepReadonly<T>, Accumulator, Result>,
    options: AggregateOptions<NoInfer<Accumulator>, NoInfer<Result>> = {},
  ): OperatorStream<Result> {
    const accumulator = typeOfSchema('accumulator', options.accumulator) as TypeInfo<unknown>
    const state = rollingAggregateState(aggregate, accumulator)
    return this.#operator<Result>({
      kind: 'aggregate',
      create: () => new RollingAggregateOperator(state),
      output: typeOfSchema('aggregate output', options.schema) as TypeInfo<unknown>,
      states: [state],
      functions: functionsOf(aggregate, aggregateFunctions),
    })
  }

  /** Windows of each key: of event time, of the wall clock, sessions, or one for all time. */
  window(assigner: WindowAssigner): WindowedStream<K, T> {
    return new WindowedStream({ builder: this.#builder, inputs: this.#inputs, functions: this.#functions, assigner })
  }

  /** One operator for both streams, with a function for each; with a keyed one, both have the state and timers of the key. Its event time is the smaller of both. */
  connect<Rule, Broadcast extends BroadcastDeclaration>(
    broadcast: BroadcastStream<Rule, Broadcast>,
  ): KeyedBroadcastConnectedStream<K, T, Rule, Broadcast>
  connect<Other>(other: KeyedStream<K, Other>): KeyedConnectedStreams<K, T, Other>
  connect(other: unknown): unknown {
    if (other instanceof BroadcastStream) {
      const parts = { builder: this.#builder, first: this.#inputs, functions: this.#functions }
      return new KeyedBroadcastConnectedStream({ ...parts, second: other.inputs, declared: other.declared })
    }
    return new KeyedConnectedStreams(this.#with(other, 'connect'))
  }

  /** Pairs of records of one key that are near each other in event time. */
  intervalJoin<Other>(other: KeyedStream<K, Other>): IntervalJoin<K, T, Other> {
    return new IntervalJoin(this.#with(other, 'intervalJoin'))
  }

  #with(other: unknown, call: string): KeyedConnectedParts {
    if (!(other instanceof KeyedStream))
      throw jobError('MR-J13', `${call} at ${callerLocation()} was given no keyed stream.`)
    const functions = { ...this.#functions, 'keyBy of the other stream': other.#functions.keyBy }
    return { builder: this.#builder, first: this.#inputs, second: other.#inputs, functions }
  }

  #operator<Out>(step: {
    readonly kind: string
    readonly create: () => KeyedProcessOperator | RollingReduceOperator | RollingAggregateOperator
    readonly output: TypeInfo<unknown>
    readonly states: readonly StateDescriptor[]
    readonly timerMeaning?: string
    readonly functions: UserFunctions
  }): OperatorStream<Out> {
    const { create, functions, ...rest } = step
    return this.#builder.operator<Out>(
      { ...rest, inputs: this.#inputs, work: { kind: 'operator', create }, stateful: true },
      { ...this.#functions, ...functions },
    )
  }
}
