// Sources (enumerator and reader) and sinks (writer and committer). protocol.md 20, 22-24.

import type { Environment } from '../base/environment.ts'
import type { CheckpointId, JobId, SubtaskIndex } from '../base/ids.ts'
import type { MetricGroup } from '../base/metrics.ts'
import type { Committable, Redistribution } from '../checkpoint/contract.ts'
import type { Codec, CodecDescription, TypeInfo } from '../record/contract.ts'
import type { RestoredOperatorState, TaskInfo } from '../operators/contract.ts'
import type { FileSystem } from '../storage/contract.ts'

// ---- sources ----

/** Name of the operator state in which a source's subtasks keep their splits. */
export const SPLITS_STATE = 'splits'

export interface Source<T, Split, EnumeratorState> {
  readonly name: string
  readonly bounded: boolean
  readonly output: TypeInfo<T>
  readonly splitCodec: Codec<Split>
  readonly enumeratorCodec: Codec<EnumeratorState>
  /** Names a split for ever: the same for a split with another position. */
  splitId(split: Split): string
  /** Throws MR-N… for a configuration that cannot work. `restored` undefined: a first start. */
  createEnumerator(
    context: EnumeratorContext<Split>,
    restored: EnumeratorState | undefined,
  ): SplitEnumerator<Split, EnumeratorState>
  createReader(context: ReaderContext): SourceReader<T, Split>
}

export interface EnumeratorContext<Split> {
  readonly environment: Environment
  readonly files: FileSystem
  readonly parallelism: number
  /** In order with the triggers of that reader (rule 20). */
  assign(subtask: SubtaskIndex, splits: readonly Split[]): void
  /** This reader will get no more splits (unless some are given back). */
  signalNoMoreSplits(subtask: SubtaskIndex): void
  fail(error: unknown): void
}

/** Runs in the coordinator; one turn at a time. */
export interface SplitEnumerator<Split, State> {
  start(): Promise<void>
  /** A reader has (again) started; it will ask. */
  addReader(subtask: SubtaskIndex): void
  /** The reader has nothing to read and wants a split. Answered by assign, signalNoMoreSplits, or later. */
  requestSplit(subtask: SubtaskIndex): void
  /** Splits of a failed reader that were assigned after the restored checkpoint: they go out first. */
  addSplitsBack(splits: readonly Split[], subtask: SubtaskIndex): void
  /** Sync: in the same turn as the triggers. */
  snapshot(checkpoint: CheckpointId): State
  /** Whether splits wait to be assigned or may yet be found: readers without a split are then not idle. */
  readonly splitsWait: boolean
  /** For adoption: readers report the splits they own, and those finished since the last confirmed checkpoint. */
  reconcile(owned: ReadonlyMap<SubtaskIndex, readonly Split[]>, finished: readonly string[]): void
  close(): void
}

export interface ReaderContext {
  readonly environment: Environment
  readonly files: FileSystem
  readonly task: TaskInfo
  readonly metrics: MetricGroup
  /** Call (any number of times) when poll may have something after it answered 'nothing'. */
  wake(): void
  /** The reader wants another split. */
  requestSplit(): void
  /** The split was read to its end. */
  splitFinished(splitId: string): void
  fail(error: unknown): void
}

/** `split` selects the watermark generator; emitted values are validated already. */
export interface SourceOutput<T> {
  emit(value: T, timestamp: number, splitId: string): void
  /** To a side output of the source operator, e.g. malformed records. */
  emitTo(tag: string, value: unknown, timestamp: number): void
}

export type PollStatus = 'more' | 'nothing' | 'end'

