// What a task reads from: its producers' channels (gate-input.ts) or a source's reader (source-input.ts).

import type { Barrier } from '../record/element.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { SurvivingSplits } from '../control/contract.ts'
import type { OperatorStatePart } from '../operators/contract.ts'

/** more: there may be more at once. nothing: wait to be woken. ended: everything was read and its last watermark handed over. */
export type ReadOutcome = 'more' | 'nothing' | 'ended'

/** How an input hands over what it reads. */
export interface InputHost {
  /** Asked after every record: the budget is used up, mail waits, an output has no room, or timers must fire first. */
  shouldStop(): boolean
  /** Records of an input that will be processed next (KeyedStateBackend.announce); returns for how many of them it holds, 1 or more. */
  announce(values: readonly unknown[], from: number, input: 0 | 1): number
  process(value: unknown, timestamp: number): void
  /** A record of the operator's second input. */
  processSecond(value: unknown, timestamp: number): void
  /** Fires timers (in slices) before anything else is read. */
  advanceWatermark(watermark: number): void
  idleness(idle: boolean): void
  snapshot(barrier: Barrier, alignmentMs: number): void
}

export interface TaskInput {
  start(): void
  read(): ReadOutcome
  /** The coordinator's trigger: at once for a source; behind the end of data on every channel otherwise (rule 19). */
  trigger(barrier: Barrier): void
  abort(id: CheckpointId): void
  /** Every id ≤ this is over, whatever became of it: a new coordinator has adopted the subtask (rule 25). */
  forget(newestKnown: CheckpointId): void
  /** The snapshot whose barriers are being awaited here. */
  readonly aligning: CheckpointId | undefined
  /** A checkpoint is known as completed. */
  completed(id: CheckpointId): void
  /** What its enumerator must know of it (rule 20); undefined: it reads channels. */
  splits(): SurvivingSplits | undefined
  /** State of the input itself, in the same turn as the operators'. */
  snapshot(id: CheckpointId): OperatorStatePart | undefined
  /** For a stop with drain: nothing more is read, and event time ends here if it begins here. */
  drain(): void
  /** Records could not pass from now on, or can again. */
  backpressured(yes: boolean): void
  /** Call `read` again after this many ms even if nothing wakes it; undefined: need not. */
  readonly tickMs: number | undefined
  close(): void | Promise<void>
}
