// The turns of a slot's thread: each gives one task one slice, in the order in which they asked.

import type { Environment } from '../base/environment.ts'

export interface Runnable {
  run(): 'again' | 'wait'
}

export class SlotExecutor {
  readonly #environment: Environment
  readonly #ready: Runnable[] = []
  readonly #queued = new Set<Runnable>()
  #posted = false
  #closed = false

  constructor(environment: Environment) {
    this.#environment = environment
  }

  wake(task: Runnable): void {
    if (this.#closed || this.#queued.has(task)) return
    this.#queued.add(task)
    this.#ready.push(task)
    this.#post()
  }

  close(): void {
    this.#closed = true
    this.#ready.length = 0
    this.#queued.clear()
  }

  #post(): void {
    if (this.#posted) return
    this.#posted = true
    this.#environment.executor.post(() => this.#turn())
  }

  #turn(): void {
    this.#posted = false
    const task = this.#ready.shift()
    if (task === undefined) return
    this.#queued.delete(task)
    this.#environment.budget.begin()
    if (task.run() === 'again') this.wake(task)
    if (this.#ready.length > 0) this.#post()
  }
}
