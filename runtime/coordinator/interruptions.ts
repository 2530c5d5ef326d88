// What ends the quiet running of a job, one after the other. An end is never lost behind failures.

import type { Clock } from '../base/environment.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import type { Overtaken } from '../storage/head-keeper.ts'
import type { Failure } from './execution.ts'

export type Interruption =
  | { readonly type: 'failure'; readonly failure: Failure }
  | { readonly type: 'finished' }
  | { readonly type: 'suspend' }
  | { readonly type: 'cancel' }
  /** HEAD says so already: its swap completed the savepoint (rule 3). */
  | { readonly type: 'stopped'; readonly savepoint: ManifestRef }
  /** HEAD says so already, likewise: the same start goes on at this parallelism. */
  | { readonly type: 'rescaled'; readonly parallelism: number }
  | { readonly type: 'overtaken'; readonly answer: Overtaken }
  | { readonly type: 'broken'; readonly error: unknown }

export class Interruptions {
  #queue: Interruption[] = []
  #waiting: (() => void) | undefined

  push(interruption: Interruption): void {
    this.#queue.push(interruption)
    this.#wake()
  }

  async next(): Promise<Interruption> {
    while (this.#queue.length === 0) await this.#change()
    const end = this.#queue.findIndex(({ type }) => type !== 'failure')
    return this.#queue.splice(Math.max(end, 0), 1)[0]!
  }

  /** Waits `delayMs`; an end that comes meanwhile cuts it short, and so do subtasks that have halted in vain: they run again at once. */
  async waitOut(delayMs: number, clock: Clock): Promise<Exclude<Interruption, { type: 'failure' }> | undefined> {
    let over = false
    const timer = clock.timer(delayMs, () => {
      over = true
      this.#wake()
    })
    try {
      for (;;) {
        const end = this.#queue.findIndex(({ type }) => type !== 'failure' && type !== 'finished')
        if (end >= 0) return this.#queue.splice(end, 1)[0] as Exclude<Interruption, { type: 'failure' }>
        if (over || this.#queue.some((entry) => entry.type === 'failure' && entry.failure.halted === true))
          return undefined
        await this.#change()
      }
    } finally {
      timer.cancel()
    }
  }

  /** Those of a run that is over. */
  dropFailures(): void {
    this.#queue = this.#queue.filter(({ type }) => type !== 'failure' && type !== 'finished')
  }

  /** Failures that slots reported before they were ended. */
  dropFailuresOf(slots: ReadonlySet<number>): void {
    this.#queue = this.#queue.filter(
      (entry) => entry.type !== 'failure' || ![...entry.failure.slots].every((slot) => slots.has(slot)),
    )
  }

  #change(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = resolve
    })
  }

  #wake(): void {
    this.#waiting?.()
    this.#waiting = undefined
  }
}
