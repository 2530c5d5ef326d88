// Streams as a job's author sees them. Functions get records deep-readonly: a record is immutable once emitted.

import type { Sink } from '../connectors/contract.ts'
import { FilterOperator } from '../operators/filter.ts'
import { FlatMapOperator } from '../operators/flat-map.ts'
import { MapOperator } from '../operators/map.ts'
import type { OutputTag } from '../operators/output-tag.ts'
import { ProcessOperator } from '../operators/process.ts'
import type { ProcessFunction } from '../operators/process.ts'
import { SinkOperator } from '../operators/sink-operator.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { StreamSchema } from '../operators/stream-schema.ts'
import type { Key, TypeInfo } from '../record/contract.ts'
import type { DeepReadonly } from '../state/contract.ts'
import { commonType } from './common-type.ts'
import { checkedKeySelector } from './key-selector.ts'
import { KeyedStream } from './keyed-stream.ts'
import { callerLocation } from './location.ts'
import type { SinkHandle } from './sink-handle.ts'
import { functionsOf } from './stream-builder.ts'
import type { StreamBuilder, UserFunctions } from './stream-builder.ts'
import type { StreamInput, StreamNode } from './stream-node.ts'

/** Without a schema records describe themselves on edges, which is slower. */
export interface OutputOptions<Out> {
  readonly schema?: StreamSchema<Out>
}

type Step = (value: unknown) => unknown

declare const record: unique symbol

/** Any stream of T. The parts of a union are taken by it, since T is told from this one member alone. */
export interface StreamOf<T> {
  readonly [record]: T
}

export class Stream<T> implements StreamOf<T> {
  protected readonly builder: StreamBuilder
  /** More than one after a union. */
  protected readonly inputs: readonly StreamInput[]
  /** Holds T in the type; never set. */
  declare readonly [record]: T

  constructor(builder: StreamBuilder, inputs: readonly StreamInput[]) {
    this.builder = builder
    this.inputs = inputs
  }

  /** One record for each. With a schema the function's result must fit it. */
  map<Out>(
    map: (value: DeepReadonly<T>) => NoInfer<Out | DeepReadonly<Out>>,
    options: { readonly schema: StreamSchema<Out> },
  ): OperatorStream<Out>
  map<Out>(map: (value: DeepReadonly<T>) => Out): OperatorStream<Out>
  map<Out>(map: (value: DeepReadonly<T>) => unknown, options: OutputOptions<Out> = {}): OperatorStream<Out> {
    return this.#step('map', options.schema, { map }, () => new MapOperator(map as Step))
  }

  /** Keeps the records for which the function gives true. */
  filter(keep: (value: DeepReadonly<T>) => boolean): OperatorStream<T> {
    return this.#same('filter', { filter: keep }, () => new FilterOperator(keep as Step))
  }

  /** Any number of records for each: an array, or what a generator yields. */
  flatMap<Out>(
    flatMap: (value: DeepReadonly<T>) => Iterable<NoInfer<Out | DeepReadonly<Out>>>,
    options: { readonly schema: StreamSchema<Out> },
  ): OperatorStream<Out>
  flatMap<Out>(flatMap: (value: DeepReadonly<T>) => Iterable<Out>): OperatorStream<Out>
  flatMap<Out>(flatMap: (value: DeepReadonly<T>) => unknown, options: OutputOptions<Out> = {}): OperatorStream<Out> {
    return this.#step('flatMap', options.schema, { flatMap }, () => new FlatMapOperator(flatMap as Step))
  }

  /** For side outputs, resources with open and close, and anything else that needs no key. The schema types `emit`. */
  process<Out = unknown>(process: ProcessFunction<T, Out>, options: OutputOptions<Out> = {}): OperatorStream<Out> {
    const shared = process as unknown as ProcessFunction<unknown, unknown>
    return this.#step('process', options.schema, functionsOf(process, ['process']), () => new ProcessOperator(shared))
  }

