// Two streams in one operator, without keys.

import type { DeepReadonly } from '../state/contract.ts'
import type { StreamOperator } from './contract.ts'
import { RunningContext } from './process-context.ts'
import type { OpenContext, ProcessContext } from './process-context.ts'
import { TwoInputProcessOperator } from './two-input-process.ts'
import type { TwoInputFunction } from './two-input-process.ts'

/** Without key: no state and no timers. Records of the two streams come in no order between them. */
export interface CoProcessFunction<First, Second, Out> {
  /** `this` is an object of its own for each attempt, which inherits from the one given (so no `#private` members): what open sets on it is not shared between subtasks. */
  open?(context: OpenContext): void | Promise<void>
  readonly process: (value: DeepReadonly<First>, context: ProcessContext<Out>) => void
  readonly processSecond: (value: DeepReadonly<Second>, context: ProcessContext<Out>) => void
  /** At the end of data alone: not when the job is stopped, drained, suspended, cancelled or restarted. */
  close?(): void | Promise<void>
}

/** What `first.connect(second).process(process)` runs. */
export function coProcessOperator<First, Second, Out>(process: CoProcessFunction<First, Second, Out>): StreamOperator {
  return new TwoInputProcessOperator({
    function: process as unknown as TwoInputFunction,
    second: 'processSecond',
    prepare(context, output) {
      const running = new RunningContext(context, output)
      return { first: running, second: running }
    },
  })
}
