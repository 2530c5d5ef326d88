import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { operatorError } from './errors.ts'
import { describe, isPromise, promiseError, userError } from './user-code.ts'

/** Any number of records out for each record in, in the order of the iterable. */
export class FlatMapOperator implements StreamOperator {
  readonly #flatMap: (value: unknown) => unknown
  #context!: OperatorContext
  #output!: Output<unknown>

  constructor(flatMap: (value: unknown) => unknown) {
    this.#flatMap = flatMap
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.#context = context
    this.#output = output
  }

  process(value: unknown, timestamp: number): void {
    let results: unknown
    let list: readonly unknown[] | undefined
    try {
      results = this.#flatMap(value)
      // A generator is the user's code too: drawn dry here, where its errors get their name.
      list = Array.isArray(results) ? results : listOf(results)
    } catch (error) {
      throw userError(this.#context, 'flatMap', error)
    }
    if (list === undefined) return this.#refuse(results)
    for (let index = 0; index < list.length; index++) {
      const result = list[index]
      if (isPromise(result)) throw promiseError(this.#context, 'flatMap')
      this.#output.emit(result, timestamp)
    }
  }

  #refuse(results: unknown): never {
    if (isPromise(results)) throw promiseError(this.#context, 'flatMap')
    throw operatorError('MR-J55', `flatMap of ${describe(this.#context)} gave ${typeof results}, no iterable.`)
  }
}

/** undefined: not an iterable object. A string is none: its letters are hardly meant. */
export function listOf(results: unknown): readonly unknown[] | undefined {
  const iterable = typeof results === 'object' && results !== null && Symbol.iterator in results
  return iterable ? [...(results as Iterable<unknown>)] : undefined
}
