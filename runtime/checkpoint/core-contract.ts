// Inputs and outputs of the pure checkpoint coordinator (coordinator.ts): an event and the time go in, actions come out.
// The shell (coordinator/) carries actions out in the order given and feeds their outcomes back as events.

import type { Attempt, CheckpointId, RequestId, TaskId, TaskKey, VertexId } from '../base/ids.ts'
import type { Halt, SnapshotKind } from '../record/element.ts'
import type { SubtaskSnapshot } from './contract.ts'

export interface CheckpointSettings {
  /** undefined: no periodic checkpoints. */
  readonly intervalMs: number | undefined
  /** The start has completed none yet: its first does not wait for the interval, since an upgrade is stable only with it (kubernetes.md 9). */
  readonly firstAtOnce: boolean
  readonly timeoutMs: number
  /** From the end (completed or failed) of the previous snapshot of any kind to the next trigger. */
  readonly minPauseMs: number
  readonly savepointTimeoutMs: number
  /** Failures in a row beyond which the job fails; Infinity: unlimited. */
  readonly tolerableFailures: number
}

/** The shape of the running job: vertices in topological order and their producers. */
export interface Topology {
  readonly vertices: readonly {
    readonly id: VertexId
    readonly parallelism: number
    /** Upstream vertices. */
    readonly producers: readonly VertexId[]
    /** Those of `producers` that reach it over forward edges alone: subtask i is fed by their subtask i only. */
    readonly forwardProducers?: readonly VertexId[]
  }[]
}

/** What a completed checkpoint consists of; the manifest adds identity and enumerators. */
export interface CollectedSnapshot {
  readonly id: CheckpointId
  readonly kind: SnapshotKind
  readonly triggeredAtMs: number
  readonly subtasks: ReadonlyMap<TaskKey, { readonly task: TaskId; readonly snapshot: SubtaskSnapshot }>
  readonly request: RequestId | undefined
  /** Its subtasks stand still behind it. */
  readonly halt?: Halt | undefined
}

export type CheckpointEvent =
  /** All subtasks of the job (or, after a region restart, again all) run with these attempts; triggering may begin. */
  | { readonly type: 'allRunning'; readonly attempts: ReadonlyMap<TaskKey, Attempt> }
  /** Subtasks failed or are being restarted: triggering stops until the next allRunning. Snapshots still waiting for anybody are aborted. */
  | { readonly type: 'subtasksLost'; readonly tasks: readonly TaskId[] }
  | { readonly type: 'tick' }
  /** `halt`: to stop with (rule 3). */
  | { readonly type: 'savepointRequested'; readonly request: RequestId; readonly halt?: Halt }
  /** `halt`: subtasks stop behind it, to go on elsewhere or at another size (rule 25). */
  | { readonly type: 'checkpointRequested'; readonly request: RequestId | undefined; readonly halt?: Halt }
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
  | { readonly type: 'finished'; readonly task: TaskId; readonly attempt: Attempt; readonly snapshot: SubtaskSnapshot }
  /** A two-phase sink stands at its end of data: when only such wait, a checkpoint is triggered at once, repeated until one completes (rule 3). */
  | { readonly type: 'waitsForCheckpoint'; readonly task: TaskId; readonly attempt: Attempt }
  /** The enumerators' snapshot for this id could not be made or the trigger not be sent. */
  | { readonly type: 'triggerFailed'; readonly id: CheckpointId; readonly reason: string }
  /** Before its manifest, final states of finished subtasks are copied. It may take long, and decides nothing: it ends as collecting does. */
  | { readonly type: 'copyBegun'; readonly id: CheckpointId }
  /** Of a savepoint: some of it is copied. Its timeout begins anew, since the next one would begin from nothing (rule 18: its folder is its own). */
  | { readonly type: 'copyProgressed'; readonly id: CheckpointId }
  /** Its manifest is written now. */
  | { readonly type: 'copied'; readonly id: CheckpointId }
  | { readonly type: 'manifestWritten'; readonly id: CheckpointId }
  | { readonly type: 'manifestFailed'; readonly id: CheckpointId; readonly reason: string }
  /** The only good end of a swap: the shell settles an unclear one first (rule 4), and one that did not land has met another owner. */
  | { readonly type: 'swapWon'; readonly id: CheckpointId }
  /** Another incarnation owns HEAD, or somebody else has ended this start: everything stops. */
  | { readonly type: 'fenced' }

export type CheckpointAction =
  /** Take a new id for it from the reserved block, snapshot the enumerators and send the triggers, all in one turn. */
  | {
      readonly type: 'trigger'
      readonly id: CheckpointId
      readonly kind: SnapshotKind
      readonly halt?: Halt | undefined
      readonly tasks: readonly TaskId[]
      readonly request: RequestId | undefined
    }
  /** Producers finished meanwhile: these subtasks are triggered for the same id too (rule 19). */
  | {
      readonly type: 'triggerMore'
      readonly id: CheckpointId
      readonly kind: SnapshotKind
      readonly halt?: Halt | undefined
      readonly tasks: readonly TaskId[]
    }
  /** Tell every running subtask, once per id. */
  | {
      readonly type: 'abort'
      readonly id: CheckpointId
      readonly kind: SnapshotKind
      readonly reason: AbortReason
      readonly detail: string
    }
  /** A snapshot to stop with will not be: subtasks behind its barrier have halted, and all must restart (rule 25). */
  | { readonly type: 'restartHalted'; readonly id: CheckpointId; readonly detail: string }
  | { readonly type: 'writeManifest'; readonly snapshot: CollectedSnapshot }
  /** Complete it: swap HEAD under the own incarnation. */
  | { readonly type: 'swap'; readonly snapshot: CollectedSnapshot }
  /** The permit to commit: tell every running subtask (checkpoints; for a plain savepoint there is none). */
  | { readonly type: 'notifyComplete'; readonly id: CheckpointId }
  /** Once per request, of checkpoints too. `id` undefined: it was never triggered. */
  | {
      readonly type: 'savepointAnswered'
      readonly request: RequestId
      readonly outcome: 'completed' | 'failed'
      readonly id: CheckpointId | undefined
      readonly detail: string
    }
  /** State of a snapshot that will never complete, or a late acknowledgement's; the shell deletes only what nothing uses (R8). */
  | { readonly type: 'discard'; readonly id: CheckpointId; readonly snapshot: SubtaskSnapshot }
  /** Call tick no later than in this many ms. */
  | { readonly type: 'wakeIn'; readonly delayMs: number }
  | { readonly type: 'failJob'; readonly reason: string }

export type AbortReason = 'declined' | 'expired' | 'subtask lost' | 'storage' | 'trigger failed'

/** Why a request cannot be carried out now; undefined: it can. Asked right before its trigger. */
export type RefuseRequest = (request: RequestId) => string | undefined

/** Source of ids: strictly rising within the block that HEAD reserved. */
export interface CheckpointIds {
  next(): CheckpointId
}