/** Sync; owns splits with their positions. */
export interface SourceReader<T, Split> {
  /** Before any poll, once all subtasks of the job have restored. Splits may have been added before, and "no more" said. */
  start(): void
  addSplits(splits: readonly Split[]): void
  noMoreSplits(): void
  /** Emits at most one record (or skips one). nothing: wait for wake(). end: all splits are read and noMoreSplits was said. */
  poll(output: SourceOutput<T>): PollStatus
  /** Owned splits with their present positions: the next record to be emitted is the first not in the checkpoint. */
  snapshot(checkpoint: CheckpointId): readonly Split[]
  /** Splits owned, started or not; a reader that owns none and waits for the enumerator is no idle reader while splits wait. */
  ownedSplits(): readonly string[]
  /** A split with data fetched but not emitted, or whose fetch is running, is not idle. */
  hasPending(splitId: string): boolean
  close(): void | Promise<void>
}

// ---- watermarks ----

export interface WatermarkGenerator {
  /** Called per record of one split. */
  onRecord(timestamp: number): void
  /** The split's current watermark; MIN_WATERMARK before any. */
  current(): number
}

export interface WatermarkStrategy<T> {
  /** Event time of a record, ms; undefined: the source's own timestamp is kept. */
  readonly timestampOf?: (value: T, sourceTimestamp: number) => number
  readonly createGenerator: (() => WatermarkGenerator) | undefined
  /** A split that had the chance to emit and did not for this long is idle. */
  readonly idleAfterMs?: number
}

// ---- sinks ----

/** Plain sinks have no committer: at least once. Two-phase sinks: exact. */
export interface Sink<T> {
  readonly name: string
  /** Throws MR-N… for a configuration that cannot work. */
  createWriter(context: SinkContext): SinkWriter<T>
  readonly createCommitter?: (context: CommitterContext) => Committer
}

export interface SinkContext {
  readonly environment: Environment
  readonly files: FileSystem
  readonly task: TaskInfo
  readonly uid: string
  /**
   * Barriers of this attempt have larger ids; 0: the job has taken none. A name that transactionName makes carries the newest checkpoint
   * that is known when the transaction begins, first this one: of a job whose coordinator is gone a sweep takes what an older one names (rule 24).
   */
  readonly newestKnownCheckpoint: CheckpointId
  readonly metrics: MetricGroup
  readonly restored: RestoredOperatorState
  /** For async write errors: surfaces before the acknowledgement (B22). */
  fail(error: unknown): void
  /** Call (any number of times) when the writer may be `ready` again. */
  wake(): void
}

export interface SinkWriter<T> {
  open(): Promise<void>
  readonly write: (value: T, timestamp: number) => void
  /** False: give it no more records until `wake`; asked after each record, and a record that led to several may bring more. Undefined: it always has room. */
  readonly ready?: boolean
  /** The call itself cuts the transaction: later writes belong to the next. Resolves when all writes before it are durable; rejects if any failed. Plain sinks resolve to []. */
  prepareCommit(checkpoint: CheckpointId, endOfInput: boolean): Promise<readonly PreparedTransaction[]>
  /** Operator state of the writer, if any; same turn as prepareCommit. */
  readonly snapshot?: (checkpoint: CheckpointId) => {
    readonly redistribution: Redistribution
    readonly codec: CodecDescription
    readonly items: readonly Uint8Array[]
  }
  close(): void | Promise<void>
}

export interface PreparedTransaction {
  readonly transaction: string
  readonly payload: unknown
}

export interface CommitterContext {
  readonly environment: Environment
  readonly files: FileSystem
  readonly uid: string
  readonly job: JobId
}

/** Runs in the sink's subtask or, without its writer, in a coordinator or admin command (rule 23). */
export interface Committer {
  /** Idempotent by transaction name. Resolves when all are committed. Throws a retryable error, or MR-N… 'unknown transaction' when the external system has forgotten it. */
  commit(committables: readonly Committable[]): Promise<void>
  /** Names of this job's transactions of this sink that exist and are not committed (rule 24's sweep). */
  list(): Promise<readonly string[]>
  /** Idempotent. */
  abort(transactions: readonly string[]): Promise<void>
}
