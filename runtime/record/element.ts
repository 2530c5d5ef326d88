// What travels along an edge: batches of records, and the events that stand between them.

import type { CheckpointId } from '../base/ids.ts'

/** A record without event time. Event times are integer milliseconds since the epoch. */
export const NO_TIMESTAMP = Number.MIN_SAFE_INTEGER
/** The watermark before any; smaller than every event time. */
export const MIN_WATERMARK = Number.MIN_SAFE_INTEGER
/** The watermark after the last record of a bounded input. */
export const MAX_WATERMARK = Number.MAX_SAFE_INTEGER

export type SnapshotKind = 'checkpoint' | 'savepoint'

/** What becomes of a task behind a stop barrier (rule 25): it reads nothing more; with `drain` all operators finish first. */
export type Halt = 'stop' | 'drain'

export interface Barrier {
  readonly id: CheckpointId
  readonly kind: SnapshotKind
  /** Wall clock of the coordinator at the trigger, ms; for people only. */
  readonly triggeredAtMs: number
  /** Milliseconds of alignment already spent upstream. No wall clock is compared between hosts. */
  readonly alignedMs: number
  /** Set for a savepoint to stop with. */
  readonly halt?: Halt
}

/** An event's place in the sequence decides exactness (rule 11). */
export type StreamEvent =
  | { readonly kind: 'watermark'; readonly timestamp: number }
  | { readonly kind: 'status'; readonly idle: boolean }
  | { readonly kind: 'barrier'; readonly barrier: Barrier }
  | { readonly kind: 'end' }

/** Records in order. `timestamps[i]` belongs to `values[i]`; both have the same length ≥ 1. Not to be changed by the receiver. */
export interface RecordBatch {
  readonly kind: 'records'
  readonly values: readonly unknown[]
  readonly timestamps: readonly number[]
}

export type ChannelItem = RecordBatch | StreamEvent
