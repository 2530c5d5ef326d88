// Messages between coordinator and slots. They go over a link that numbers, acknowledges and repeats them (link.ts), so
// each is delivered once and in order per pair, or the peer is lost. Plain data: structured-cloneable.

import type { Attempt, CheckpointId, Incarnation, SlotId, TaskId } from '../base/ids.ts'
import type { Committable, OperatorStateSnapshot, KeyedSnapshot, SubtaskSnapshot } from '../checkpoint/contract.ts'
import type { ChannelPeer } from '../network/contract.ts'
import type { Halt, SnapshotKind } from '../record/element.ts'

/** Version of this vocabulary; a peer with another is refused. */
export const CONTROL_VERSION = 2

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

/** What a slot that outlived its coordinator says of a subtask that it runs or ran (rule 25). */
export interface SurvivingTask {
  readonly task: TaskId
  readonly attempt: Attempt
  /** restoring: it cannot be adopted. running: also one that waits for `begin`. halted: it stands behind a stop barrier. */
  readonly status: 'restoring' | 'running' | 'halted' | 'finished'
  /** The neighbours' attempts that it is connected to. */
  readonly outputs: readonly ChannelPeer[]
  readonly inputs: readonly ChannelPeer[]
  /** Of a finished one: the final state (rule 19). */
  readonly final: SubtaskSnapshot | undefined
  /** Only a checkpoint that starts from now on lets it finish. */
  readonly waitsForCheckpoint: boolean
  /** Of a source's reader, for its enumerator's reconcile (rule 20); undefined: no source. */
  readonly splits: SurvivingSplits | undefined
}

export interface SurvivingSplits {
  /** Owned with their present positions, encoded by the source's splitCodec. */
  readonly owned: readonly Uint8Array[]
  /** Read to their end since the newest checkpoint that is known as completed. */
  readonly finished: readonly string[]
  /** It asked for a split and has got none. */
  readonly asks: boolean
}

export type ToSlot =
  | { readonly type: 'deploy'; readonly tasks: readonly TaskDeployment[] }
  /**
   * By a new incarnation, to a slot that outlived its coordinator: these subtasks go on in their attempts. Every snapshot with an id ≤
   * `newestKnown` that is not completed is aborted (rule 25).
   */
  | { readonly type: 'adopt'; readonly newestKnown: CheckpointId }
  /**
   * All subtasks of the job have restored what is theirs: these begin, if they have not. Said to every slot each time that all run, and so by
   * a coordinator that adopts what an earlier one had no time to tell; before any trigger.
   */
  | { readonly type: 'begin' }
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
  | {
      readonly type: 'registered'
      readonly version: number
      readonly slot: SlotId
      readonly graphHash: string
      readonly tasks: readonly SurvivingTask[]
    }
  /** It has restored, is open, and waits for `begin`. */
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
  /**
   * The peer did not acknowledge for the deadline, or its thread ended. Called once. Only a side for which something waits notices the first;
   * a coordinator for which nothing does hears from the slot's worker.
   */
  onLost(callback: (reason: string) => void): void
  close(): void
}

/** What a slot's job is built with. */
export interface SlotStart {
  readonly incarnation: Incarnation
  /** Of a rescale in this start; undefined: as the job was started. */
  readonly parallelism: number | undefined
}

/** A slot that outlived the coordinator before, by what it registered with at this one. */
export interface SurvivingSlot {
  readonly slot: SlotId
  readonly registered: Extract<FromSlot, { type: 'registered' }>
  readonly link: ControlLink<ToSlot, FromSlot>
}

export interface SurvivorsOptions {
  /** Each worker promises to refuse older ones before it reports. */
  readonly incarnation: Incarnation
  /** Whether what has reported is all that can be hoped for. */
  readonly enough: (slots: readonly SurvivingSlot[]) => boolean
  /**
   * Room for so many is all that the job needs: once every worker has had the time to come, they offer it, and all that they run has
   * reported, nobody else is waited for.
   */
  readonly slotsNeeded: number
  /** After this long nobody is waited for, ms. */
  readonly deadlineMs: number
}

/**
 * A slot's thread that was asked to end ends within this, ms, unless it is in a call that nothing interrupts (a native one that blocks). Then only
 * killing ends its process, whose own exit would wait for the thread. As long as a task may take to close.
 */
export const THREAD_END_MS_MAX = 30_000

/** Starts and ends slots' threads; the outermost edge behind it. */
export interface SlotProvider {
  /** A fresh slot; its first message is 'registered'. Where it must wait for room, the link is there at once. */
  start(slot: SlotId, start: SlotStart): ControlLink<ToSlot, FromSlot>
  /** Ends it at once; where a thread cannot be ended its process ends. Resolves when it can no longer send anything, or nobody can reach it. */
  terminate(slot: SlotId): Promise<void>
  /** How long a slot may take to register, waiting for room included, ms; undefined: the coordinator's own limit. */
  readonly registrationDeadlineMs?: number
  /** How many slots there is room for now; undefined: as many as are started. */
  readonly slotsOffered?: number
  /** The name of the worker in whose process the slot is, or was. undefined: none that is known. Absent: slots are threads of this process. */
  workerOf?(slot: SlotId): string | undefined
  /** Slots that run on from the incarnation before. Absent: slots die with their coordinator. */
  survivors?(options: SurvivorsOptions): Promise<readonly SurvivingSlot[]>
  /**
   * The job has ended while nobody coordinated it: what runs on from the incarnations before is ended. Resolves when all that are there have
   * had the time to come and hear of it. Absent: slots die with their coordinator.
   */
  endSurvivors?(incarnation: Incarnation): Promise<void>
  /** Another coordinator owns the job, or is to: nothing is ended any more, and the slots are left to it. Absent: they end. */
  abandon?(): void
  /** No slot will be started any more: what was kept ready for that ends. */
  close?(): Promise<void>
}
