// When a window fires and when it is emptied: what a job's author writes, and sees while it runs.

import type { DeepReadonly, TimeDomain, ValueState } from '../state/contract.ts'
import type { Key } from '../record/contract.ts'
import type { StreamSchema } from './stream-schema.ts'
import type { TimeWindow } from './window-assigner.ts'

/** 'fire' emits results and keeps the records, 'purge' drops them without results. */
export type TriggerResult = 'continue' | 'fire' | 'purge' | 'fire and purge'

/** One object serves all windows of a subtask: what it has to remember belongs into the context's state. */
export interface Trigger<In = unknown, State = unknown> {
  /** Stored with the windows: they are not found again under a trigger of another name, since it would not know their timers. */
  readonly name: string
  /** Of what it remembers per key and window. Without it the state describes itself. */
  readonly state?: StreamSchema<State>
  /** It waits for the window's end in this time alone; windows that have no such end are refused. */
  readonly endOf?: TimeDomain
  /** After the record was added to the window. */
  readonly onRecord: (value: DeepReadonly<In>, context: TriggerContext<State>) => TriggerResult
  /** Time has reached the window's end: once, and once more if a late record moved the end of a session of event time. A global window ends with its input. Without it what has not fired never will. */
  onEnd?(context: TriggerContext<State>): TriggerResult
  /** For each event timer that it registered. */
  onEventTime?(timestampMs: number, context: TriggerContext<State>): TriggerResult
  /** For each processing-time timer that it registered. */
  onProcessingTime?(timestampMs: number, context: TriggerContext<State>): TriggerResult
  /**
   * Session windows need it. Sessions have become one, or one begins earlier than it did: `merged` is what was remembered of them,
   * earliest first (`clear` was called for each), and `context` is of the new window. onRecord follows. A session whose end moves
   * remains the same, with its timers.
   */
  onMerge?(merged: readonly DeepReadonly<State>[], context: TriggerContext<State>): void
  /** The window is gone: delete its timers, which a session that begins at the same time would get. Its state is dropped afterwards. */
  clear?(context: TriggerContext<State>): void
}

/** Of whatever types: who runs it gives it its own stream's values, and its own state. */
export interface AnyTrigger extends Omit<Trigger, 'onRecord'> {
  // A method, as the rest: of its parameters the types are not held against those of a trigger's own.
  onRecord(value: unknown, context: TriggerContext): TriggerResult
}

/** Of one window of one key. Valid during the call only. */
export interface TriggerContext<State = unknown> {
  readonly key: Key
  /** Of a global window from before all time until after it. */
  readonly window: TimeWindow
  /** Which time the window's bounds are of; 'event' for a global window. */
  readonly windowTime: TimeDomain
  /** Event time has passed the window's end: a record that comes now is a late one, and no end follows it. */
  readonly ended: boolean
  /** Event time of the record, end or event timer, ms; undefined if it has none. */
  readonly timestamp: number | undefined
  /** Event time of the operator, ms; MIN_WATERMARK before any. */
  readonly currentWatermark: number
  /** Wall clock, ms since the epoch. */
  readonly processingTimeMs: number
  readonly state: ValueState<State>
  readonly timers: WindowTimers
}

/** Timers of this window. Registering one twice is registering it once; one for a time that has passed fires when time next moves. */
export interface WindowTimers {
  register(domain: TimeDomain, timestampMs: number): void
  delete(domain: TimeDomain, timestampMs: number): void
}
