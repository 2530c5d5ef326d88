// The barrier handler of one subtask, aligned or at-least-once, as a pure machine: barriers, ends of data, triggers and aborts go in;
// what to block, unblock and snapshot comes out. Protocol rules 11, 13, 15, 19.

import type { CheckpointId } from '../base/ids.ts'
import type { CheckpointMode } from '../job/contract.ts'
import type { PlantedFault } from '../base/planted.ts'
import type { Barrier } from '../record/element.ts'

export type BarrierAction =
  | { readonly type: 'block'; readonly channel: number }
  | { readonly type: 'unblockAll' }
  /** Take the snapshot now, and put the barrier behind everything emitted so far. `alignmentMs` was spent here. */
  | { readonly type: 'snapshot'; readonly barrier: Barrier; readonly alignmentMs: number }

export interface BarrierHandlerOptions {
  readonly channels: number
  /** Ids ≤ this belong to an earlier life. */
  readonly newestKnown: CheckpointId
  /** at-least-once: a checkpoint's barrier blocks nothing, and what comes behind it is in the snapshot too (rule 13). Savepoints align. */
  readonly mode: CheckpointMode
  readonly planted: ReadonlySet<PlantedFault>
}

/** Remembered aborted ids. Only one snapshot is pending at a time, so that a late barrier is at most a few ids old. */
const abortedIdsMax = 64

export class BarrierHandler {
  readonly #arrived: boolean[]
  readonly #ended: boolean[]
  readonly #aborted: CheckpointId[] = []
  readonly #mode: CheckpointMode
  readonly #planted: ReadonlySet<PlantedFault>
  #newestDone: CheckpointId
  #pending: { barrier: Barrier; readonly sinceMs: number } | undefined

  constructor(options: BarrierHandlerOptions) {
    this.#arrived = Array.from({ length: options.channels }, () => false)
    this.#ended = Array.from({ length: options.channels }, () => false)
    this.#newestDone = options.newestKnown
    this.#mode = options.mode
    this.#planted = options.planted
  }

  get pendingId(): CheckpointId | undefined {
    return this.#pending?.barrier.id
  }

  /** A barrier came out of a channel. */
  barrier(channel: number, barrier: Barrier, nowMs: number): readonly BarrierAction[] {
    if (this.#isOver(barrier.id) || this.#isStale(barrier.id)) return []
    const actions = this.#begin(barrier, nowMs)
    this.#arrived[channel] = true
    if (this.#blocks(barrier)) actions.push({ type: 'block', channel })
    return this.#completeIfAligned(actions, nowMs)
  }

  /** The consumer has taken a channel's end of data: from here on it counts as having delivered every later barrier (rule 19). */
  end(channel: number, nowMs: number): readonly BarrierAction[] {
    this.#ended[channel] = true
    return this.#completeIfAligned([], nowMs)
  }

  /** The coordinator's trigger, sent when no producer runs any more: it stands behind the end of data on every channel (rule 19). */
  trigger(barrier: Barrier, nowMs: number): readonly BarrierAction[] {
    if (this.#isOver(barrier.id) || this.#isStale(barrier.id)) return []
    const actions = this.#begin(barrier, nowMs)
    if (this.#planted.has('finished-producer-counted-early')) this.#ended.fill(true)
    return this.#completeIfAligned(actions, nowMs)
  }

  /** The checkpoint will not complete: its alignment ends, and a late barrier of it aligns nothing (rule 15). */
  abort(id: CheckpointId): readonly BarrierAction[] {
    if (!this.#isOver(id)) {
      this.#aborted.push(id)
      if (this.#aborted.length > abortedIdsMax) this.#aborted.shift()
    }
    if (this.#pending?.barrier.id !== id) return []
    this.#clear()
    return [{ type: 'unblockAll' }]
  }

  /** Every id ≤ this is over, whatever became of it: a new coordinator has said so (rule 25). */
  forget(newestKnown: CheckpointId): readonly BarrierAction[] {
    if (newestKnown > this.#newestDone) this.#newestDone = newestKnown
    if (this.#pending === undefined || this.#pending.barrier.id > newestKnown) return []
    this.#clear()
    return [{ type: 'unblockAll' }]
  }

  #blocks({ kind }: Barrier): boolean {
    return (this.#mode === 'exactly-once' || kind === 'savepoint') && !this.#planted.has('alignment-skipped')
  }

  #isOver(id: CheckpointId): boolean {
    return id <= this.#newestDone || this.#aborted.includes(id)
  }

  /** Barriers never overtake barriers: one older than the pending one is a leftover of an aborted snapshot. */
  #isStale(id: CheckpointId): boolean {
    return this.#pending !== undefined && id < this.#pending.barrier.id
  }

  #begin(barrier: Barrier, nowMs: number): BarrierAction[] {
    const pending = this.#pending
    if (pending?.barrier.id === barrier.id) {
      if (barrier.alignedMs > pending.barrier.alignedMs) pending.barrier = barrier
      return []
    }
    // A newer snapshot has begun, so the coordinator has given the older one up, and its abort is still on the way.
    const actions: BarrierAction[] = pending === undefined ? [] : [{ type: 'unblockAll' }]
    this.#clear()
    this.#pending = { barrier, sinceMs: nowMs }
    return actions
  }

  #completeIfAligned(actions: BarrierAction[], nowMs: number): readonly BarrierAction[] {
    const pending = this.#pending
    if (pending === undefined || !this.#arrived.every((arrived, channel) => arrived || this.#ended[channel]))
      return actions
    const alignmentMs = nowMs - pending.sinceMs
    const barrier = { ...pending.barrier, alignedMs: pending.barrier.alignedMs + alignmentMs }
    this.#newestDone = barrier.id
    this.#clear()
    actions.push({ type: 'snapshot', barrier, alignmentMs }, { type: 'unblockAll' })
    return actions
  }

  #clear(): void {
    this.#pending = undefined
    this.#arrived.fill(false)
  }
}
