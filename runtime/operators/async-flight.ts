// One record on its way through an asynchronous function.

import type { Timer } from '../base/environment.ts'
import { NO_TIMESTAMP } from '../record/element.ts'
import type { AsyncContext } from './async-options.ts'
import type { Flight } from './async-queue.ts'
import type { UserMetrics } from './user-metrics-contract.ts'

export class AsyncFlight implements Flight {
  readonly value: unknown
  /** NO_TIMESTAMP: none. */
  readonly timestamp: number
  readonly context: FlightContext
  /** What goes on for it; undefined: not known yet. */
  results: readonly unknown[] | undefined
  /** On the environment's clock; set at the first try. */
  dueMs = 0
  /** Waits between two tries. */
  retry: Timer | undefined

  constructor(value: unknown, timestamp: number, metrics: UserMetrics) {
    this.value = value
    this.timestamp = timestamp
    this.context = new FlightContext(timestamp, metrics)
  }

  get done(): boolean {
    return this.results !== undefined
  }

  /** Nobody waits for its function any more. `reason`: for the signal; an AbortError without one. */
  abort(reason?: Error): void {
    this.retry?.cancel()
    this.retry = undefined
    this.context.abort(reason)
  }
}

class FlightContext implements AsyncContext {
  attempt = 0
  readonly timestamp: number | undefined
  readonly metrics: UserMetrics
  /** Most functions ask for none, and making one costs more than the rest of the record's way here. */
  #controller: AbortController | undefined
  #ended: { readonly reason: Error | undefined } | undefined

  constructor(timestamp: number, metrics: UserMetrics) {
    this.timestamp = timestamp === NO_TIMESTAMP ? undefined : timestamp
    this.metrics = metrics
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#ended !== undefined) this.#controller.abort(this.#ended.reason)
    return this.#controller.signal
  }

  abort(reason: Error | undefined): void {
    this.#ended = { reason }
    this.#controller?.abort(reason)
  }
}
