// Threads that have loaded the runtime and wait to become slots, so that a restart need not wait for that. None has run user code: a
// restarted slot still gets a thread that nothing was left in.

import type { Clock, Timer } from '../../base/environment.ts'

/** No slot has been started for so long: the job runs, and one that only takes a moment never pays for a spare. */
export const quietBeforeSparesMs = 3_000
/** Each holds some megabytes. Of a job with more slots the others load when they are needed, at the same time. */
export const sparesMax = 4

export interface SpareThread {
  readonly ready: Promise<void>
  readonly exited: Promise<void>
  end(): Promise<void>
}

export interface SpareThreadsOptions<Thread extends SpareThread> {
  readonly clock: Clock
  readonly slotCount: number
  readonly start: () => Thread
  /** Started before anybody knew how many slots there are; they are this one's now, and those that are too many end. */
  readonly early?: readonly Thread[] | undefined
}

export class SpareThreads<Thread extends SpareThread> {
  readonly #options: SpareThreadsOptions<Thread>
  readonly #spares: Thread[] = []
  #quiet: Timer | undefined
  #closed = false

  constructor(options: SpareThreadsOptions<Thread>) {
    this.#options = options
    const { early = [], slotCount } = options
    const most = slotCount + this.#most
    for (const thread of early.slice(0, most)) this.#keep(thread)
    for (const thread of early.slice(most)) void thread.end()
  }

  /** The one that has waited longest, or else a new one. More are started once it has been quiet again. */
  take(): Thread {
    const thread = this.#spares.shift() ?? this.#options.start()
    this.#fillWhenQuiet()
    return thread
  }

  /** Ends them; none is started any more. */
  async close(): Promise<void> {
    this.#closed = true
    this.#quiet?.cancel()
    await Promise.all(this.#spares.splice(0).map((spare) => spare.end()))
  }

  #fillWhenQuiet(): void {
    this.#quiet?.cancel()
    if (this.#closed) return
    this.#quiet = this.#options.clock.timer(quietBeforeSparesMs, () => this.#fill())
  }

  get #most(): number {
    return Math.min(this.#options.slotCount, sparesMax)
  }

  /** One after the other: the job has the processors. */
  #fill(): void {
    if (this.#closed || this.#spares.length >= this.#most) return
    const spare = this.#options.start()
    this.#keep(spare)
    void spare.ready.then(() => this.#spares.includes(spare) && this.#fill())
  }

  #keep(spare: Thread): void {
    this.#spares.push(spare)
    void spare.exited.then(() => {
      const index = this.#spares.indexOf(spare)
      if (index < 0) return
      this.#spares.splice(index, 1)
      this.#fillWhenQuiet()
    })
  }
}
