import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { isPromise, promiseError, userError } from './user-code.ts'

/** One record out for each record in. */
export class MapOperator implements StreamOperator {
  readonly #map: (value: unknown) => unknown
  #context!: OperatorContext
  #output!: Output<unknown>

  constructor(map: (value: unknown) => unknown) {
    this.#map = map
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.#context = context
    this.#output = output
  }

  process(value: unknown, timestamp: number): void {
    let mapped: unknown
    try {
      mapped = this.#map(value)
    } catch (error) {
      throw userError(this.#context, 'map', error)
    }
    if (isPromise(mapped)) throw promiseError(this.#context, 'map')
    this.#output.emit(mapped, timestamp)
  }
}
