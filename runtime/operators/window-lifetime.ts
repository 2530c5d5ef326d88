// When a window ends, and how long after that it is still found, in the window's own time.

import { MAX_WATERMARK } from '../record/element.ts'
import type { TimeDomain } from '../state/contract.ts'
import type { TimeWindow, WindowAssigner } from './window-assigner.ts'

export interface WindowLifetimeOptions {
  readonly assigner: WindowAssigner
  readonly allowedLatenessMs: number
  /** In the windows' time, ms. */
  readonly now: () => number
}

export class WindowLifetime {
  readonly now: () => number
  readonly #time: TimeDomain
  readonly #allowedLatenessMs: number
  readonly #isGlobal: boolean

  constructor({ assigner, allowedLatenessMs, now }: WindowLifetimeOptions) {
    this.now = now
    this.#time = windowTimeOf(assigner)
    this.#allowedLatenessMs = allowedLatenessMs
    this.#isGlobal = assigner.kind === 'global'
  }

  /** Event time has passed a window when it reaches the last millisecond, the wall clock when that is over. */
  endMoment({ endMs }: TimeWindow): number {
    return this.#time === 'event' ? endMs - 1 : endMs
  }

  /** The last at which a record or timer still finds the window. */
  lastMoment(window: TimeWindow): number {
    return this.#isGlobal ? MAX_WATERMARK : this.endMoment(window) + this.#allowedLatenessMs
  }

  /** For records: to a window of the wall clock none comes after its end. */
  hasEnded(window: TimeWindow): boolean {
    return this.#time === 'event' && this.endMoment(window) <= this.now()
  }

  /** For records: whether one would be too late. */
  isOver(window: TimeWindow): boolean {
    return this.#time === 'event' && this.lastMoment(window) <= this.now()
  }
}

/** A global window ends with its input, which event time tells. */
export function windowTimeOf(assigner: WindowAssigner): TimeDomain {
  return assigner.kind === 'global' ? 'event' : assigner.time
}
