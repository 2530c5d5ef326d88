// Emits what a window's contents make of it.

import type { Key } from '../record/contract.ts'
import { NO_TIMESTAMP } from '../record/element.ts'
import type { Output, OperatorContext } from './contract.ts'
import { operatorError } from './errors.ts'
import { describe, isPromise, promiseError, userError } from './user-code.ts'
import type { TimeWindow } from './window-assigner.ts'
import type { WindowContents, WindowContext } from './window-contents.ts'

export interface Firing {
  readonly key: Key
  readonly window: TimeWindow
  readonly accumulator: unknown
  /** Of the results, ms; NO_TIMESTAMP: they have no event time. */
  readonly timestamp: number
}

export class WindowFiring {
  readonly #context: OperatorContext
  readonly #output: Output<unknown>
  readonly #contents: WindowContents
  readonly #firing: FiringContext

  constructor(contents: WindowContents, context: OperatorContext, output: Output<unknown>) {
    this.#context = context
    this.#output = output
    this.#contents = contents
    this.#firing = new FiringContext(context, output)
  }

  emit({ key, window, accumulator, timestamp }: Firing): void {
    this.#firing.moveTo(timestamp)
    try {
      const results = this.#contents.results(key, window, accumulator, this.#firing)
      if (typeof results !== 'object' || !(Symbol.iterator in results)) this.#refuseResults(results)
      for (const result of results) {
        if (isPromise(result)) throw promiseError(this.#context, 'the window function')
        this.#output.emit(result, timestamp)
      }
    } catch (error) {
      throw userError(this.#context, 'the window function', error)
    }
  }

  #refuseResults(results: unknown): never {
    if (isPromise(results)) throw promiseError(this.#context, 'the window function')
    throw operatorError(
      'MR-J55',
      `The window function of ${describe(this.#context)} gave ${typeof results}, no iterable.`,
    )
  }
}

class FiringContext implements WindowContext {
  readonly #context: OperatorContext
  #timestamp: number = NO_TIMESTAMP
  readonly emitTo: WindowContext['emitTo']

  constructor(context: OperatorContext, output: Output<unknown>) {
    this.#context = context
    this.emitTo = (tag, value) => output.emitTo(tag.name, value, this.#timestamp)
  }

  moveTo(timestamp: number): void {
    this.#timestamp = timestamp
  }

  get currentWatermark(): number {
    return this.#context.currentWatermark()
  }

  get processingTimeMs(): number {
    return this.#context.environment.clock.wallMs()
  }
}
