// Windows of every kind under a trigger: sessions, windows of processing time, the global window, and any window with a trigger of
// its own. Tumbling and sliding event-time windows without one have a faster operator (window-operator.ts).

import { MAX_WATERMARK, NO_TIMESTAMP } from '../record/element.ts'
import type { DueTimer, KeyedStateBackend, MapState, TimeDomain } from '../state/contract.ts'
import type { Output, OperatorContext, StreamOperator } from './contract.ts'
import { operatorError } from './errors.ts'
import { keyedBackendOf } from './keyed-process.ts'
import { TriggerCalls } from './trigger-calls.ts'
import { RunningTriggerContext } from './trigger-context.ts'
import type { AnyTrigger, TriggerResult } from './trigger.ts'
import { describe, userError } from './user-code.ts'
import { allTime, lastWindowStart } from './window-assigner.ts'
import type { SessionWindows, SlidingWindows, TimeWindow, WindowAssigner } from './window-assigner.ts'
import type { WindowContents } from './window-contents.ts'
import { WindowFiring } from './window-firing.ts'
import { WindowLifetime, windowTimeOf } from './window-lifetime.ts'
import { sessionOf } from './window-sessions.ts'
import type { SessionOfRecord } from './window-sessions.ts'
import type { TriggeredWindowStates } from './window-states.ts'
import { ofWindowTag, windowTag } from './window-tags.ts'

export interface TriggeredWindowSettings {
  readonly assigner: WindowAssigner
  readonly trigger: AnyTrigger
  readonly contents: WindowContents
  readonly states: TriggeredWindowStates
  /** Of event-time windows: how long after its end a window still takes late records. */
  readonly allowedLatenessMs: number
  /** Side output of records too late for all their windows; undefined: they are counted and dropped. */
  readonly lateTag: string | undefined
}

export class TriggeredWindowOperator implements StreamOperator {
  readonly #settings: TriggeredWindowSettings
  readonly #assigner: WindowAssigner
  readonly #time: TimeDomain
  #context!: OperatorContext
  #output!: Output<unknown>
  #backend!: KeyedStateBackend
  #contents!: MapState<number, unknown>
  #triggerStates!: MapState<number, unknown>
  #ends: MapState<number, number> | undefined
  #trigger!: TriggerCalls
  #running!: RunningTriggerContext
  #lifetime!: WindowLifetime
  #firing!: WindowFiring

