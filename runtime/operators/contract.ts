// A StreamOperator: one step of a chain. Synchronous per record; no promise per record.

import type { Environment } from '../base/environment.ts'
import type { Attempt, CheckpointId, JobId, SubtaskIndex, VertexId } from '../base/ids.ts'
import type { MetricGroup } from '../base/metrics.ts'
import type { Committable, Redistribution } from '../checkpoint/contract.ts'
import type { CodecDescription } from '../record/contract.ts'
import type { DueTimer, KeyedStateBackend } from '../state/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import type { Sink, Source, WatermarkStrategy } from '../connectors/contract.ts'
import type { UserMetrics } from './user-metrics-contract.ts'

export interface Output<T> {
  emit(value: T, timestamp: number): void
  /** To the side output of that name; dropped when nobody reads it. */
  emitTo(tag: string, value: unknown, timestamp: number): void
}

export interface TaskInfo {
  readonly job: JobId
  readonly vertex: VertexId
  readonly vertexName: string
  readonly subtask: SubtaskIndex
  readonly parallelism: number
  readonly maxParallelism: number
  readonly attempt: Attempt
}

export interface RestoredOperatorState {
  readonly items: readonly { readonly bytes: Uint8Array; readonly codec: CodecDescription }[]
}

/** An operator with records in flight (an async one) puts watermarks out itself, behind the results that they follow. */
export interface HeldWatermarks {
  /** Forwards event time behind everything emitted so far. */
  forward(watermark: number): void
}

export interface OperatorContext {
  readonly task: TaskInfo
  readonly uid: string
  readonly name: string
  readonly environment: Environment
  readonly files: FileSystem
  readonly metrics: MetricGroup
  /** The job's own, of this operator. */
  readonly userMetrics: UserMetrics
  /** Set for the operator that follows a keyBy; it is always the first of its chain. */
  readonly keyed: KeyedStateBackend | undefined
  /** By state name: this subtask's share, already redistributed. Empty map: nothing restored. */
  readonly restored: ReadonlyMap<string, RestoredOperatorState>
  /** Pre-committed transactions in the restore point that fell to this subtask: the permit to commit them is given (rule 22); before any new record. */
  readonly restoredCommittables: readonly Committable[]
  /** Checkpoint ids ≤ this belong to an earlier life; 0: the job has taken none. */
  readonly newestKnownCheckpoint: CheckpointId
  /** The operator's current event time; MIN_WATERMARK before any. */
  currentWatermark(): number
  /** For operators with `holdsWatermarks`. */
  readonly watermarks: HeldWatermarks
  /** Runs `mail` on this task's thread between records. After the task has ended it is dropped. */
  post(mail: () => void): void
  /** Fails the task with this error; for errors that arise outside a call (rule 22: surfaces before the acknowledgement). */
  fail(error: unknown): void
}

/** What an operator adds to the snapshot besides keyed state. */
export interface OperatorStatePart {
  readonly operatorState?: Readonly<
    Record<
      string,
      {
        readonly redistribution: Redistribution
        readonly codec: CodecDescription
        readonly items: readonly Uint8Array[]
      }
    >
  >
  readonly committables?: readonly Committable[]
}

export interface StreamOperator<In = unknown, Out = unknown> {
  /**
   * Once, before anything of the chain opens: commits what the restore point holds, whose permit is given (rule 22). How long that may take is
   * the commits' own deadline, at which the job stops and asks; it is no part of the time to open.
   */
  commitRestored?(context: OperatorContext): Promise<void>
  /** Restores and prepares. Outputs may be used from the first process() on. */
  open(context: OperatorContext, output: Output<Out>): void | Promise<void>
  process(value: In, timestamp: number): void
  /** A record of the second input. Only a chain's first operator has one. */
  processSecond?(value: unknown, timestamp: number): void
  /** A timer of the keyed backend; the key is set. */
  onTimer?(timer: DueTimer): void
  /** After all timers up to it have fired, before it is forwarded. */
  onWatermark?(watermark: number): void
  /** `onWatermark` forwards through `context.watermarks`, now or later; else the chain forwards when it returns. */
  readonly holdsWatermarks?: true
  /** False: give it no more records until `wake`; undefined: it always has room. Asked after each record. */
  readonly ready?: boolean
  /** Records or watermarks are in flight: idleness waits behind them, and so does the end. Their arrival is mail (`post`). */
  readonly pending?: boolean
  /** All inputs have ended and the last watermark has passed: emit what is left. Followers finish once nothing is `pending`. */
  finish?(): void
  /** The sync part is the call, the async part the promise. All writes before it must be durable or have thrown when it resolves. */
  snapshot?(checkpoint: CheckpointId): OperatorStatePart | Promise<OperatorStatePart>
  /** Checkpoint `checkpoint` and all before it are permitted to commit. Resolves when committed; may be called again. */
  complete?(checkpoint: CheckpointId): Promise<void>
  close?(): void | Promise<void>
}

/** Makes a fresh operator for each attempt. */
export type OperatorFactory =
  | {
      readonly kind: 'operator'
      readonly create: () => StreamOperator
      /** Whether the task must stay until its last transactions are committed (two-phase sinks). */
      readonly twoPhase: boolean
      /** For two-phase sinks: commits without the writer (rule 23). */
      readonly sink?: Sink<unknown>
    }
  | {
      readonly kind: 'source'
      readonly source: Source<unknown, unknown, unknown>
      readonly watermarks: WatermarkStrategy<unknown>
    }
