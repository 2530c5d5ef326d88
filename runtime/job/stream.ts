// Streams as a job's author sees them. Functions get records deep-readonly: a record is immutable once emitted.

import type { Sink } from '../connectors/contract.ts'
import type { AsyncWork } from '../operators/async-operator.ts'
import type { AsyncContext, AsyncOptions } from '../operators/async-options.ts'
import type { BroadcastDeclaration } from '../operators/broadcast-state.ts'
import { FilterOperator } from '../operators/filter.ts'
import { FlatMapOperator } from '../operators/flat-map.ts'
import { MapOperator } from '../operators/map.ts'
import type { OutputTag } from '../operators/output-tag.ts'
import { ProcessOperator } from '../operators/process.ts'
import type { ProcessFunction } from '../operators/process.ts'
import { SinkOperator, WRITER_STATE } from '../operators/sink-operator.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { StreamSchema } from '../operators/stream-schema.ts'
import type { Key, TypeInfo } from '../record/contract.ts'
import type { DeepReadonly } from '../state/contract.ts'
import { asyncSpec } from './async-spec.ts'
import type { AsyncStepOptions } from './async-spec.ts'
import { BroadcastConnectedStream, BroadcastStream } from './broadcast-stream.ts'
import { commonType } from './common-type.ts'
import { ConnectedStreams } from './connected-stream.ts'
import { jobError } from './errors.ts'
import { UnkeyedJoin } from './joined-stream.ts'
import { keyedInputs } from './key-selector.ts'
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
type Awaitable<Value> = Value | PromiseLike<Value>

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

  /**
   * One record for each, by a function that may await. Its queue is state: what has no result at a checkpoint is called again by a
   * restart, so the function may be called more than once for a record. Without `await` in it, use map. Throws MR-J71.
   */
  mapAsync<Out>(
    map: (value: DeepReadonly<T>, context: AsyncContext) => Awaitable<NoInfer<Out | DeepReadonly<Out>>>,
    options: AsyncOptions<T, NoInfer<Out | DeepReadonly<Out>>> & { readonly schema: StreamSchema<Out> },
  ): OperatorStream<Out>
  mapAsync<Out>(
    map: (value: DeepReadonly<T>, context: AsyncContext) => Awaitable<Out>,
    options: AsyncOptions<T, NoInfer<Out>>,
  ): OperatorStream<Out>
  mapAsync<Out>(
    map: (value: DeepReadonly<T>, context: AsyncContext) => unknown,
    options: unknown = {},
  ): OperatorStream<Out> {
    return this.#async('mapAsync', map as AsyncWork['call'], options as AsyncStepOptions)
  }

  /** As mapAsync, with any number of records for each: what is awaited is an iterable of them. */
  flatMapAsync<Out>(
    flatMap: (value: DeepReadonly<T>, context: AsyncContext) => Awaitable<Iterable<NoInfer<Out | DeepReadonly<Out>>>>,
    options: AsyncOptions<T, Iterable<NoInfer<Out | DeepReadonly<Out>>>> & { readonly schema: StreamSchema<Out> },
  ): OperatorStream<Out>
  flatMapAsync<Out>(
    flatMap: (value: DeepReadonly<T>, context: AsyncContext) => Awaitable<Iterable<Out>>,
    options: AsyncOptions<T, Iterable<NoInfer<Out>>>,
  ): OperatorStream<Out>
  flatMapAsync<Out>(
    flatMap: (value: DeepReadonly<T>, context: AsyncContext) => unknown,
    options: unknown = {},
  ): OperatorStream<Out> {
    return this.#async('flatMapAsync', flatMap as AsyncWork['call'], options as AsyncStepOptions)
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

  /** All records of one key meet in one subtask, with state and timers of that key. The function is asked more than once for a record and must give the same key each time (MR-J68). */
  keyBy<const K extends Key>(selector: (value: DeepReadonly<T>) => K): KeyedStream<K, T> {
    return new KeyedStream(this.builder, keyedInputs(this.inputs, selector), { keyBy: selector })
  }

  /** Every record goes to all subtasks of the operator that the broadcast stream is connected with, which keeps what it wants of them in these states. */
  broadcast<const Broadcast extends BroadcastDeclaration>(broadcast: Broadcast): BroadcastStream<T, Broadcast> {
    return new BroadcastStream(this.inputs, broadcast)
  }

  /** One operator for both streams, with a function for each. Its event time is the smaller of both. */
  connect<Rule, Broadcast extends BroadcastDeclaration>(
    broadcast: BroadcastStream<Rule, Broadcast>,
  ): BroadcastConnectedStream<T, Rule, Broadcast>
  connect<Other>(other: StreamOf<Other>): ConnectedStreams<T, Other>
  connect(other: unknown): unknown {
    const parts = { builder: this.builder, first: this.inputs }
    if (other instanceof BroadcastStream)
      return new BroadcastConnectedStream({ ...parts, second: other.inputs, declared: other.declared })
    return new ConnectedStreams({ ...parts, second: this.#inputsOfOther(other, 'connect') })
  }

  /** Pairs of records of one key in one window. */
  join<Other>(other: StreamOf<Other>): UnkeyedJoin<'join', T, Other> {
    const second = this.#inputsOfOther(other, 'join')
    return new UnkeyedJoin('join', { builder: this.builder, first: this.inputs, second })
  }

  /** All records of one key in one window, those of each stream apart. */
  coGroup<Other>(other: StreamOf<Other>): UnkeyedJoin<'coGroup', T, Other> {
    const second = this.#inputsOfOther(other, 'coGroup')
    return new UnkeyedJoin('coGroup', { builder: this.builder, first: this.inputs, second })
  }

  /** The stream's records must have all that the sink needs. */
  sinkTo<S = T>(
    sink: Sink<S> & ([T] extends [S] ? unknown : 'the records of this stream do not fit the sink'),
  ): SinkHandle {
    const untyped = sink as unknown as Sink<unknown>
    return this.builder.sink({
      kind: 'sink',
      inputs: this.inputs,
      work: { kind: 'sink', sink: untyped, create: (settings) => new SinkOperator(untyped, settings) },
      output: undefined,
      stateful: untyped.createCommitter !== undefined,
      states: [],
      operatorState: [WRITER_STATE],
    })
  }

  #inputsOfOther(other: unknown, call: string): readonly StreamInput[] {
    if (other instanceof Stream) return other.inputs
    throw jobError('MR-J13', `${call} at ${callerLocation()} was given no plain stream.`)
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

  #async<Out>(kind: AsyncWork['kind'], call: AsyncWork['call'], options: AsyncStepOptions): OperatorStream<Out> {
    const { spec, functions } = asyncSpec({ kind, call }, this.inputs, options)
    return this.builder.operator<Out>(spec, functions)
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

  /** Key groups of the operator's state; it cannot be restored under another number. Default: the job's. */
  maxParallelism(maxParallelism: number): this {
    this.#node.options.maxParallelism = maxParallelism
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
