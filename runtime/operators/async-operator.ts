// Calls an asynchronous function for each record and emits what it answers: mapAsync, flatMapAsync.
//
// a record comes in → first try (while fewer than `capacity` have no answer) ─→ answer ─→ its turn in the queue → out
//                                  ↑                                      │
//                                  └── retry after a delay ←── error ─────┤
//                                                                    timeout: onTimeout's result, or the task fails
//
// Promises and timers only post mail: calls, results and failures happen on the task's thread, between records, and what comes after
// the task's end, or behind a stop barrier, is dropped with the mail. A barrier waits for nothing: what is in flight is state, and so
// are results that wait for their turn, as the records that they were made of. Held watermarks are none: they come again (rule 27).

import type { Timer } from '../base/environment.ts'
import type { TypeInfo } from '../record/contract.ts'
import { AsyncFlight } from './async-flight.ts'
import { isAwaitable, retryDelayMs } from './async-options.ts'
import type { AsyncContext, AsyncSettings } from './async-options.ts'
import { orderedQueue, unorderedQueue } from './async-queue.ts'
import type { FlightQueue } from './async-queue.ts'
import { inFlightState, IN_FLIGHT_STATE, restoredInFlight } from './async-state.ts'
import type { Output, OperatorContext, OperatorStatePart, StreamOperator } from './contract.ts'
import { operatorError } from './errors.ts'
import { listOf } from './flat-map.ts'
import { describe, isPromise, promiseError, userError } from './user-code.ts'

export interface AsyncWork {
  /** mapAsync: the answer is the record. flatMapAsync: it is an iterable of records. */
  readonly kind: 'mapAsync' | 'flatMapAsync'
  readonly call: (value: unknown, context: AsyncContext) => unknown
  /** Of the records that come in. */
  readonly input: TypeInfo<unknown>
  readonly settings: AsyncSettings
}

export class AsyncOperator implements StreamOperator {
  readonly holdsWatermarks = true
  readonly #work: AsyncWork
  readonly #queue: FlightQueue<AsyncFlight>
  /** Came in and have no try yet: more were restored, or emitted at once, than there is room for. */
  readonly #waiting: AsyncFlight[] = []
  /** Tried and without answer, oldest first. */
  readonly #called = new Set<AsyncFlight>()
  /** For the oldest of them: all have the same time. */
  #deadline: Timer | undefined
  #closed = false
  /** This attempt is lost; to be reported once. */
  #failure: Error | undefined
  #context!: OperatorContext
  #output!: Output<unknown>

  constructor(work: AsyncWork) {
    this.#work = work
    this.#queue = work.settings.order === 'ordered' ? orderedQueue() : unorderedQueue()
  }

  get ready(): boolean {
    return this.#queue.size < this.#work.settings.capacity
  }

  get pending(): boolean {
    return this.#queue.size > 0
  }

  open(context: OperatorContext, output: Output<unknown>): void {
    this.#context = context
    this.#output = output
    const restored = context.restored.get(IN_FLIGHT_STATE)
    for (const { value, timestamp } of restoredInFlight(restored, this.#work.input.row, describe(context)))
      this.#add(value, timestamp)
    // Outputs may be used only once those behind it are open and the task has its turn.
    if (this.pending) context.post(() => this.#turn())
  }

  process(value: unknown, timestamp: number): void {
    this.#add(value, timestamp)
    this.#advance()
    if (this.#failure !== undefined) throw this.#failure
  }

  onWatermark(watermark: number): void {
    this.#queue.addWatermark(watermark)
    this.#emit()
  }

  snapshot(): OperatorStatePart {
    const flights = [...this.#queue.flights()]
    const lost = this.#context.environment.planted.has('async-element-lost') ? 1 : 0
    return inFlightState(flights.slice(lost), this.#work.input.row)
  }

  close(): void {
    this.#stop()
  }

  #add(value: unknown, timestamp: number): void {
    const flight = new AsyncFlight(value, timestamp, this.#context.userMetrics)
    this.#queue.add(flight)
    this.#waiting.push(flight)
  }

  /** A mail's work: `act`, then first tries, results and watermarks that are due, or the end of it all. */
  #turn(act?: () => void): void {
    if (this.#closed) return
    act?.()
    this.#advance()
    if (this.#failure !== undefined) this.#context.fail(this.#failure)
  }

  #advance(): void {
    const { environment } = this.#context
    while (this.#waiting.length > 0 && this.#called.size < this.#work.settings.capacity && !this.#closed) {
      const flight = this.#waiting.shift()!
      flight.dueMs = environment.clock.nowMs() + this.#work.settings.timeoutMs
      this.#called.add(flight)
      this.#try(flight)
    }
    this.#armDeadline()
    this.#emit()
  }

  #emit(): void {
    while (!this.#closed) {
      const next = this.#queue.next()
      if (next === undefined) return
      if (typeof next === 'number') this.#context.watermarks.forward(next)
      else for (const result of next.results!) this.#output.emit(result, next.timestamp)
    }
  }

  // ---- a record's way ----

  #try(flight: AsyncFlight): void {
    flight.context.attempt++
    let answer: unknown
    try {
      answer = this.#work.call(flight.value, flight.context)
    } catch (error) {
      return this.#refused(flight, error)
    }
    if (!isAwaitable(answer)) return this.#answered(flight, answer)
    // Both only note what came and post: nothing of the job runs outside the task's turn, and nobody is there to hear a rejection.
    Promise.resolve(answer).then(
      (result: unknown) => this.#later(() => this.#answered(flight, result), flight),
      (error: unknown) => this.#later(() => this.#refused(flight, error), flight),
    )
  }

  #later(act: () => void, flight: AsyncFlight): void {
    this.#context.post(() => {
      // Its time may be over since.
      if (!flight.done) this.#turn(act)
    })
  }

  #answered(flight: AsyncFlight, answer: unknown): void {
    try {
      this.#complete(flight, this.#resultsOf(answer, this.#work.kind))
    } catch (error) {
      this.#fail(userError(this.#context, this.#work.kind, error))
    }
  }

