// What a trigger sees while it runs: one object per operator, moved from window to window.

import type { Key } from '../record/contract.ts'
import { NO_TIMESTAMP } from '../record/element.ts'
import type { KeyedStateBackend, MapState, TimeDomain, ValueState } from '../state/contract.ts'
import type { OperatorContext } from './contract.ts'
import type { TriggerContext, WindowTimers } from './trigger.ts'
import { allTime } from './window-assigner.ts'
import type { TimeWindow } from './window-assigner.ts'

export interface TriggerContextParts {
  readonly context: OperatorContext
  readonly backend: KeyedStateBackend
  /** What the trigger remembers, by the window's start. */
  readonly states: MapState<number, unknown>
  readonly windowTime: TimeDomain
  /** Of the window's timers. */
  readonly tagOf: (window: TimeWindow) => string
}

export class RunningTriggerContext implements TriggerContext {
  readonly state: ValueState<unknown>
  readonly timers: WindowTimers
  readonly windowTime: TimeDomain
  readonly #parts: TriggerContextParts
  #window = allTime
  #timestamp = NO_TIMESTAMP

  constructor(parts: TriggerContextParts) {
    const { states, backend, tagOf } = parts
    this.#parts = parts
    this.windowTime = parts.windowTime
    this.state = {
      get: () => states.get(this.#window.startMs),
      update: (value) => states.put(this.#window.startMs, value),
      mutate: (change) => states.mutate(this.#window.startMs, change),
      clear: () => states.delete(this.#window.startMs),
    }
    this.timers = {
      register: (domain, timestampMs) => backend.timers.register(domain, timestampMs, tagOf(this.#window)),
      delete: (domain, timestampMs) => void backend.timers.delete(domain, timestampMs, tagOf(this.#window)),
    }
  }

  /** `timestamp`: of the record or event timer; NO_TIMESTAMP if it has none. */
  moveTo(window: TimeWindow, timestamp: number): this {
    this.#window = window
    this.#timestamp = timestamp
    return this
  }

  get key(): Key {
    return this.#parts.backend.currentKey
  }

  get window(): TimeWindow {
    return this.#window
  }

  get ended(): boolean {
    return this.windowTime === 'event' && this.#window.endMs - 1 <= this.currentWatermark
  }

  get timestamp(): number | undefined {
    return this.#timestamp === NO_TIMESTAMP ? undefined : this.#timestamp
  }

  /** Rule 27: after a restore the operator's may be behind the one under which this key's group was stored. */
  get currentWatermark(): number {
    return Math.max(this.#parts.context.currentWatermark(), this.#parts.backend.keyWatermark)
  }

  get processingTimeMs(): number {
    return this.#parts.context.environment.clock.wallMs()
  }
}
