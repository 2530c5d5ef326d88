// What a sink's writer sends to its external system: one call after the other, with a bound on what has no answer yet.

import type { SinkContext } from './contract.ts'
import { connectorError } from './errors.ts'

export interface WriteLimits {
  /** For the error's text. */
  readonly what: string
  /** From this many unanswered records on the writer is not ready: its producers wait. */
  readonly ready: number
  /** One record may lead to many, and they cannot wait: beyond this many the task fails (MR-N11). */
  readonly max: number
}

export class OrderedWrites {
  readonly #context: Pick<SinkContext, 'fail' | 'wake'>
  readonly #limits: WriteLimits
  #unanswered = 0
  #calls: Promise<void> = Promise.resolve()
  #failure: { readonly cause: unknown } | undefined
  #closed = false

  constructor(context: Pick<SinkContext, 'fail' | 'wake'>, limits: WriteLimits) {
    this.#context = context
    this.#limits = limits
  }

  get ready(): boolean {
    return this.#unanswered < this.#limits.ready
  }

  /** Throws what an earlier call failed with, or MR-N11 beyond the limit. To be called before each record. */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure.cause
    const { what, max } = this.#limits
    if (this.#unanswered > max) throw connectorError('MR-N11', `${what} (limit ${max} records without answer).`)
  }

  /**
   * Runs `call` behind those before it; after a failed one nothing runs any more. Owns its promise: a failure is kept for `settled` (B22)
   * and fails the task at once.
   */
  add(records: number, call: () => Promise<void>): void {
    this.#unanswered += records
    this.#calls = this.#calls.then(async () => {
      if (this.#failure !== undefined) return
      try {
        await call()
        const wasReady = this.ready
        this.#unanswered -= records
        if (!wasReady && this.ready) this.#context.wake()
      } catch (cause) {
        this.#failure = { cause }
        if (!this.#closed) this.#context.fail(cause)
      }
    })
  }

  /** Resolves when all calls so far have succeeded; rejects when one failed. */
  async settled(): Promise<void> {
    await this.#calls
    if (this.#failure !== undefined) throw this.#failure.cause
  }

  /** Resolves when nothing runs any more. Nobody is told of a failure from now on: the task has ended. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#calls
  }
}
