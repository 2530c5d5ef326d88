// What process functions of two inputs have in common: each call with its context, errors with the operator's name.

import { NO_TIMESTAMP } from '../record/element.ts'
import type { DueTimer } from '../state/contract.ts'
import type { Output, OperatorContext, OperatorStatePart, StreamOperator } from './contract.ts'
import { openFunction, ownCopy } from './process.ts'
import type { OpenContext, RunningContext } from './process-context.ts'
import { isPromise, promiseError, userError } from './user-code.ts'

type Call = (value: unknown, context: unknown) => unknown

/** The user's function object. Its second function has a name of its own: what it is for differs. */
export interface TwoInputFunction {
  open?(context: OpenContext): void | Promise<void>
  readonly process: Call
  readonly processSecond?: Call
  readonly processBroadcast?: Call
  readonly onTimer?: Call
  close?(): void | Promise<void>
}

/** What the calls see; each is moved from record to record. `first` is that of timers too. */
export interface TwoInputContexts {
  readonly first: RunningContext
  readonly second: RunningContext
  readonly snapshot?: () => OperatorStatePart
}

export interface TwoInputSettings {
  readonly function: TwoInputFunction
  readonly second: 'processSecond' | 'processBroadcast'
  /** Restores what the operator keeps beside keyed state. */
  readonly prepare: (context: OperatorContext, output: Output<unknown>) => TwoInputContexts
}

export class TwoInputProcessOperator implements StreamOperator {
  readonly #function: TwoInputFunction
  readonly #second: TwoInputSettings['second']
  readonly #prepare: TwoInputSettings['prepare']
  #context!: OperatorContext
  #contexts!: TwoInputContexts

  constructor(settings: TwoInputSettings) {
    this.#function = ownCopy(settings.function)
    this.#second = settings.second
    this.#prepare = settings.prepare
  }

  async open(context: OperatorContext, output: Output<unknown>): Promise<void> {
    this.#context = context
    this.#contexts = this.#prepare(context, output)
    await openFunction(this.#function, context)
  }

  process(value: unknown, timestamp: number): void {
    const { first } = this.#contexts
    first.moveTo(timestamp)
    let result: unknown
    try {
      result = this.#function.process(value, first)
    } catch (error) {
      throw userError(this.#context, 'process', error)
    }
    if (isPromise(result)) throw promiseError(this.#context, 'process')
  }

  processSecond(value: unknown, timestamp: number): void {
    const { second } = this.#contexts
    second.moveTo(timestamp)
    let result: unknown
    try {
      result = this.#function[this.#second]!(value, second)
    } catch (error) {
      throw userError(this.#context, this.#second, error)
    }
    if (isPromise(result)) throw promiseError(this.#context, this.#second)
  }

  onTimer(timer: DueTimer): void {
    const { first } = this.#contexts
    // As of one input: what a processing-time timer emits has no event time.
    first.moveTo(timer.domain === 'event' ? timer.timestampMs : NO_TIMESTAMP)
    let result: unknown
    try {
      result = this.#function.onTimer?.(timer, first)
    } catch (error) {
      throw userError(this.#context, 'onTimer', error)
    }
    if (isPromise(result)) throw promiseError(this.#context, 'onTimer')
  }

  snapshot(): OperatorStatePart {
    return this.#contexts.snapshot?.() ?? {}
  }

  async close(): Promise<void> {
    await this.#function.close?.()
  }
}
