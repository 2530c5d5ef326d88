// Two streams of one kind of key in one operator: both sides share the key's state and timers.

import type { DeepReadonly } from '../state/contract.ts'
import type { StreamOperator } from './contract.ts'
import { openKeyedContext } from './keyed-process.ts'
import type { HandlesOf, StateDeclaration } from './keyed-process.ts'
import type { FiredTimer, KeyedContext, OpenContext } from './process-context.ts'
import { TwoInputProcessOperator } from './two-input-process.ts'
import type { TwoInputFunction } from './two-input-process.ts'

/** In an object literal `state` stands first, so that the functions below it know its types. Records of the two streams come in no order between them. */
export interface KeyedCoProcessFunction<K, First, Second, States, Out> {
  /** Of the key, whichever side a record comes from. */
  readonly state?: States
  /** `this` is an object of its own for each attempt, which inherits from the one given (so no `#private` members): what open sets on it is not shared between subtasks. */
  open?(context: OpenContext): void | Promise<void>
  readonly process: (value: DeepReadonly<First>, context: KeyedContext<K, HandlesOf<States>, Out>) => void
  readonly processSecond: (value: DeepReadonly<Second>, context: KeyedContext<K, HandlesOf<States>, Out>) => void
  /** Event timers fire when both streams' event time has passed them. */
  readonly onTimer?: (timer: FiredTimer, context: KeyedContext<K, HandlesOf<States>, Out>) => void
  /** At the end of data alone: not when the job is stopped, drained, suspended, cancelled or restarted. */
  close?(): void | Promise<void>
}

/** What `first.keyBy(…).connect(second.keyBy(…)).process(process)` runs. */
export function keyedCoProcessOperator<K, First, Second, States extends StateDeclaration, Out>(
  process: KeyedCoProcessFunction<K, First, Second, States, Out>,
): StreamOperator {
  return new TwoInputProcessOperator({
    function: process as unknown as TwoInputFunction,
    second: 'processSecond',
    prepare(context, output) {
      const running = openKeyedContext(process.state, context, output)
      return { first: running, second: running }
    },
  })
}
