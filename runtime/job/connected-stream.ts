// Two streams that one operator reads, each with a function of its own.

import { coProcessOperator } from '../operators/co-process.ts'
import type { CoProcessFunction } from '../operators/co-process.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { TypeInfo } from '../record/contract.ts'
import { functionsOf } from './stream-builder.ts'
import type { StreamBuilder } from './stream-builder.ts'
import type { StreamInput } from './stream-node.ts'
import type { OperatorStream, OutputOptions } from './stream.ts'

export interface ConnectedParts {
  readonly builder: StreamBuilder
  /** More than one after a union. */
  readonly first: readonly StreamInput[]
  readonly second: readonly StreamInput[]
}

/** All inputs of an operator that tells two streams apart. */
export function inputsOf({ first, second }: Pick<ConnectedParts, 'first' | 'second'>): readonly StreamInput[] {
  return [...first, ...second.map((input) => ({ ...input, second: true as const }))]
}

export class ConnectedStreams<First, Second> {
  readonly #parts: ConnectedParts

  constructor(parts: ConnectedParts) {
    this.#parts = parts
  }

  /** `process` gets the records of the first stream, `processSecond` those of the other; neither has a key. The schema types `emit`. */
  process<Out = unknown>(
    process: CoProcessFunction<First, Second, Out>,
    options: OutputOptions<Out> = {},
  ): OperatorStream<Out> {
    return this.#parts.builder.operator<Out>(
      {
        kind: 'connect',
        inputs: inputsOf(this.#parts),
        work: { kind: 'operator', create: () => coProcessOperator(process) },
        output: typeOfSchema('process output', options.schema) as TypeInfo<unknown>,
        stateful: false,
        states: [],
      },
      functionsOf(process, ['process', 'processSecond']),
    )
  }
}
