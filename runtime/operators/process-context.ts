// What process functions see while they run: one object per operator, moved from record to record, so nothing is allocated.

import type { DeepReadonly, TimeDomain, Timers } from '../state/contract.ts'
import { NO_TIMESTAMP } from '../record/element.ts'
import type { Output, OperatorContext, TaskInfo } from './contract.ts'
import type { OutputTag } from './output-tag.ts'
import type { UserMetrics } from './user-metrics-contract.ts'

/** For `open`: before any record. */
export interface OpenContext {
  readonly task: TaskInfo
  readonly uid: string
  readonly metrics: UserMetrics
}

export interface ProcessContext<Out> {
  /** Event time of the record, ms since the epoch; undefined if it has none. In onTimer: the event timer's time. */
  readonly timestamp: number | undefined
  /** Event time of the operator, ms; MIN_WATERMARK before any. */
  readonly currentWatermark: number
  /** Wall clock, ms since the epoch. Results that depend on it are not repeated by a restart. */
  readonly processingTimeMs: number
  readonly task: TaskInfo
  readonly metrics: UserMetrics
  /** With the timestamp of the record or event timer. Valid during the call only. */
  readonly emit: (value: Out | DeepReadonly<Out>) => void
  readonly emitTo: <T>(tag: OutputTag<T>, value: T | DeepReadonly<T>) => void
}

export interface KeyedContext<K, Handles, Out> extends ProcessContext<Out> {
  readonly key: K
  /** Of the current key. */
  readonly state: Handles
  /** Of the current key. */
  readonly timers: Timers
}

export interface FiredTimer {
  readonly domain: TimeDomain
  readonly timestampMs: number
  /** '' if registered without one. */
  readonly tag: string
}

/** `emit` and `emitTo` are own properties: they may be taken out of the context and called alone. */
export class RunningContext implements ProcessContext<unknown> {
  readonly task: TaskInfo
  readonly metrics: UserMetrics
  readonly emit: (value: unknown) => void
  readonly emitTo: ProcessContext<unknown>['emitTo']
  readonly #context: OperatorContext
  #timestamp: number = NO_TIMESTAMP

  constructor(context: OperatorContext, output: Output<unknown>) {
    this.task = context.task
    this.metrics = context.userMetrics
    this.#context = context
    this.emit = (value) => output.emit(value, this.#timestamp)
    this.emitTo = (tag, value) => output.emitTo(tag.name, value, this.#timestamp)
  }

  moveTo(timestamp: number): void {
    this.#timestamp = timestamp
  }

  get timestamp(): number | undefined {
    return this.#timestamp === NO_TIMESTAMP ? undefined : this.#timestamp
  }

  get currentWatermark(): number {
    return this.#context.currentWatermark()
  }

  get processingTimeMs(): number {
    return this.#context.environment.clock.wallMs()
  }
}
