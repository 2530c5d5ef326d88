// What a coordinator is given, what may be watched of it, and how a job ends.

import type { SnapshotKind } from '../record/element.ts'
import type { Environment } from '../base/environment.ts'
import type { CheckpointId, JobId, Start, TaskId } from '../base/ids.ts'
import type { SnapshotReader, SnapshotWriters } from '../checkpoint/contract.ts'
import type { AbortReason, CollectedSnapshot } from '../checkpoint/core-contract.ts'
import type { SlotProvider } from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import type { FileSystem, ForeignObjects, HeadStore, ObjectStore, SavepointStore } from '../storage/contract.ts'
import type { Head, ManifestRef, RestorePoint } from '../storage/head-contract.ts'

export interface JobCoordinatorOptions {
  readonly graph: JobGraph
  /** The graph at another parallelism of the job, for a rescale; throws as building it does. Absent: the job cannot be rescaled. */
  readonly graphAt?: (parallelism: number) => JobGraph
  readonly job: JobId
  /** undefined: the local rule, which goes on with what is there (rule 28). */
  readonly start: Start | undefined
  readonly environment: Environment
  readonly files: FileSystem
  readonly store: ObjectStore
  /** A place of their own for savepoints, which `foreign` reads too; absent: beside the checkpoints. */
  readonly savepoints?: SavepointStore | undefined
  readonly head: HeadStore
  readonly slots: SlotProvider
  readonly snapshotWriters: SnapshotWriters
  readonly snapshotReader: SnapshotReader
  /** Reads restore points outside of `store`; `snapshotReader` must read them too. undefined: none can be read. */
  readonly foreign?: ForeignObjects
  /** undefined: HEAD's restore point, and nothing of it dropped. */
  readonly restore?: RestoreRequest | undefined
  readonly observer?: CoordinatorObserver
}

/** What whoever starts the job says about where it begins. */
export interface RestoreRequest {
  /** Makes a new start that begins there; `path` is absolute when it lies outside of this job's store. */
  readonly from?: ManifestRef | undefined
  /** A new start begins from nothing (rule 2); what was there before stays for a rollback. Not with `from`. */
  readonly empty?: boolean
  /** Whoever starts it has seen its HEAD: where there is none nothing begins. */
  readonly goesOn?: boolean
  /** HEAD of the job that made it shows that its transactions are committed; else they are committed again, which is safe. */
  readonly committed?: boolean
  /** State that no operator of the graph takes is dropped, once; else it is refused. */
  readonly allowNonRestoredState: boolean
  /** A savepoint that was taken with drain is refused otherwise: its event time has ended. */
  readonly allowDrained: boolean
}

/** How a request for a savepoint, or to rescale in place, was answered; the same for each repetition of it. */
export type SavepointAnswer =
  /** `manifest`: the savepoint, or where the new size began. */
  | { readonly outcome: 'completed'; readonly manifest: ManifestRef }
  | { readonly outcome: 'failed'; readonly detail: string }
  /** The job is over, and was not stopped by this request: it takes none any more. */
  | { readonly outcome: 'ended'; readonly detail: string }

export interface CompletedSnapshot {
  readonly manifest: ManifestRef
  readonly collected: CollectedSnapshot
  readonly durationMs: number
}

export interface FailedSnapshot {
  readonly id: CheckpointId
  readonly kind: SnapshotKind
  readonly reason: AbortReason
  readonly detail: string
}

export interface ReportedFailure {
  readonly message: string
  /** MR-…; absent: of no table, such as the job's own errors. */
  readonly code?: string | undefined
  /** Subtasks that failed; of a lost slot, all that it ran. Absent: unknown. */
  readonly failed?: readonly TaskId[]
  /** Names of the workers in whose slots they ran, as far as those are still there. Absent: unknown, or the slots are threads of this process. */
  readonly workers?: readonly string[] | undefined
}

export interface ReportedRestart extends ReportedFailure {
  readonly inMs: number
  /** How many subtasks restart. */
  readonly tasks: number
}

/** What a terminal or a test may watch. */
export interface CoordinatorObserver {
  began?(head: Head, restorePoint: RestorePoint): void
  /** Subtasks run on that an earlier incarnation deployed; `restarting` of the job do not. */
  adopted?(adoption: { readonly tasks: number; readonly restarting: number }): void
  /** All subtasks stand still and begin again at this parallelism. */
  rescaled?(parallelism: number): void
  running?(): void
  /** Savepoints too (`manifest.kind`). */
  checkpointCompleted?(completed: CompletedSnapshot): void
  /** Declined, expired, storage …: of any kind of snapshot. */
  checkpointFailed?(failed: FailedSnapshot): void
  restarting?(failure: ReportedRestart): void
  /** The failure after which nothing restarts. */
  gaveUp?(failure: ReportedFailure): void
  /** The tasks are gone, and what HEAD permits is committed as far as it can be. */
  ended?(outcome: JobOutcome): void
}

export type JobOutcome =
  | { readonly kind: 'finished' }
  | { readonly kind: 'suspended' }
  /** With drain the job has finished, and this outcome says so with the savepoint. */
  | { readonly kind: 'stopped'; readonly savepoint: ManifestRef }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Another coordinator owns the job. */
  | { readonly kind: 'fenced'; readonly head: Head }
  /** Somebody else ended this start, before or while it ran. HEAD at this very start: permitted commits were carried out. At a later one: they are its own. */
  | { readonly kind: 'ended'; readonly head: Head }
