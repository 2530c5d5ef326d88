// Tumbling and sliding event-time windows that fire at their end: accumulators in keyed map state by window start, and event timers.

import { NO_TIMESTAMP } from '../record/element.ts'
import type { DueTimer, KeyedStateBackend, MapState, StateDescriptor, TypedDescriptor } from '../state/contract.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { operatorError } from './errors.ts'
import { keyedBackendOf } from './keyed-process.ts'
import { describe, userError } from './user-code.ts'
import { lastWindowStart } from './window-assigner.ts'
import type { SlidingWindows } from './window-assigner.ts'
import type { WindowContents } from './window-contents.ts'
import { WindowFiring } from './window-firing.ts'

export interface WindowSettings {
  readonly assigner: SlidingWindows
  readonly contents: WindowContents
  /** How long after its first firing a window still takes late records, each firing it again. */
  readonly allowedLatenessMs: number
  /** Side output of records too late for all their windows; undefined: they are counted and dropped. */
  readonly lateTag: string | undefined
}

const FIRE = 'fire'
/** Followed by the allowed lateness, ms, under which the timer was registered: the job may have another one after a restore. */
const CLEAN_UP = 'clean up '

/** A window is found by its start alone, so state of windows of another size is refused: their timers would find nothing. */
export function windowState({ sizeMs }: SlidingWindows, contents: WindowContents): StateDescriptor {
  const mapKeyMeaning = `starts of windows of ${sizeMs} ms`
  return { kind: 'map', name: 'windows', mapKey: 'number', mapKeyMeaning, accumulators: true, value: contents.type }
}

export function windowTimers({ sizeMs }: SlidingWindows): string {
  return `timers of windows of ${sizeMs} ms`
}

export class WindowOperator implements StreamOperator {
  readonly #assigner: SlidingWindows
  readonly #contents: WindowContents
  readonly #allowedLatenessMs: number
  readonly #cleanUpTag: string
  readonly #lateTag: string | undefined
  #context!: OperatorContext
  #output!: Output<unknown>
  #backend!: KeyedStateBackend
  #windows!: MapState<number, unknown>
  #firing!: WindowFiring
  /** The record being added, and whether its window was there; `#addCurrent` is made once so that no closure is made per record. */
  #current: unknown
  #known = false
  readonly #addCurrent = (accumulator: unknown): unknown => {
    this.#known = true
    return this.#contents.add(accumulator, this.#current)
  }

  constructor(settings: WindowSettings) {
    this.#assigner = settings.assigner
    this.#contents = settings.contents
    this.#allowedLatenessMs = settings.allowedLatenessMs
    this.#cleanUpTag = `${CLEAN_UP}${settings.allowedLatenessMs}`
    this.#lateTag = settings.lateTag
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.#context = context
    this.#output = output
    this.#backend = keyedBackendOf(context)
    const descriptor: TypedDescriptor<MapState<number, unknown>> = windowState(this.#assigner, this.#contents)
    this.#windows = this.#backend.state(descriptor)
    this.#firing = new WindowFiring(this.#contents, context, output)
  }

  process(value: unknown, timestamp: number): void {
    if (timestamp === NO_TIMESTAMP) throw operatorError('MR-J53', `At ${describe(this.#context)}.`)
    const { sizeMs, slideMs } = this.#assigner
    // Rule 27: after a restore the operator's watermark may be behind the one under which this key's group was stored; what was late stays late.
    const watermark = Math.max(this.#context.currentWatermark(), this.#backend.keyWatermark)
    let late = true
    for (let start = lastWindowStart(this.#assigner, timestamp); start > timestamp - sizeMs; start -= slideMs) {
      const last = start + sizeMs - 1
      if (last + this.#allowedLatenessMs <= watermark) break
      late = false
      if (!this.#add(start, value)) this.#registerTimer(last, watermark)
      if (last <= watermark) this.#fire(start, last)
    }
    if (late && timestamp + this.#allowedLatenessMs <= watermark) this.#refuseLate(value, timestamp)
  }

  onTimer(timer: DueTimer): void {
    const { timestampMs, tag } = timer
    const latenessMs = tag === FIRE ? 0 : Number(tag.slice(CLEAN_UP.length))
    const last = timestampMs - latenessMs
    const start = last + 1 - this.#assigner.sizeMs
    if (tag === FIRE) this.#fire(start, last)
    if (latenessMs < this.#allowedLatenessMs) this.#registerCleanUp(last)
    else this.#windows.delete(start)
  }

  /** Whether the window was there already. */
  #add(start: number, value: unknown): boolean {
    this.#current = value
    this.#known = false
    try {
      this.#windows.mutate(start, this.#addCurrent)
      if (!this.#known) this.#windows.put(start, this.#contents.first(value))
    } catch (error) {
      throw userError(this.#context, 'the window function', error)
    }
    return this.#known
  }

  /** A window that begins within its lateness fires with each record and has no timer for it. */
  #registerTimer(last: number, watermark: number): void {
    if (last > watermark) this.#backend.timers.register('event', last, FIRE)
    else this.#registerCleanUp(last)
  }

  #registerCleanUp(last: number): void {
    this.#backend.timers.register('event', last + this.#allowedLatenessMs, this.#cleanUpTag)
  }

  #fire(start: number, last: number): void {
    const accumulator = this.#windows.get(start)
    if (accumulator === undefined) return
    const window = { startMs: start, endMs: last + 1 }
    this.#firing.emit({ key: this.#backend.currentKey, window, accumulator, timestamp: last })
  }

  #refuseLate(value: unknown, timestamp: number): void {
    this.#context.metrics.add('late_records_total', 1)
    if (this.#lateTag !== undefined) this.#output.emitTo(this.#lateTag, value, timestamp)
  }
}