  #refused(flight: AsyncFlight, error: unknown): void {
    const { kind, settings } = this.#work
    const { retries } = settings
    try {
      const again = flight.context.attempt < retries.attempts && retries.when(error)
      // A promise is truthy: taken as an answer it would retry whatever there is.
      if (isPromise(again)) throw promiseError(this.#context, `retries.when of ${kind}`)
      if (!again) return this.#fail(userError(this.#context, kind, error))
    } catch (failure) {
      return this.#fail(userError(this.#context, `retries.when of ${kind}`, failure))
    }
    const delayMs = retryDelayMs(retries, flight.context.attempt + 1)
    flight.retry = this.#context.environment.clock.timer(delayMs, () => {
      flight.retry = undefined
      this.#later(() => this.#try(flight), flight)
    })
  }

  #complete(flight: AsyncFlight, results: readonly unknown[]): void {
    flight.results = results
    this.#called.delete(flight)
    this.#queue.completed(flight)
  }

  #resultsOf(answer: unknown, call: string): readonly unknown[] {
    if (this.#work.kind === 'mapAsync') return [answer]
    const list = Array.isArray(answer) ? answer : listOf(answer)
    if (list === undefined)
      throw operatorError('MR-J55', `${call} of ${describe(this.#context)} gave ${typeof answer}, no iterable.`)
    if (list.some(isPromise)) throw promiseError(this.#context, `an element of what ${call} gave`)
    return list
  }

  // ---- what ends it ----

  #armDeadline(): void {
    const [oldest] = this.#called
    if (this.#deadline !== undefined || oldest === undefined || this.#closed) return
    const { clock } = this.#context.environment
    this.#deadline = clock.timer(oldest.dueMs - clock.nowMs(), () => {
      this.#context.post(() => {
        this.#deadline = undefined
        this.#turn(() => this.#expire())
      })
    })
  }

  #expire(): void {
    const nowMs = this.#context.environment.clock.nowMs()
    for (const flight of this.#called) {
      if (flight.dueMs > nowMs || this.#closed) return
      this.#timeOut(flight)
    }
  }

  #timeOut(flight: AsyncFlight): void {
    const { kind, settings } = this.#work
    const tries = flight.context.attempt === 1 ? '' : `, ${flight.context.attempt} tries`
    const error = operatorError('MR-J70', `${kind} of ${describe(this.#context)}: ${settings.timeoutMs} ms${tries}.`)
    flight.abort(error)
    if (settings.onTimeout === undefined) return this.#fail(error)
    const call = `onTimeout of ${kind}`
    try {
      const answer = settings.onTimeout(flight.value)
      if (isAwaitable(answer)) throw promiseError(this.#context, call)
      this.#complete(flight, this.#resultsOf(answer, call))
    } catch (failure) {
      this.#fail(userError(this.#context, call, failure))
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error
    this.#stop()
  }

  #stop(): void {
    this.#closed = true
    this.#deadline?.cancel()
    for (const flight of this.#called) flight.abort()
  }
}
