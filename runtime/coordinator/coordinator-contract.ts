// What a coordinator is given, what may be watched of it, and how a job ends.

import type { Environment } from '../base/environment.ts'
import type { JobId, Start } from '../base/ids.ts'
import type { SnapshotReader, SnapshotWriter } from '../checkpoint/contract.ts'
import type { CollectedSnapshot } from '../checkpoint/core-contract.ts'
import type { SlotProvider } from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import type { FileSystem, HeadStore, ObjectStore } from '../storage/contract.ts'
import type { Head, ManifestRef, RestorePoint } from '../storage/head-contract.ts'

export interface JobCoordinatorOptions {
  readonly graph: JobGraph
  readonly job: JobId
  /** undefined: the local rule, which goes on with what is there (rule 28). */
  readonly start: Start | undefined
  readonly environment: Environment
  readonly files: FileSystem
  readonly store: ObjectStore
  readonly head: HeadStore
  readonly slots: SlotProvider
  readonly snapshotWriter: SnapshotWriter
  readonly snapshotReader: SnapshotReader
  readonly observer?: CoordinatorObserver
}

export interface CompletedSnapshot {
  readonly manifest: ManifestRef
  readonly collected: CollectedSnapshot
  readonly durationMs: number
}

/** What a terminal or a test may watch. */
export interface CoordinatorObserver {
  began?(head: Head, restorePoint: RestorePoint): void
  running?(): void
  checkpointCompleted?(completed: CompletedSnapshot): void
  restarting?(failure: { readonly message: string; readonly inMs: number; readonly tasks: number }): void
}

export type JobOutcome =
  | { readonly kind: 'finished' }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Another coordinator owns the job. */
  | { readonly kind: 'fenced'; readonly head: Head }
  /** Somebody else ended this start, before or while it ran; permitted commits were carried out. */
  | { readonly kind: 'ended'; readonly head: Head }