  constructor(settings: TriggeredWindowSettings) {
    this.#settings = settings
    this.#assigner = settings.assigner
    this.#time = windowTimeOf(settings.assigner)
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    const { states, trigger, contents } = this.#settings
    const backend = keyedBackendOf(context)
    this.#context = context
    this.#output = output
    this.#backend = backend
    this.#contents = backend.state(states.contents)
    this.#triggerStates = backend.state(states.trigger)
    this.#ends = states.ends && backend.state(states.ends)
    this.#trigger = new TriggerCalls(trigger, context)
    this.#running = new RunningTriggerContext({
      context,
      backend,
      states: this.#triggerStates,
      windowTime: this.#time,
      tagOf: (window) => windowTag(this.#assigner, 'trigger', window.startMs),
    })
    const running = this.#running
    this.#lifetime = new WindowLifetime({
      ...this.#settings,
      now: this.#time === 'event' ? () => running.currentWatermark : () => running.processingTimeMs,
    })
    this.#firing = new WindowFiring(contents, context, output)
  }

  process(value: unknown, timestamp: number): void {
    const assigner = this.#assigner
    switch (assigner.kind) {
      case 'sliding':
        return this.#processInSliding(assigner, value, timestamp)
      case 'session':
        return this.#processInSession(assigner, value, timestamp)
      case 'global':
        return this.#take(allTime, value, timestamp)
      default:
        return assigner satisfies never
    }
  }

  onTimer({ tag, domain, timestampMs }: DueTimer): void {
    const { purpose, startMs } = ofWindowTag(this.#assigner, tag)
    const window = this.#windowAt(startMs)
    if (window === undefined) return
    switch (purpose) {
      case 'end':
        return this.#endAt(timestampMs, window)
      case 'clear':
        return this.#clearAt(timestampMs, window)
      case 'trigger':
        return this.#triggerAt(timestampMs, domain, window)
      default:
        return purpose satisfies never
    }
  }

  #processInSliding(assigner: SlidingWindows, value: unknown, timestamp: number): void {
    const timeMs = this.#timeOf(timestamp)
    let late = true
    for (
      let startMs = lastWindowStart(assigner, timeMs);
      startMs > timeMs - assigner.sizeMs;
      startMs -= assigner.slideMs
    ) {
      const window = { startMs, endMs: startMs + assigner.sizeMs }
      if (this.#lifetime.isOver(window)) break
      late = false
      this.#take(window, value, timestamp)
    }
    // A record between two windows is in none, which does not make it late.
    if (late && this.#time === 'event' && timeMs + this.#settings.allowedLatenessMs <= this.#lifetime.now())
      this.#refuseLate(value, timestamp)
  }

  #processInSession({ gapMs }: SessionWindows, value: unknown, timestamp: number): void {
    const timeMs = this.#timeOf(timestamp)
    const session = sessionOf(this.#openSessions(), { timeMs, gapMs })
    const { window } = session
    if (this.#lifetime.isOver(window)) return this.#refuseLate(value, timestamp)
    this.#change(session, timestamp)
    this.#take(window, value, timestamp)
  }

  #openSessions(): TimeWindow[] {
    const open: TimeWindow[] = []
    for (const [startMs, endMs] of this.#ends!.entries()) {
      const session = { startMs, endMs }
      // Its clearing is due and has not come, or was registered under another allowed lateness.
      if (this.#lifetime.isOver(session)) this.#clear(session)
      else open.push(session)
    }
    return open
  }

  #change({ window, merged }: SessionOfRecord, timestamp: number): void {
    const [first] = merged
    if (merged.length !== 1 || first!.startMs !== window.startMs) return this.#merge({ window, merged }, timestamp)
    if (first!.endMs === window.endMs) return
    this.#ends!.put(window.startMs, window.endMs)
    // The timer of an end that is still to come moves by itself.
    if (this.#lifetime.hasEnded(first!)) this.#arm(window)
  }

  #merge({ window, merged }: SessionOfRecord, timestamp: number): void {
    const remembered: unknown[] = []
    for (const old of merged) {
      // Before `clear`, which may forget it.
      const state = this.#triggerStates.get(old.startMs)
      if (state !== undefined) remembered.push(state)
      this.#forget(old)
      this.#backend.timers.delete(
        this.#time,
        this.#lifetime.endMoment(old),
        windowTag(this.#assigner, 'end', old.startMs),
      )
    }
    this.#ends!.put(window.startMs, window.endMs)
    this.#arm(window)
    this.#mergeContents(window, merged)
    if (merged.length > 0) this.#trigger.onMerge(remembered, this.#running.moveTo(window, timestamp))
  }

  /** What begins where the window begins stays where it is: a record that comes in order moves nothing. */
  #mergeContents(window: TimeWindow, merged: readonly TimeWindow[]): void {
    const moved: unknown[] = []
    for (const { startMs } of merged) {
      const accumulator = startMs === window.startMs ? undefined : this.#contents.get(startMs)
      if (accumulator === undefined) continue
      // Out of the state first: merging may change it in place.
      this.#contents.delete(startMs)
      moved.push(accumulator)
    }
    if (moved.length === 0) return
    const merge = this.#settings.contents.merge!
    try {
      if (this.#contents.has(window.startMs))
        this.#contents.mutate(window.startMs, (first) => moved.reduce((earlier, later) => merge(earlier, later), first))
      else
        this.#contents.put(
          window.startMs,
          moved.reduce((earlier, later) => merge(earlier, later)),
        )
    } catch (error) {
      throw userError(this.#context, 'the window function', error)
    }
  }

  #take(window: TimeWindow, value: unknown, timestamp: number): void {
    const { contents } = this.#settings
    let known = false
    try {
      this.#contents.mutate(window.startMs, (accumulator) => {
        known = true
        return contents.add(accumulator, value)
      })
      if (!known) this.#contents.put(window.startMs, contents.first(value))
    } catch (error) {
      throw userError(this.#context, 'the window function', error)
    }
    // A session is armed where its bounds change.
    if (!known && this.#assigner.kind !== 'session') this.#arm(window)
    this.#apply(this.#trigger.onRecord(value, this.#running.moveTo(window, timestamp)), window, timestamp)
  }

  #apply(result: TriggerResult, window: TimeWindow, timestamp: number): void {
    if (result === 'continue') return
    const accumulator = result === 'purge' ? undefined : this.#contents.get(window.startMs)
    if (accumulator !== undefined) {
      const key = this.#backend.currentKey
      this.#firing.emit({ key, window, accumulator, timestamp: this.#timestampOf(window, timestamp) })
    }
    if (result !== 'fire') this.#contents.delete(window.startMs)
  }

  /** Of results: the wall clock would not be repeated by a restart, and the end of all time is no time of a record. */
  #timestampOf(window: TimeWindow, timestamp: number): number {
    if (this.#time === 'processing') return NO_TIMESTAMP
    if (this.#assigner.kind !== 'global') return window.endMs - 1
    return timestamp >= MAX_WATERMARK - 1 ? NO_TIMESTAMP : timestamp
  }

  #windowAt(startMs: number): TimeWindow | undefined {
    const assigner = this.#assigner
    if (assigner.kind === 'global') return allTime
    if (assigner.kind === 'sliding') return { startMs, endMs: startMs + assigner.sizeMs }
    const endMs = this.#ends!.get(startMs)
    return endMs === undefined ? undefined : { startMs, endMs }
  }

  #arm(window: TimeWindow): void {
    // A global window is never cleared.
    if (this.#assigner.kind === 'global' && this.#settings.trigger.onEnd === undefined) return
    if (this.#lifetime.hasEnded(window)) this.#register('clear', this.#lifetime.lastMoment(window) + 1, window)
    else this.#register('end', this.#lifetime.endMoment(window), window)
  }

  #register(purpose: 'end' | 'clear', timestampMs: number, window: TimeWindow): void {
    this.#backend.timers.register(this.#time, timestampMs, windowTag(this.#assigner, purpose, window.startMs))
  }

  #endAt(timestampMs: number, window: TimeWindow): void {
    const endMs = this.#lifetime.endMoment(window)
    // A session has grown since.
    if (timestampMs < endMs) return this.#register('end', endMs, window)
    const timestamp = this.#time === 'event' ? timestampMs : NO_TIMESTAMP
    this.#apply(this.#trigger.onEnd(this.#running.moveTo(window, timestamp)), window, timestamp)
    if (this.#time === 'processing') return this.#clearEnded(window)
    // Later than the last moment, so that what the trigger waits for at that comes first.
    if (this.#assigner.kind !== 'global') this.#register('clear', this.#lifetime.lastMoment(window) + 1, window)
  }

  /**
   * Without a timer of its own: until that came, the wall clock could be set back and a record join the window, which would be cleared with
   * it. As it is, such a record begins a window of its own.
   */
  #clearEnded(window: TimeWindow): void {
    const endMs = this.#lifetime.endMoment(window)
    // Of two timers for the same moment either comes first.
    if (this.#backend.timers.delete('processing', endMs, windowTag(this.#assigner, 'trigger', window.startMs)))
      this.#triggerAt(endMs, 'processing', window)
    this.#clear(window)
  }

  /** The allowed lateness may have grown at a restore, or the session meanwhile. For windows of processing time only earlier versions registered it. */
  #clearAt(timestampMs: number, window: TimeWindow): void {
    if (this.#lifetime.lastMoment(window) >= timestampMs) this.#arm(window)
    else this.#clear(window)
  }

  #triggerAt(timestampMs: number, domain: TimeDomain, window: TimeWindow): void {
    // The window is gone, and its trigger has left a timer behind.
    if ((domain === this.#time ? timestampMs : this.#lifetime.now()) > this.#lifetime.lastMoment(window)) return
    const timestamp = domain === 'event' ? timestampMs : NO_TIMESTAMP
    const context = this.#running.moveTo(window, timestamp)
    const result =
      domain === 'event'
        ? this.#trigger.onEventTime(timestampMs, context)
        : this.#trigger.onProcessingTime(timestampMs, context)
    this.#apply(result, window, timestamp)
  }

  #clear(window: TimeWindow): void {
    this.#forget(window)
    this.#contents.delete(window.startMs)
  }

  #forget(window: TimeWindow): void {
    this.#trigger.clear(this.#running.moveTo(window, NO_TIMESTAMP))
    this.#triggerStates.delete(window.startMs)
    this.#ends?.delete(window.startMs)
  }

  /** Of a record, in the windows' time. */
  #timeOf(timestamp: number): number {
    if (this.#time === 'processing') return this.#context.environment.clock.wallMs()
    if (timestamp === NO_TIMESTAMP) throw operatorError('MR-J53', `At ${describe(this.#context)}.`)
    return timestamp
  }

  #refuseLate(value: unknown, timestamp: number): void {
    this.#context.metrics.add('late_records_total', 1)
    if (this.#settings.lateTag !== undefined) this.#output.emitTo(this.#settings.lateTag, value, timestamp)
  }
}
