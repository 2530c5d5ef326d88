// Messages between coordinator and slots. They go over a link that numbers, acknowledges and repeats them (link.ts), so
// each is delivered once and in order per pair, or the peer is lost. Plain data: structured-cloneable.

import type { Attempt, CheckpointId, Incarnation, SlotId, TaskId } from '../base/ids.ts'
import type { Committable, OperatorStateSnapshot, KeyedSnapshot, SubtaskSnapshot } from '../checkpoint/contract.ts'
import type { ChannelPeer } from '../network/contract.ts'
import type { Halt, SnapshotKind } from '../record/element.ts'

/** Version of this vocabulary; a peer with another is refused. */
export const CONTROL_VERSION = 1

/** A subtask's share of a restore point. */
export interface RestoredSubtask {
  /** By uid. `keyed`: every snapshot whose key groups intersect the subtask's range. */
  readonly operators: Readonly<Record<string, RestoredOperator>>
}

export interface RestoredOperator {
  readonly keyed?: readonly KeyedSnapshot[]
  readonly operatorState?: Readonly<Record<string, readonly OperatorStateShare[]>>
  readonly committables?: readonly Committable[]
}

/** Of a list the items [from, to). */
export interface OperatorStateShare extends OperatorStateSnapshot {
  readonly from: number
  readonly to: number
}

export interface TaskDeployment {
  readonly task: TaskId
  readonly attempt: Attempt
  /** The channels to this subtask's consumers and from its producers, with the attempts at the other end. */
  readonly outputs: readonly ChannelPeer[]
  readonly inputs: readonly ChannelPeer[]
  readonly restored: RestoredSubtask | undefined
  /** Checkpoint ids ≤ this belong to an earlier life: their barriers and triggers are ignored. */
  readonly newestKnownCheckpoint: CheckpointId
  /** The vertex was wholly finished in the restore point: re-emit end of data, run nothing (rule 19). */
  readonly finishedBefore: boolean
}

export type ToSlot =
  | { readonly type: 'deploy'; readonly tasks: readonly TaskDeployment[] }
  | {
      readonly type: 'trigger'
      readonly id: CheckpointId
      readonly kind: SnapshotKind
      readonly halt?: Halt
      readonly triggeredAtMs: number
      readonly task: TaskId
      readonly attempt: Attempt
    }
  | { readonly type: 'abort'; readonly id: CheckpointId }
  | { readonly type: 'complete'; readonly id: CheckpointId }
  /** Splits and "no more" share the order of the triggers (rule 20). Splits are encoded by the source's splitCodec. */
  | {
      readonly type: 'assign'
      readonly task: TaskId
      readonly attempt: Attempt
      readonly splits: readonly Uint8Array[]
      readonly noMore: boolean
    }
  /** Whether splits wait in the enumerator: readers without splits are then not idle. */
  | { readonly type: 'splitsWait'; readonly task: TaskId; readonly attempt: Attempt; readonly waiting: boolean }

export type FromSlot =
  | { readonly type: 'registered'; readonly version: number; readonly slot: SlotId; readonly graphHash: string }
  | { readonly type: 'running'; readonly task: TaskId; readonly attempt: Attempt }
  | {
      readonly type: 'acknowledged'
      readonly id: CheckpointId
      readonly task: TaskId
      readonly attempt: Attempt
      readonly snapshot: SubtaskSnapshot
    }
  | {
      readonly type: 'declined'
      readonly id: CheckpointId
      readonly task: TaskId
      readonly attempt: Attempt
      readonly reason: string
    }
  /** With the final state; from now on the coordinator acknowledges for it (rule 19). */
  | { readonly type: 'finished'; readonly task: TaskId; readonly attempt: Attempt; readonly snapshot: SubtaskSnapshot }
  /** Only a checkpoint that starts from now on lets this subtask finish (a two-phase sink at its end of data). */
  | { readonly type: 'waitsForCheckpoint'; readonly task: TaskId; readonly attempt: Attempt }
  | {
      readonly type: 'failed'
      readonly task: TaskId | undefined
      readonly attempt: Attempt | undefined
      readonly error: SerializedError
    }
  | { readonly type: 'requestSplit'; readonly task: TaskId; readonly attempt: Attempt }
  | { readonly type: 'splitFinished'; readonly task: TaskId; readonly attempt: Attempt; readonly splitId: string }
  /** All transactions of checkpoints ≤ id of this subtask are committed. */
  | { readonly type: 'committed'; readonly id: CheckpointId; readonly task: TaskId; readonly attempt: Attempt }
  | { readonly type: 'report'; readonly tasks: readonly TaskReport[] }

export interface TaskReport {
  readonly task: TaskId
  readonly attempt: Attempt
  readonly metrics: Readonly<Record<string, number>>
}

export interface SerializedError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code: string | undefined
  /** Whether a restart may help; false: the job fails at once (a wrong graph, an incompatible codec). */
  readonly retry: boolean
}

/** One side of a link between coordinator and one slot. */
export interface ControlLink<Out, In> {
  send(message: Out): void
  onMessage(callback: (message: In) => void): void
  /** The peer did not acknowledge for the deadline, or its thread ended. Called once. */
  onLost(callback: (reason: string) => void): void
  close(): void
}

/** Starts and ends slots' threads; the outermost edge behind it. */
export interface SlotProvider {
  /** A fresh slot; its first message is 'registered'. */
  start(slot: SlotId, incarnation: Incarnation): ControlLink<ToSlot, FromSlot>
  /** Ends it at once, whatever it does. Resolves when it can no longer send anything. */
  terminate(slot: SlotId): Promise<void>
  /** No slot will be started any more: what was kept ready for that ends. */
  close?(): Promise<void>
}
