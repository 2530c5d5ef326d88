// A stream and a broadcast one in one operator: its records meet what the broadcast ones have left in state, the same on every subtask.

import type { DeepReadonly, KeyedStateBackend, TypedDescriptor } from '../state/contract.ts'
import { BroadcastStates } from './broadcast-state.ts'
import type { BroadcastDeclaration, BroadcastHandles, BroadcastViews } from './broadcast-state.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { keyedBackendOf, RunningKeyedContext, openStateHandles } from './keyed-process.ts'
import type { HandlesOf, StateDeclaration } from './keyed-process.ts'
import { RunningContext } from './process-context.ts'
import type { FiredTimer, KeyedContext, OpenContext, ProcessContext } from './process-context.ts'
import { TwoInputProcessOperator } from './two-input-process.ts'
import type { TwoInputFunction } from './two-input-process.ts'
import { isPromise, promiseError } from './user-code.ts'

interface ReadsBroadcast<Broadcast> {
  /** To read only: the other stream's records come to different subtasks, which must not differ in this. */
  readonly broadcastState: BroadcastViews<Broadcast>
}

interface WritesBroadcast<Broadcast> {
  /** What is written must follow from the broadcast records alone (not from time, `task`, or `this`): every subtask must come to the same. */
  readonly broadcastState: BroadcastHandles<Broadcast>
}

export type BroadcastReadContext<Broadcast, Out> = ProcessContext<Out> & ReadsBroadcast<Broadcast>
export type BroadcastWriteContext<Broadcast, Out> = ProcessContext<Out> & WritesBroadcast<Broadcast>
export type KeyedBroadcastReadContext<K, Handles, Broadcast, Out> = KeyedContext<K, Handles, Out> &
  ReadsBroadcast<Broadcast>

export interface KeyedBroadcastWriteContext<K, Broadcast, Out> extends ProcessContext<Out>, WritesBroadcast<Broadcast> {
  /**
   * Visits each key of this subtask that has something in this state, in no order and in one go: with very many keys all else waits. `descriptor` is one of the function's `state`; the handle is
   * that of the key and valid during the visit.
   */
  readonly forEachKey: <Handle>(descriptor: TypedDescriptor<Handle>, visit: (key: K, handle: Handle) => void) => void
}

/** Broadcast records come to every subtask; those of several subtasks that broadcast come in an order of their own to each. */
export interface BroadcastProcessFunction<In, Rule, Broadcast, Out> {
  /** `this` is an object of its own for each attempt, which inherits from the one given (so no `#private` members): what open sets on it is not shared between subtasks. */
  open?(context: OpenContext): void | Promise<void>
  readonly process: (value: DeepReadonly<In>, context: BroadcastReadContext<Broadcast, Out>) => void
  /** Runs on every subtask: what it emits, comes out once for each. */
  readonly processBroadcast: (value: DeepReadonly<Rule>, context: BroadcastWriteContext<Broadcast, Out>) => void
  /** At the end of data alone: not when the job is stopped, drained, suspended, cancelled or restarted. */
  close?(): void | Promise<void>
}

/** In an object literal `state` stands first, so that the functions below it know its types. */
export interface KeyedBroadcastProcessFunction<K, In, Rule, States, Broadcast, Out> {
  readonly state?: States
  /** `this` is an object of its own for each attempt, which inherits from the one given (so no `#private` members): what open sets on it is not shared between subtasks. */
  open?(context: OpenContext): void | Promise<void>
  readonly process: (
    value: DeepReadonly<In>,
    context: KeyedBroadcastReadContext<K, HandlesOf<States>, Broadcast, Out>,
  ) => void
  /** Runs on every subtask: what it emits, comes out once for each. It has no key; `forEachKey` goes through all. */
  readonly processBroadcast: (value: DeepReadonly<Rule>, context: KeyedBroadcastWriteContext<K, Broadcast, Out>) => void
  readonly onTimer?: (
    timer: FiredTimer,
    context: KeyedBroadcastReadContext<K, HandlesOf<States>, Broadcast, Out>,
  ) => void
  /** At the end of data alone: not when the job is stopped, drained, suspended, cancelled or restarted. */
  close?(): void | Promise<void>
}

/** What `stream.connect(rules.broadcast(broadcast)).process(process)` runs. */
export function broadcastProcessOperator<In, Rule, Broadcast extends BroadcastDeclaration, Out>(
  process: BroadcastProcessFunction<In, Rule, Broadcast, Out>,
  broadcast: Broadcast,
): StreamOperator {
  return new TwoInputProcessOperator({
    function: process as unknown as TwoInputFunction,
    second: 'processBroadcast',
    prepare(context, output) {
      const states = new BroadcastStates(broadcast, context)
      return {
        first: new RunningReadContext(context, output, states),
        second: new RunningWriteContext(context, output, states),
        snapshot: () => states.snapshot(),
      }
    },
  })
}

/** What `stream.keyBy(…).connect(rules.broadcast(broadcast)).process(process)` runs. */
export function keyedBroadcastProcessOperator<
  K,
  In,
  Rule,
  States extends StateDeclaration,
  Broadcast extends BroadcastDeclaration,
  Out,
>(process: KeyedBroadcastProcessFunction<K, In, Rule, States, Broadcast, Out>, broadcast: Broadcast): StreamOperator {
  return new TwoInputProcessOperator({
    function: process as unknown as TwoInputFunction,
    second: 'processBroadcast',
    prepare(context, output) {
      const states = new BroadcastStates(broadcast, context)
      const backend = keyedBackendOf(context)
      const handles = openStateHandles(process.state, backend)
      return {
        first: new RunningKeyedReadContext(context, output, { backend, handles, states }),
        second: new RunningKeyedWriteContext(context, output, { backend, states }),
        snapshot: () => states.snapshot(),
      }
    },
  })
}

class RunningReadContext extends RunningContext {
  readonly broadcastState: BroadcastStates['views']

  constructor(context: OperatorContext, output: Output<unknown>, states: BroadcastStates) {
    super(context, output)
    this.broadcastState = states.views
  }
}

class RunningWriteContext extends RunningContext {
  readonly broadcastState: BroadcastStates['handles']

  constructor(context: OperatorContext, output: Output<unknown>, states: BroadcastStates) {
    super(context, output)
    this.broadcastState = states.handles
  }
}

class RunningKeyedReadContext extends RunningKeyedContext {
  readonly broadcastState: BroadcastStates['views']

  constructor(
    context: OperatorContext,
    output: Output<unknown>,
    parts: {
      readonly backend: KeyedStateBackend
      readonly handles: Readonly<Record<string, unknown>>
      readonly states: BroadcastStates
    },
  ) {
    super(context, output, parts.backend, parts.handles)
    this.broadcastState = parts.states.views
  }
}

class RunningKeyedWriteContext extends RunningWriteContext {
  readonly forEachKey: <Handle>(
    descriptor: TypedDescriptor<Handle>,
    visit: (key: unknown, handle: Handle) => unknown,
  ) => void

  constructor(
    context: OperatorContext,
    output: Output<unknown>,
    { backend, states }: { readonly backend: KeyedStateBackend; readonly states: BroadcastStates },
  ) {
    super(context, output, states)
    this.forEachKey = (descriptor, visit) =>
      backend.forEachKey(descriptor, (key, handle) => {
        if (isPromise(visit(key, handle))) throw promiseError(context, 'forEachKey')
      })
  }
}
