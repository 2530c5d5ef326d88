// The work queue: one key at a time, back-off per key, a wish for later kept once.

import type { Clock, Random, Timer } from '../runtime/base/environment.ts'

const backOffMsMin = 200
const backOffMsMax = 60_000

export interface QueueOptions {
  readonly clock: Clock
  readonly random: Random
  /** Keys that are worked on at the same time. */
  readonly workers: number
  /** Gives after how long the key is wanted again, ms; undefined: not before something changes. Rejects: again after its back-off. */
  readonly work: (key: string) => Promise<number | undefined>
  readonly onError: (key: string, error: unknown, retryInMs: number) => void
}

interface Entry {
  failures: number
  /** undefined: no timer runs. */
  timer: Timer | undefined
  state: 'idle' | 'ready' | 'running'
  /** Wanted again while it ran. */
  again: boolean
}

export class WorkQueue {
  readonly #options: QueueOptions
  readonly #entries = new Map<string, Entry>()
  readonly #ready: string[] = []
  #running = 0
  #closed = false

  constructor(options: QueueOptions) {
    this.#options = options
  }

  /** Keys that wait or are worked on. */
  get length(): number {
    return this.#ready.length + this.#running
  }

  /** As soon as there is room. A key that failed waits for its back-off all the same: a busy object must not hurry what cannot be. */
  add(key: string): void {
    const entry = this.#entry(key)
    if (entry.state === 'running') entry.again = true
    else if (entry.state === 'idle' && entry.failures === 0) this.#makeReady(key, entry)
  }

  close(): void {
    this.#closed = true
    for (const { timer } of this.#entries.values()) timer?.cancel()
    this.#ready.length = 0
  }

  #entry(key: string): Entry {
    let entry = this.#entries.get(key)
    if (entry === undefined) {
      entry = { failures: 0, timer: undefined, state: 'idle', again: false }
      this.#entries.set(key, entry)
    }
    return entry
  }

  #makeReady(key: string, entry: Entry): void {
    entry.timer?.cancel()
    entry.timer = undefined
    entry.state = 'ready'
    this.#ready.push(key)
    this.#next()
  }

  #next(): void {
    while (!this.#closed && this.#running < this.#options.workers && this.#ready.length > 0) {
      const key = this.#ready.shift()!
      this.#running++
      void this.#run(key, this.#entry(key))
    }
  }

  async #run(key: string, entry: Entry): Promise<void> {
    const { work, onError, random } = this.#options
    entry.state = 'running'
    entry.again = false
    let delayMs: number | undefined
    try {
      delayMs = await work(key)
      entry.failures = 0
    } catch (error) {
      delayMs = Math.min(backOffMsMax, backOffMsMin * 2 ** entry.failures++) * (0.8 + 0.4 * random.next())
      onError(key, error, delayMs)
    }
    this.#running--
    entry.state = 'idle'
    if (this.#closed) return
    if (entry.again && entry.failures === 0) this.#makeReady(key, entry)
    else if (delayMs !== undefined) this.#later(key, entry, delayMs)
    else if (!entry.again) this.#entries.delete(key)
    this.#next()
  }

  #later(key: string, entry: Entry, delayMs: number): void {
    entry.timer = this.#options.clock.timer(delayMs, () => {
      entry.timer = undefined
      if (entry.state === 'idle') this.#makeReady(key, entry)
    })
  }
}
