import { invariant } from '../base/errors.ts'
import { NO_TIMESTAMP } from '../record/element.ts'
import type { DeepReadonly, DueTimer, KeyedStateBackend, Timers, TypedDescriptor } from '../state/contract.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { openFunction, ownCopy } from './process.ts'
import { RunningContext } from './process-context.ts'
import type { FiredTimer, KeyedContext, OpenContext } from './process-context.ts'
import { isPromise, promiseError, userError } from './user-code.ts'

/** Descriptors by the names under which the context gives their handles. */
export type StateDeclaration = Readonly<Record<string, TypedDescriptor<unknown>>>

export type HandlesOf<States> = {
  readonly [Name in keyof States]: States[Name] extends TypedDescriptor<infer Handle> ? Handle : never
}

/** What timers that a job's own functions register stand for, whichever operator calls them. */
export const PROCESS_TIMERS = 'timers of a process function'

/** Per key: state and timers. In an object literal `state` stands first, so that the functions below it know its types. */
export interface KeyedProcessFunction<K, In, States, Out> {
  readonly state?: States
  /** `this` is an object of its own for each attempt, which inherits from the one given (so no `#private` members): what open sets on it is not shared between subtasks. */
  open?(context: OpenContext): void | Promise<void>
  readonly process: (value: DeepReadonly<In>, context: KeyedContext<K, HandlesOf<States>, Out>) => void
  readonly onTimer?: (timer: FiredTimer, context: KeyedContext<K, HandlesOf<States>, Out>) => void
  /** At the end of data alone: not when the job is stopped, drained, suspended, cancelled or restarted. */
  close?(): void | Promise<void>
}

export type AnyKeyedProcessFunction = KeyedProcessFunction<unknown, unknown, StateDeclaration, unknown>

export class KeyedProcessOperator implements StreamOperator {
  readonly #function: AnyKeyedProcessFunction
  #context!: OperatorContext
  #running!: RunningKeyedContext

  constructor(process: AnyKeyedProcessFunction) {
    this.#function = ownCopy(process)
  }

  async open(context: OperatorContext, output: Output<unknown>): Promise<void> {
    this.#context = context
    this.#running = openKeyedContext(this.#function.state, context, output)
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

  onTimer(timer: DueTimer): void {
    // What a processing-time timer emits has no event time: the wall clock would not be repeated by a restart.
    this.#running.moveTo(timer.domain === 'event' ? timer.timestampMs : NO_TIMESTAMP)
    let result: unknown
    try {
      result = this.#function.onTimer?.(timer, this.#running)
    } catch (error) {
      throw userError(this.#context, 'onTimer', error)
    }
    if (isPromise(result)) throw promiseError(this.#context, 'onTimer')
  }

  async close(): Promise<void> {
    await this.#function.close?.()
  }
}

/** With the handles of what is declared. */
export function openKeyedContext(
  declared: StateDeclaration | undefined,
  context: OperatorContext,
  output: Output<unknown>,
): RunningKeyedContext {
  const backend = keyedBackendOf(context)
  return new RunningKeyedContext(context, output, backend, openStateHandles(declared, backend))
}

export function openStateHandles(
  declared: StateDeclaration | undefined,
  backend: KeyedStateBackend,
): Readonly<Record<string, unknown>> {
  const handles: Record<string, unknown> = {}
  for (const [name, descriptor] of Object.entries(declared ?? {})) handles[name] = backend.state(descriptor)
  return handles
}

export class RunningKeyedContext
  extends RunningContext
  implements KeyedContext<unknown, Readonly<Record<string, unknown>>, unknown>
{
  readonly state: Readonly<Record<string, unknown>>
  readonly timers: Timers
  readonly #backend: KeyedStateBackend

  constructor(
    context: OperatorContext,
    output: Output<unknown>,
    backend: KeyedStateBackend,
    state: Readonly<Record<string, unknown>>,
  ) {
    super(context, output)
    this.#backend = backend
    this.state = state
    this.timers = backend.timers
  }

  get key(): unknown {
    return this.#backend.currentKey
  }
}

export function keyedBackendOf(context: OperatorContext): KeyedStateBackend {
  invariant(context.keyed !== undefined, `${context.uid} needs keyed state but does not stand behind a keyBy`)
  return context.keyed
}
