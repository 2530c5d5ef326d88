// HEAD: the job's only pointer (rule 1). The shape; transitions are pure functions in head.ts, the swap workflow is head-keeper.ts.

import type { CheckpointId, Incarnation, JobId, RequestId, SlotId, Start } from '../base/ids.ts'
import type { ObjectKey } from './contract.ts'

/** Readers accept this version and the one before, and keep fields they do not know. */
export const HEAD_FORMAT = 1

export interface ManifestRef {
  readonly id: CheckpointId
  readonly kind: 'checkpoint' | 'savepoint'
  /** Of the manifest object. Absolute when it lies outside of the job's store: then it is somebody else's, and only read. */
  readonly path: ObjectKey
  /** The start that made it. */
  readonly start: Start
  readonly completedAtMs: number
  readonly bytes: number
  /** A savepoint taken with drain: refused as a restore point unless asked for. */
  readonly drained?: boolean
}

/** Where a start began. empty is a restore point too. */
export type RestorePoint = { readonly kind: 'empty' } | { readonly kind: 'manifest'; readonly manifest: ManifestRef }

export type HeadEnd =
  | { readonly kind: 'none' }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'stopped'; readonly savepoint: ManifestRef }
  /** `drained`: with this savepoint, and no earlier checkpoint may be gone back to: what came after it is committed. */
  | { readonly kind: 'finished'; readonly drained?: ManifestRef }
  | { readonly kind: 'failed'; readonly reason: string }
  /** `savepoint`: it was stopped or drained with this one before, and what came after every checkpoint is committed by that. */
  | { readonly kind: 'cancelled'; readonly savepoint?: ManifestRef }

export interface Pin {
  readonly manifest: ManifestRef
  readonly reason: 'upgrade' | 'unconfirmed' | 'savepoint being read' | 'restore point' | 'rollback'
}

export interface SavepointRequest {
  readonly request: RequestId
  /** rescale: a checkpoint with a stop barrier, and the same start goes on at `parallelism` (rule 25). */
  readonly mode: 'savepoint' | 'stop' | 'drain' | 'rescale'
  /** Of a rescale. */
  readonly parallelism?: number
}

export interface SavepointResult {
  readonly request: RequestId
  readonly outcome: 'completed' | 'failed'
  readonly manifest?: ManifestRef
  readonly detail: string
  /** What it was asked for, and in which start: another use of its name is no repetition. undefined: written by a version that did not tell. */
  readonly start?: Start
  readonly mode?: SavepointRequest['mode']
  /** Of a rescale. */
  readonly parallelism?: number
}

export interface Head {
  readonly format: number
  readonly job: JobId
  /** Random: no two writes are ever equal. */
  readonly writer: string
  readonly incarnation: Incarnation
  readonly start: Start
  readonly restoredFrom: RestorePoint
  readonly end: HeadEnd
  /** Oldest first. */
  readonly retained: readonly ManifestRef[]
  /** The newest manifest or savepoint whose permitted commits are not yet confirmed. */
  readonly unconfirmed: ManifestRef | undefined
  /** Dropped by a completing swap; may be deleted; never a restore point (rule 7). */
  readonly discarding: readonly ManifestRef[]
  readonly pins: readonly Pin[]
  /** Every id ≤ this is reserved or used; the next block begins after it (rule 6). */
  readonly reservedIds: number
  readonly parallelism: number
  /** The parallelism of the last rescale in this start, which wins over what it was started with; undefined: none. */
  readonly rescaledTo?: number | undefined
  /** Slots whose subtasks may be adopted: each is named here before it starts, and the life before it is not any more (rule 25). */
  readonly deployed?: readonly SlotId[] | undefined
  readonly maxParallelism: number
  readonly restarts: number
  readonly savepointRequests: readonly SavepointRequest[]
  /** The last 100. */
  readonly savepointResults: readonly SavepointResult[]
}
