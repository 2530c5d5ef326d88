// Tells somebody in a later turn that a condition turned true, once for each time that it did.

import type { Executor } from '../base/environment.ts'

export class TurnSignal {
  readonly #executor: Executor
  #callback: (() => void) | undefined
  #was: boolean
  #posted = false
  #closed = false

  constructor(executor: Executor, initially: boolean) {
    this.#executor = executor
    this.#was = initially
  }

  set callback(callback: () => void) {
    this.#callback = callback
  }

  /** Looked at after every change of the condition. */
  update(is: boolean): void {
    const turnedTrue = is && !this.#was
    this.#was = is
    if (!turnedTrue || this.#posted || this.#closed) return
    this.#posted = true
    this.#executor.post(() => {
      this.#posted = false
      if (!this.#closed) this.#callback?.()
    })
  }

  close(): void {
    this.#closed = true
  }
}
