import type { TypeInfo } from '../record/contract.ts'
import type { StateDescriptor, TypedDescriptor, ValueState } from '../state/contract.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { keyedBackendOf } from './keyed-process.ts'
import { isPromise, promiseError, userError } from './user-code.ts'

export function rollingReduceState(type: TypeInfo<unknown>): StateDescriptor {
  return { kind: 'value', name: 'reduced', value: type }
}

/** Combines each record of a key with the result so far and emits the new result. */
export class RollingReduceOperator implements StreamOperator {
  readonly #reduce: (left: unknown, right: unknown) => unknown
  readonly #descriptor: TypedDescriptor<ValueState<unknown>>
  #context!: OperatorContext
  #output!: Output<unknown>
  #reduced!: ValueState<unknown>

  constructor(reduce: (left: unknown, right: unknown) => unknown, descriptor: StateDescriptor) {
    this.#reduce = reduce
    this.#descriptor = descriptor
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.#context = context
    this.#output = output
    this.#reduced = keyedBackendOf(context).state(this.#descriptor)
  }

  process(value: unknown, timestamp: number): void {
    const before = this.#reduced.get()
    let reduced = value
    if (before !== undefined) {
      try {
        reduced = this.#reduce(before, value)
      } catch (error) {
        throw userError(this.#context, 'reduce', error)
      }
      if (isPromise(reduced)) throw promiseError(this.#context, 'reduce')
    }
    this.#reduced.update(reduced)
    this.#output.emit(reduced, timestamp)
  }
}
