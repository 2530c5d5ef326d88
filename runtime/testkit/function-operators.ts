// A job's process functions as the operators that run them, so that a harness can.

import type { StreamOperator } from '../operators/contract.ts'
import { KeyedProcessOperator } from '../operators/keyed-process.ts'
import type { AnyKeyedProcessFunction, KeyedProcessFunction, StateDeclaration } from '../operators/keyed-process.ts'
import { ProcessOperator } from '../operators/process.ts'
import type { ProcessFunction } from '../operators/process.ts'

/** What `stream.process(process)` runs. */
export function processOperator<In, Out>(process: ProcessFunction<In, Out>): StreamOperator {
  return new ProcessOperator(process as unknown as ProcessFunction<unknown, unknown>)
}

/** What `stream.keyBy(…).process(process)` runs; the harness needs a `keySelector` for it. */
export function keyedProcessOperator<K, In, States extends StateDeclaration, Out>(
  process: KeyedProcessFunction<K, In, States, Out>,
): StreamOperator {
  return new KeyedProcessOperator(process as unknown as AnyKeyedProcessFunction)
}
