import { AsyncOperator } from '../operators/async-operator.ts'
import type { AsyncWork } from '../operators/async-operator.ts'
import { asyncSettings } from '../operators/async-options.ts'
import type { AsyncOptions } from '../operators/async-options.ts'
import { IN_FLIGHT_STATE } from '../operators/async-state.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { StreamSchema } from '../operators/stream-schema.ts'
import type { TypeInfo } from '../record/contract.ts'
import { commonType } from './common-type.ts'
import { callerLocation } from './location.ts'
import type { UserFunctions } from './stream-builder.ts'
import type { NodeSpec, StreamInput } from './stream-node.ts'

/** Options of mapAsync and flatMapAsync as a job gives them. */
export type AsyncStepOptions = AsyncOptions<never, unknown> & { readonly schema?: StreamSchema<never> }

/** The node of mapAsync or flatMapAsync, and those of its functions that must not be async. Throws MR-J71. */
export function asyncSpec(
  work: Pick<AsyncWork, 'kind' | 'call'>,
  inputs: readonly StreamInput[],
  options: AsyncStepOptions,
): { readonly spec: NodeSpec; readonly functions: UserFunctions } {
  const { kind, call } = work
  const settings = asyncSettings(`the ${kind} at ${callerLocation()}`, options)
  const input = commonType(inputs)
  const spec: NodeSpec = {
    kind,
    inputs,
    work: { kind: 'operator', create: () => new AsyncOperator({ kind, call, input, settings }) },
    output: typeOfSchema(`${kind} output`, options.schema) as TypeInfo<unknown>,
    stateful: true,
    states: [],
    operatorState: [IN_FLIGHT_STATE],
  }
  const functions: UserFunctions = {
    onTimeout: options.onTimeout,
    'retries.when': options.retries?.when,
    // Its answers would be no iterable of records but one of promises.
    ...(call.constructor.name === 'AsyncGeneratorFunction' && { [kind]: call }),
  }
  return { spec, functions }
}
