import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { operatorError } from './errors.ts'
import { describe, isPromise, promiseError, userError } from './user-code.ts'

/** Keeps the records for which the function gives true. */
export class FilterOperator implements StreamOperator {
  readonly #keep: (value: unknown) => unknown
  #context!: OperatorContext
  #output!: Output<unknown>

  constructor(keep: (value: unknown) => unknown) {
    this.#keep = keep
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.#context = context
    this.#output = output
  }

  process(value: unknown, timestamp: number): void {
    let kept: unknown
    try {
      kept = this.#keep(value)
    } catch (error) {
      throw userError(this.#context, 'filter', error)
    }
    if (kept === true) this.#output.emit(value, timestamp)
    else if (kept !== false) this.#refuse(kept)
  }

  /** A promise is truthy: taken as an answer it would keep every record. */
  #refuse(kept: unknown): never {
    if (isPromise(kept)) throw promiseError(this.#context, 'filter')
    throw operatorError('MR-J55', `filter of ${describe(this.#context)} gave ${String(kept)}, not true or false.`)
  }
}
