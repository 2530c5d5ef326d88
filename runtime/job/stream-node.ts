// The logical graph that the stream API writes down: one node per operator, before parallelism, uids and chains are settled.

import type { Source, Sink, WatermarkStrategy } from '../connectors/contract.ts'
import type { StreamOperator } from '../operators/contract.ts'
import type { SinkSettings } from '../operators/sink-operator.ts'
import type { TypeInfo } from '../record/contract.ts'
import type { StateDescriptor } from '../state/contract.ts'
import type { KeySelector, TakenOperatorState } from './contract.ts'

/** One of a node's inputs: an output of another node and how its records are dealt out. */
export interface StreamInput {
  /** The operator's second input (connected streams); default the first. */
  readonly second?: true
  readonly node: StreamNode
  /** undefined: the main output. */
  readonly tag: string | undefined
  readonly type: TypeInfo<unknown>
  /** undefined: forward where the parallelism is the same, else rebalance. */
  readonly partitioning: 'rebalance' | 'hash' | 'broadcast' | undefined
  readonly keySelector: KeySelector | undefined
}

export type NodeWork =
  | {
      readonly kind: 'source'
      readonly source: Source<unknown, unknown, unknown>
      readonly watermarks: WatermarkStrategy<unknown>
    }
  | { readonly kind: 'operator'; readonly create: () => StreamOperator }
  | { readonly kind: 'sink'; readonly sink: Sink<unknown>; readonly create: (settings: SinkSettings) => StreamOperator }

export interface NodeSpec {
  /** What the operator is, in a word: map, window …; names it until the user does, and goes into a generated uid. */
  readonly kind: string
  readonly inputs: readonly StreamInput[]
  readonly work: NodeWork
  /** Of the main output; undefined for sinks. */
  readonly output: TypeInfo<unknown> | undefined
  /** Has something to be found again by uid. */
  readonly stateful: boolean
  /** Keyed. */
  readonly states: readonly StateDescriptor[]
  /** Lies apart from keyed state in a snapshot, and may have names of that. */
  readonly broadcastStates?: readonly StateDescriptor[]
  /** By default none. */
  readonly operatorState?: TakenOperatorState
  /** What its timers stand for; undefined: it has none. */
  readonly timerMeaning?: string
}

/** What the fluent methods set. */
export interface NodeOptions {
  uid?: string
  name?: string
  parallelism?: number
  maxParallelism?: number
  slotSharingGroup?: string
  chaining: boolean
}

export interface StreamNode {
  /** Place in the order of making; inputs have smaller ones. */
  readonly index: number
  readonly spec: NodeSpec
  readonly options: NodeOptions
  /** Where in the user's file it was made. */
  readonly location: string
}
