// Between a source's reader and its task: event times, one watermark generator per split, idleness.
//
// A split is idle only if it had the chance to emit and did not (design: Time, scenarios.md R16). The chance is counted
// as time between two polls: what passes while the task is backpressured, paused by alignment, without credit or frozen
// is none, and neither is it for a split with data fetched but not emitted. Called idle too early, a split's records
// would come behind the watermark and be dropped as late.

import type { Clock } from '../base/environment.ts'
import type { PlantedFault } from '../base/planted.ts'
import type { Output } from '../operators/contract.ts'
import { MIN_WATERMARK, NO_TIMESTAMP } from '../record/element.ts'
import type { PollStatus, SourceOutput, SourceReader, WatermarkGenerator, WatermarkStrategy } from './contract.ts'
import { connectorError } from './errors.ts'

export interface SourceDriverOptions<T> {
  readonly strategy: WatermarkStrategy<T>
  readonly reader: SourceReader<T, unknown>
  readonly clock: Clock
  readonly planted: ReadonlySet<PlantedFault>
  /** The source ends. A reader of it that has no splits left is about to end, not idle. */
  readonly bounded: boolean
}

export interface SourceProgress {
  /** Never falls. MIN_WATERMARK before any. */
  readonly watermark: number
  readonly idle: boolean
}

interface SplitProgress {
  readonly id: string
  readonly generator: WatermarkGenerator | undefined
  /** Chance to emit that passed unused since the split's last record, ms. */
  silentMs: number
  idle: boolean
  /** Whether the reader held unprocessed data of it when it was last looked at. */
  pending: boolean
}

export class SourceDriver<T> {
  readonly #strategy: WatermarkStrategy<T>
  readonly #reader: SourceReader<T, unknown>
  readonly #idleByBackpressure: boolean
  readonly #bounded: boolean
  readonly #idleness: Idleness
  readonly #splits = new Map<string, SplitProgress>()
  readonly #adapter: SourceOutput<T>
  /** The split of the last record: consecutive records mostly share one. */
  #latest: SplitProgress | undefined
  #target: Output<T> | undefined
  #watermark = MIN_WATERMARK
  #emitted = 0
  /** Unknown is not false: until the enumerator says that none waits, a split may yet come. */
  #splitsWait = true

