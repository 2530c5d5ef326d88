import type { DeepReadonly } from '../state/contract.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { RunningContext } from './process-context.ts'
import type { OpenContext, ProcessContext } from './process-context.ts'
import { isPromise, promiseError, userError } from './user-code.ts'

/** Without key: no state and no timers; for side outputs and for whatever map and flatMap do not fit. */
export interface ProcessFunction<In, Out> {
  /** `this` is an object of its own for each attempt, which inherits from the one given (so no `#private` members): what open sets on it is not shared between subtasks. */
  open?(context: OpenContext): void | Promise<void>
  /** A property as all of these, since parameters of methods are compared in both ways: wrong ones would compile. */
  readonly process: (value: DeepReadonly<In>, context: ProcessContext<Out>) => void
  /** At the end of data alone: not when the job is stopped, drained, suspended, cancelled or restarted. */
  close?(): void | Promise<void>
}

export class ProcessOperator implements StreamOperator {
  readonly #function: ProcessFunction<unknown, unknown>
  #context!: OperatorContext
  #running!: RunningContext

  constructor(process: ProcessFunction<unknown, unknown>) {
    this.#function = ownCopy(process)
  }

  async open(context: OperatorContext, output: Output<unknown>): Promise<void> {
    this.#context = context
    this.#running = new RunningContext(context, output)
    await openFunction(this.#function, context)
  }

  process(value: unknown, timestamp: number): void {
    this.#running.moveTo(timestamp)
    let result: unknown
    try {
      result = this.#function.process(value, this.#running)
    } catch (error) {
      throw userError(this.#context, 'process', error)
    }
    if (isPromise(result)) throw promiseError(this.#context, 'process')
  }

  async close(): Promise<void> {
    await this.#function.close?.()
  }
}

/** Inherits from the job's function object, so that `this.x = …` stays within one attempt although subtasks of one thread share the job. */
export function ownCopy<F extends object>(shared: F): F {
  return Object.create(shared) as F
}

export async function openFunction(
  opened: { open?(context: OpenContext): void | Promise<void> },
  context: OperatorContext,
): Promise<void> {
  try {
    await opened.open?.({ task: context.task, uid: context.uid, metrics: context.userMetrics })
  } catch (error) {
    throw userError(context, 'open', error)
  }
}
