// The job graph: what the API builds, chaining turns into vertices, and coordinator and slots run. Pure data and factories.

import type { EdgeId, VertexId } from '../base/ids.ts'
import type { OperatorFactory } from '../operators/contract.ts'
import type { Key, TypeInfo } from '../record/contract.ts'
import type { StateDescriptor } from '../state/contract.ts'

/** forward: subtask i to i (equal parallelism). rebalance: round robin. hash: by key group. broadcast: a copy to each. */
export type Partitioning = 'forward' | 'rebalance' | 'hash' | 'broadcast'

/** Called by the partitioner and again by the keyed task: one record must have one key. */
export interface KeySelector {
  (value: unknown): Key
  /** Where the job gave it, for errors. */
  readonly place?: string
}

/** Where an operator's output goes. tag undefined: the main output. */
export type OutputTarget =
  | { readonly tag: string | undefined; readonly to: 'chained'; readonly operator: number }
  | { readonly tag: string | undefined; readonly to: 'edge'; readonly edge: EdgeId }

export interface ChainedOperator {
  readonly uid: string
  /** The job gave it; else generated from the graph (only autoUid allows state then). */
  readonly uidGiven: boolean
  readonly name: string
  readonly factory: OperatorFactory
  readonly outputs: readonly OutputTarget[]
  /** Keyed state that it declares, which a restore point is checked against before anything runs. */
  readonly states?: readonly StateDescriptor[]
  /** By default none. */
  readonly operatorState?: TakenOperatorState
  /** What its timers stand for; undefined: it has none. Stored ones of another meaning are refused: they would be taken for its own. */
  readonly timerMeaning?: string
}

/**
 * Names of the operator state that an operator takes of a restore point; what it does not take is refused, since it would be lost.
 * 'all broadcast': broadcast state of any name, for what is not declared today is kept for a job that declares it again.
 */
export type TakenOperatorState = readonly string[] | 'all broadcast'

export interface JobVertex {
  readonly id: VertexId
  readonly name: string
  readonly parallelism: number
  readonly maxParallelism: number
  readonly slotSharingGroup: string
  /** Topological order: [0] reads the input (or is the source); chained targets have larger indices. */
  readonly chain: readonly ChainedOperator[]
  /** By the first operator's inputs (one or two): how its key is told from a record; undefined where the input is not keyed. Keyed state needs one. */
  readonly keySelectors: readonly (KeySelector | undefined)[]
  readonly inputs: readonly EdgeId[]
  readonly outputs: readonly EdgeId[]
}

export interface JobEdge {
  readonly id: EdgeId
  readonly source: VertexId
  readonly target: VertexId
  /** Which of the target's inputs it feeds: 0, or 1 for the second of a connected operator. */
  readonly input: 0 | 1
  readonly partitioning: Partitioning
  readonly keySelector: KeySelector | undefined
  readonly type: TypeInfo<unknown>
}

export interface JobGraph {
  readonly name: string
  readonly maxParallelism: number
  /** Topological order. */
  readonly vertices: readonly JobVertex[]
  readonly edges: readonly JobEdge[]
  /** Over uids, edges, partitionings, schema fingerprints, parallelism and args; not over code. 32 hex digits. */
  readonly hash: string
  readonly settings: JobSettings
}

/** at-least-once: checkpoints block no channel, and records behind a barrier may be in the snapshot and come again (rule 13). */
export type CheckpointMode = 'exactly-once' | 'at-least-once'

export type OnUnknownCommit = 'stop' | 'assume committed'

export interface JobSettings {
  readonly checkpointIntervalMs: number | undefined
  readonly checkpointMode: CheckpointMode
  /** Of checkpoints when the job is cancelled; savepoints always stay. */
  readonly onCancellation: 'retain' | 'delete'
  readonly checkpointTimeoutMs: number
  readonly minPauseMs: number
  readonly tolerableFailures: number
  readonly retained: number
  readonly restartStrategy: RestartStrategySettings
  readonly failoverStrategy: 'region' | 'full'
  readonly autoUid: boolean
  readonly bufferTimeoutMs: number
  readonly freezeRecords: boolean
  /** Deadline of commits before the job stops and asks (rule 23). */
  readonly commitDeadlineMs: number
  /** What to do about a permitted transaction that the external system does not know (rule 23). */
  readonly onUnknownCommit: OnUnknownCommit
  /** Deadline of a channel without progress on the wire (rule 10). */
  readonly channelDeadlineMs: number
}

export type RestartStrategySettings =
  | { readonly type: 'none' }
  | { readonly type: 'fixed-delay'; readonly attempts: number; readonly delayMs: number }
  | {
      readonly type: 'failure-rate'
      readonly failuresPerInterval: number
      readonly intervalMs: number
      readonly delayMs: number
    }
  | {
      readonly type: 'exponential-delay'
      readonly initialDelayMs: number
      readonly maxDelayMs: number
      readonly multiplier: number
      readonly resetAfterMs: number
      readonly jitter: number
    }