  constructor(options: SourceDriverOptions<T>) {
    this.#strategy = options.strategy
    this.#reader = options.reader
    this.#idleByBackpressure = options.planted.has('idle-by-backpressure')
    this.#bounded = options.bounded
    this.#idleness = new Idleness(options.strategy.idleAfterMs, options.clock, this.#idleByBackpressure)
    this.#adapter = {
      emit: (value, timestamp, splitId) => this.#emit(value, timestamp, splitId),
      emitTo: (tag, value, timestamp) => {
        if (!Number.isSafeInteger(timestamp)) throw wrongEventTime(timestamp, `a record for '${tag}'`)
        this.#target!.emitTo(tag, value, timestamp)
      },
    }
  }

  /** Emits at most one record. Call only when there is room downstream. */
  poll(output: Output<T>): PollStatus {
    this.#target = output
    const status = this.#reader.poll(this.#adapter)
    this.#idleness.polled(status)
    return status
  }

  /** Where event time stands. Call after each slice of polls, and at least every `tickMs`. */
  progress(): SourceProgress {
    const owned = this.#reader.ownedSplits()
    this.#follow(owned)
    const chanceMs = this.#idleness.takeChanceMs()
    for (const split of this.#splits.values()) this.#judge(split, chanceMs)
    // The end of a bounded input still fires windows downstream: what was told of an idle channel for the moment before, its consumers'
    // consumers would take as leave to go on without those results, and call them late.
    if (owned.length === 0) return { watermark: this.#watermark, idle: !this.#bounded && !this.#splitsWait }
    return this.#combine()
  }

  /** Records so far, malformed ones apart: not every poll makes one. */
  get emitted(): number {
    return this.#emitted
  }

  /** While records do not pass for want of credit or because of an alignment, nothing has the chance to emit. */
  backpressured(yes: boolean): void {
    this.#idleness.setBackpressured(yes)
  }

  /** The enumerator's word on whether splits wait to be assigned or may yet be found. */
  setSplitsWait(yes: boolean): void {
    this.#splitsWait = yes
  }

  /** How often to call `progress` (after a poll, if there is room) while nothing happens, ms; undefined: need not. */
  get tickMs(): number | undefined {
    return this.#idleness.tickMs
  }

  #emit(value: T, sourceTimestamp: number, splitId: string): void {
    let split = this.#latest
    if (split === undefined || split.id !== splitId) {
      split = this.#splitOf(splitId)
      this.#latest = split
    }
    const timestampOf = this.#strategy.timestampOf
    const timestamp = timestampOf === undefined ? sourceTimestamp : timestampOf(value, sourceTimestamp)
    if (!Number.isSafeInteger(timestamp)) throw wrongEventTime(timestamp, `a record of split ${splitId}`)
    split.silentMs = 0
    split.idle = false
    this.#emitted++
    if (timestamp !== NO_TIMESTAMP) split.generator?.onRecord(timestamp)
    this.#target!.emit(value, timestamp)
  }

  #splitOf(id: string): SplitProgress {
    let split = this.#splits.get(id)
    if (split === undefined) {
      split = { id, generator: this.#strategy.createGenerator?.(), silentMs: 0, idle: false, pending: true }
      this.#splits.set(id, split)
    }
    return split
  }

  /** Splits that were read to their end no longer hold the watermark; new ones do from the moment they are owned. */
  #follow(owned: readonly string[]): void {
    for (const id of owned) this.#splitOf(id)
    if (this.#splits.size === owned.length) return
    const present = new Set(owned)
    for (const id of this.#splits.keys()) {
      if (present.has(id)) continue
      this.#splits.delete(id)
      if (this.#latest?.id === id) this.#latest = undefined
    }
  }

  #judge(split: SplitProgress, chanceMs: number): void {
    const idleAfterMs = this.#strategy.idleAfterMs
    if (idleAfterMs === undefined) return
    const wasPending = split.pending
    split.pending = !this.#idleByBackpressure && this.#reader.hasPending(split.id)
    if (split.pending) {
      split.silentMs = 0
      split.idle = false
      return
    }
    if (!wasPending) split.silentMs += chanceMs
    if (split.silentMs >= idleAfterMs) split.idle = true
  }

  /**
   * The minimum over active splits. When all are idle, the maximum over all of them: the only value that does not depend
   * on which became idle first (FLINK-38454), since the one that is idle last has driven it alone before.
   * A split that wakes up behind it does not move it back.
   */
  #combine(): SourceProgress {
    let smallestActive = Infinity
    let largest = MIN_WATERMARK
    let idle = true
    for (const split of this.#splits.values()) {
      const current = split.generator?.current() ?? MIN_WATERMARK
      if (!Number.isSafeInteger(current))
        throw connectorError('MR-N21', `The watermark of split ${split.id} is ${current}, not integer milliseconds.`)
      if (current > largest) largest = current
      if (split.idle) continue
      idle = false
      if (current < smallestActive) smallestActive = current
    }
    // One that waits to be assigned may be this reader's, and older than all that it owns: until then it is not out of the reckoning.
    if (idle && this.#splitsWait) return { watermark: this.#watermark, idle: false }
    const combined = idle ? largest : smallestActive
    if (combined > this.#watermark) this.#watermark = combined
    return { watermark: this.#watermark, idle }
  }
}

/** Ticks per idle timeout; a gap longer than two ticks counts as two, so that one long stop is never a whole timeout. */
const TICKS_PER_TIMEOUT = 4
const TICK_MS_MIN = 1

/** Counts the time in which a split without data could have emitted, had it had any. */
class Idleness {
  readonly tickMs: number | undefined
  readonly #clock: Clock
  readonly #countEverything: boolean
  #lastMs: number
  #polledSince = false
  /** The last poll answered 'nothing': the reader sleeps until it has something, and the whole sleep is a chance. */
  #asleep = false
  /** Since when there is backpressure; undefined: there is none. */
  #pressedSinceMs: number | undefined
  /** Of the interval, what passed under backpressure: none of it counts, the rest does, or flickering backpressure would stop event time for ever. */
  #pressedMs = 0

  constructor(idleAfterMs: number | undefined, clock: Clock, countEverything: boolean) {
    this.tickMs = idleAfterMs === undefined ? undefined : Math.max(TICK_MS_MIN, idleAfterMs / TICKS_PER_TIMEOUT)
    this.#clock = clock
    this.#countEverything = countEverything
    this.#lastMs = clock.nowMs()
  }

  polled(status: PollStatus): void {
    this.#polledSince = true
    this.#asleep = status !== 'more'
  }

  setBackpressured(yes: boolean): void {
    if (yes) this.#pressedSinceMs ??= this.#clock.nowMs()
    else this.#endPressure(undefined)
  }

  takeChanceMs(): number {
    if (this.tickMs === undefined) return 0
    const nowMs = this.#clock.nowMs()
    const elapsedMs = nowMs - this.#lastMs
    if (this.#pressedSinceMs !== undefined) this.#endPressure(nowMs)
    const chanceMs = this.#polledSince || this.#asleep ? elapsedMs - this.#pressedMs : 0
    this.#lastMs = nowMs
    this.#polledSince = false
    this.#pressedMs = 0
    return this.#countEverything ? elapsedMs : Math.min(chanceMs, 2 * this.tickMs)
  }

  /** Adds up the pressure so far; it goes on from `againFromMs`. */
  #endPressure(againFromMs: number | undefined): void {
    if (this.#pressedSinceMs !== undefined)
      this.#pressedMs += this.#clock.nowMs() - Math.max(this.#pressedSinceMs, this.#lastMs)
    this.#pressedSinceMs = againFromMs
  }
}

function wrongEventTime(timestamp: number, record: string): Error {
  return connectorError('MR-N09', `It is ${timestamp}, for ${record}.`)
}
