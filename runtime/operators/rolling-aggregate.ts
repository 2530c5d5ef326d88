import type { TypeInfo } from '../record/contract.ts'
import type { AggregateFunction, AggregatingState, StateDescriptor, TypedDescriptor } from '../state/contract.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { keyedBackendOf } from './keyed-process.ts'
import { isPromise, promiseError, userError } from './user-code.ts'

export type AnyAggregate = AggregateFunction<unknown, unknown, unknown>

export function rollingAggregateState(aggregate: AnyAggregate, accumulator: TypeInfo<unknown>): StateDescriptor {
  return { kind: 'aggregating', name: 'aggregated', accumulator, aggregate }
}

/** Adds each record of a key to its accumulator and emits the result so far. */
export class RollingAggregateOperator implements StreamOperator {
  readonly #descriptor: TypedDescriptor<AggregatingState<unknown, unknown>>
  #context!: OperatorContext
  #output!: Output<unknown>
  #aggregated!: AggregatingState<unknown, unknown>

  constructor(descriptor: StateDescriptor) {
    this.#descriptor = descriptor
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.#context = context
    this.#output = output
    this.#aggregated = keyedBackendOf(context).state(this.#descriptor)
  }

  process(value: unknown, timestamp: number): void {
    let result: unknown
    try {
      this.#aggregated.add(value)
      result = this.#aggregated.get()
    } catch (error) {
      throw userError(this.#context, 'aggregate', error)
    }
    if (isPromise(result)) throw promiseError(this.#context, 'aggregate')
    this.#output.emit(result, timestamp)
  }
}
