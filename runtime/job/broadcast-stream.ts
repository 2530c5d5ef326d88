// A stream whose records go to every subtask of the operator that reads it, and what it is connected with.

import { broadcastProcessOperator, keyedBroadcastProcessOperator } from '../operators/broadcast-process.ts'
import type { BroadcastProcessFunction, KeyedBroadcastProcessFunction } from '../operators/broadcast-process.ts'
import { checkBroadcastDeclaration } from '../operators/broadcast-state.ts'
import type { BroadcastDeclaration } from '../operators/broadcast-state.ts'
import { PROCESS_TIMERS } from '../operators/keyed-process.ts'
import type { StateDeclaration } from '../operators/keyed-process.ts'
import { typeOfSchema } from '../operators/stream-schema.ts'
import type { TypeInfo } from '../record/contract.ts'
import { inputsOf } from './connected-stream.ts'
import type { ConnectedParts } from './connected-stream.ts'
import type { KeyedConnectedParts } from './keyed-connected-stream.ts'
import { functionsOf } from './stream-builder.ts'
import type { StreamInput } from './stream-node.ts'
import type { OperatorStream, OutputOptions } from './stream.ts'

declare const types: unique symbol

export class BroadcastStream<Rule, Broadcast> {
  readonly inputs: readonly StreamInput[]
  readonly declared: BroadcastDeclaration
  /** Holds the types; never set. */
  declare readonly [types]: { readonly rule: Rule; readonly broadcast: Broadcast }

  constructor(inputs: readonly StreamInput[], declared: BroadcastDeclaration) {
    checkBroadcastDeclaration(declared)
    this.inputs = inputs.map((input) => ({ ...input, partitioning: 'broadcast', keySelector: undefined }))
    this.declared = declared
  }
}

export class BroadcastConnectedStream<In, Rule, Broadcast extends BroadcastDeclaration> {
  readonly #parts: ConnectedParts & { readonly declared: BroadcastDeclaration }

  constructor(parts: ConnectedParts & { readonly declared: BroadcastDeclaration }) {
    this.#parts = parts
  }

  /** `process` gets the stream's records and reads the broadcast state, `processBroadcast` gets the broadcast ones and writes it. The schema types `emit`. */
  process<Out = unknown>(
    process: BroadcastProcessFunction<In, Rule, Broadcast, Out>,
    options: OutputOptions<Out> = {},
  ): OperatorStream<Out> {
    const { builder, declared } = this.#parts
    return builder.operator<Out>(
      {
        kind: 'broadcast',
        inputs: inputsOf(this.#parts),
        work: { kind: 'operator', create: () => broadcastProcessOperator(process, declared as Broadcast) },
        output: typeOfSchema('process output', options.schema) as TypeInfo<unknown>,
        stateful: true,
        states: [],
        broadcastStates: Object.values(declared),
        operatorState: 'all broadcast',
      },
      functionsOf(process, ['process', 'processBroadcast']),
    )
  }
}

export class KeyedBroadcastConnectedStream<K, In, Rule, Broadcast extends BroadcastDeclaration> {
  readonly #parts: KeyedConnectedParts & { readonly declared: BroadcastDeclaration }

  constructor(parts: KeyedConnectedParts & { readonly declared: BroadcastDeclaration }) {
    this.#parts = parts
  }

  /**
   * `process` gets the stream's records with state and timers of their key, and reads the broadcast state; `processBroadcast` gets the
   * broadcast ones, writes it, and may visit all keys. The schema types `emit`.
   */
  process<Out = unknown, States extends StateDeclaration = StateDeclaration>(
    process: KeyedBroadcastProcessFunction<K, In, Rule, States, Broadcast, Out>,
    options: OutputOptions<Out> = {},
  ): OperatorStream<Out> {
    const { builder, declared, functions } = this.#parts
    return builder.operator<Out>(
      {
        kind: 'broadcast',
        inputs: inputsOf(this.#parts),
        work: { kind: 'operator', create: () => keyedBroadcastProcessOperator(process, declared as Broadcast) },
        output: typeOfSchema('process output', options.schema) as TypeInfo<unknown>,
        stateful: true,
        states: Object.values(process.state ?? {}),
        timerMeaning: PROCESS_TIMERS,
        broadcastStates: Object.values(declared),
        operatorState: 'all broadcast',
      },
      { ...functions, ...functionsOf(process, ['process', 'processBroadcast', 'onTimer']) },
    )
  }
}