  /** Both streams' records in one stream, in no order between them; its event time is the smaller of both. */
  union<Other>(...others: readonly StreamOf<Other>[]): Stream<T | Other> {
    const streams = others as readonly Stream<Other>[]
    return new Stream(this.builder, [...this.inputs, ...streams.flatMap((other) => other.inputs)])
  }

  /** Deals the records out to all subtasks of the next operator in turn. */
  rebalance(): Stream<T> {
    return new Stream(
      this.builder,
      this.inputs.map((input) => ({ ...input, partitioning: 'rebalance' as const })),
    )
  }

  /** All records of one key meet in one subtask, with state and timers of that key. */
  keyBy<const K extends Key>(selector: (value: DeepReadonly<T>) => K): KeyedStream<K, T> {
    const keySelector = checkedKeySelector(selector as Step, callerLocation())
    const inputs = this.inputs.map((input) => ({ ...input, partitioning: 'hash' as const, keySelector }))
    return new KeyedStream(this.builder, inputs, { keyBy: selector })
  }

  /** The stream's records must have all that the sink needs. */
  sinkTo<S = T>(
    sink: Sink<S> & (T extends S ? unknown : 'the records of this stream do not fit the sink'),
  ): SinkHandle {
    const untyped = sink as unknown as Sink<unknown>
    return this.builder.sink({
      kind: 'sink',
      inputs: this.inputs,
      work: { kind: 'sink', sink: untyped, create: (settings) => new SinkOperator(untyped, settings) },
      output: undefined,
      stateful: untyped.createCommitter !== undefined,
      states: [],
    })
  }

  #step<Out>(
    kind: string,
    schema: StreamSchema<Out> | undefined,
    functions: UserFunctions,
    create: () => MapOperator | FlatMapOperator | ProcessOperator,
  ): OperatorStream<Out> {
    const output = typeOfSchema<Out>(`${kind} output`, schema) as TypeInfo<unknown>
    return this.builder.operator<Out>(
      { kind, inputs: this.inputs, work: { kind: 'operator', create }, output, stateful: false, states: [] },
      functions,
    )
  }

  #same(kind: string, functions: UserFunctions, create: () => FilterOperator): OperatorStream<T> {
    return this.builder.operator<T>(
      {
        kind,
        inputs: this.inputs,
        work: { kind: 'operator', create },
        output: commonType(this.inputs),
        stateful: false,
        states: [],
      },
      functions,
    )
  }
}

/** The output of one operator, which it names and places. */
export class OperatorStream<T> extends Stream<T> {
  readonly #node: StreamNode

  constructor(builder: StreamBuilder, node: StreamNode, type: TypeInfo<unknown>) {
    super(builder, [{ node, tag: undefined, type, partitioning: undefined, keySelector: undefined }])
    this.#node = node
  }

  /** Under which its state is stored and found again after the job changed. 1 to 100 of A-Z a-z 0-9 . _ - */
  uid(uid: string): this {
    this.#node.options.uid = uid
    return this
  }

  /** For people: logs, metrics, the execution plan. */
  named(name: string): this {
    this.#node.options.name = name
    return this
  }

  /** Subtasks of the operator. Default: the job's. */
  parallelism(parallelism: number): this {
    this.#node.options.parallelism = parallelism
    return this
  }

  /** Operators of one group may share slots; the default is the inputs' group, else 'default'. */
  slotSharingGroup(group: string): this {
    this.#node.options.slotSharingGroup = group
    return this
  }

  /** Runs in a task of its own, joined to neither neighbour. */
  disableChaining(): this {
    this.#node.options.chaining = false
    return this
  }

  /** What the operator emitted to this tag. */
  sideOutput<Side>(tag: OutputTag<Side>): Stream<Side> {
    const type = tag.type as TypeInfo<unknown>
    return new Stream(this.builder, [
      { node: this.#node, tag: tag.name, type, partitioning: undefined, keySelector: undefined },
    ])
  }
}
