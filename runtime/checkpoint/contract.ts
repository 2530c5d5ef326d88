// What a snapshot consists of: the shapes that tasks acknowledge with, the coordinator keeps, and the manifest stores.

import type { CheckpointId, KeyGroup } from '../base/ids.ts'
import type { CodecDescription } from '../record/contract.ts'
import type { SnapshotKind } from '../record/element.ts'

/** Where bytes lie. Object keys are relative to the job's prefix inside its own manifests, absolute (`scheme:`) outside (rule 18). */
export type StateHandle =
  | {
      readonly kind: 'object'
      readonly object: string
      readonly offset: number
      readonly length: number
      readonly crc: number
    }
  | { readonly kind: 'inline'; readonly base64: string; readonly crc: number }

/** One named keyed state as it was written. */
export interface KeyedStateDescription {
  readonly name: string
  readonly kind: 'value' | 'list' | 'map' | 'reducing' | 'aggregating' | 'timers'
  readonly codecs: {
    readonly key: CodecDescription
    readonly value?: CodecDescription
    readonly mapKey?: CodecDescription
  }
  /** Of a state with a time to live, ms: each entry carries the time of its last refresh (segment.ts). */
  readonly ttlMs?: number
  /** Of timers: what those that are held stand for. Absent: none is held, or an earlier version wrote them. */
  readonly timerMeaning?: string
}

/** The block of one key group: one self-contained, CRC'd piece of a segment (segment.ts). */
export interface KeyGroupHandle {
  readonly keyGroup: KeyGroup
  /** The subtask's watermark at the snapshot (rule 27); empty groups store theirs too. */
  readonly watermark: number
  /** undefined: the group is empty. */
  readonly handle?: StateHandle
  /** Room for incremental heap checkpoints: older blocks this one builds on, oldest first. */
  readonly base?: readonly StateHandle[]
}

export interface KeyedSnapshot {
  readonly format: number
  readonly states: readonly KeyedStateDescription[]
  /** Ascending; exactly the subtask's range. */
  readonly groups: readonly KeyGroupHandle[]
}

/** How operator state is dealt out on restore. split: items spread over subtasks; union: all to all; broadcast: one copy to all. */
export type Redistribution = 'split' | 'union' | 'broadcast'

export interface OperatorStateSnapshot {
  readonly redistribution: Redistribution
  readonly codec: CodecDescription
  /** A list of length-prefixed items. */
  readonly items: StateHandle
  readonly count: number
}

/** A pre-committed transaction: opaque to all but its sink's committer. */
export interface Committable {
  /** The checkpoint whose barrier closed it. */
  readonly checkpoint: CheckpointId
  /** The transaction's name (rule 24). */
  readonly transaction: string
  /** JSON-able payload for the committer. */
  readonly payload: unknown
}

export interface OperatorSnapshot {
  readonly keyed?: KeyedSnapshot
  readonly operatorState?: Readonly<Record<string, OperatorStateSnapshot>>
  readonly committables?: readonly Committable[]
}

/** What one subtask acknowledges with. */
export interface SubtaskSnapshot {
  /** By uid: every operator of the chain that holds anything. */
  readonly operators: Readonly<Record<string, OperatorSnapshot>>
  /** The subtask had finished (rule 19): this is its final state. */
  readonly finished: boolean
  /** Room for unaligned checkpoints: channel places and in-flight data. */
  readonly channels?: readonly never[]
  readonly bytes: number
  readonly syncMs: number
  readonly asyncMs: number
  readonly alignmentMs: number
  /** From the coordinator's trigger to the first barrier, by the wall clocks of two hosts: for people only. Absent: unknown. */
  readonly startDelayMs?: number
}

/** What one `write` takes over before it returns. */
export const COPIED_BYTES_MAX = 8 * 1024 * 1024

/** Uploads bytes of snapshots; many callers share an object (rule 18). */
export interface SnapshotWriter {
  /**
   * Resolves when durable; rejects with MR-S… of the store or MR-C53 after a deadline. Small bytes come back inline. Up to COPIED_BYTES_MAX are copied before this returns, and may be used again at
   * once; more must not be changed before it has settled, nor after a failure: they may still be on their way.
   */
  write(checkpoint: CheckpointId, bytes: Uint8Array): Promise<StateHandle>
}

/** A savepoint lies in a folder of its own, so that it can be copied. */
export interface SnapshotWriters {
  ofKind(kind: SnapshotKind): SnapshotWriter
}

export interface SnapshotReader {
  /** Throws MR-C… when the object is missing, short, or its CRC differs; retryable where it may pass. */
  read(handle: StateHandle): Promise<Uint8Array>
}
