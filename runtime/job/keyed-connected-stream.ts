// Two streams of one kind of key that one operator reads: records of one key meet, with state and timers of that key.

import { keyedCoProcessOperator } from '../operators/keyed-co-process.ts'
import type { KeyedCoProcessFunction } from '../operators/keyed-co-process.ts'
import { PROCESS_TIMERS } from '../operators/keyed-process.ts'
import type { StateDeclaration } from '../operators/keyed-process.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { TypeInfo } from '../record/contract.ts'
import { inputsOf } from './connected-stream.ts'
import type { ConnectedParts } from './connected-stream.ts'
import { functionsOf } from './stream-builder.ts'
import type { UserFunctions } from './stream-builder.ts'
import type { OperatorStream, OutputOptions } from './stream.ts'

export interface KeyedConnectedParts extends ConnectedParts {
  readonly functions: UserFunctions
}

export class KeyedConnectedStreams<K, First, Second> {
  readonly #parts: KeyedConnectedParts

  constructor(parts: KeyedConnectedParts) {
    this.#parts = parts
  }

  /** `process` gets the records of the first stream, `processSecond` those of the other; both have the same state and timers. The schema types `emit`. */
  process<Out = unknown, States extends StateDeclaration = StateDeclaration>(
    process: KeyedCoProcessFunction<K, First, Second, States, Out>,
    options: OutputOptions<Out> = {},
  ): OperatorStream<Out> {
    return this.#parts.builder.operator<Out>(
      {
        kind: 'connect',
        inputs: inputsOf(this.#parts),
        work: { kind: 'operator', create: () => keyedCoProcessOperator(process) },
        output: typeOfSchema('process output', options.schema) as TypeInfo<unknown>,
        stateful: true,
        states: Object.values(process.state ?? {}),
        timerMeaning: PROCESS_TIMERS,
      },
      { ...this.#parts.functions, ...functionsOf(process, ['process', 'processSecond', 'onTimer']) },
    )
  }
}
