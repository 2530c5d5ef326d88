// What a process cannot begin without, asked for again and again until it answers. What no further try mends is an error at once. In a
// process that leaves nothing settles any more, so that it does not begin after all.

import { pause } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import { MillraceError } from '../base/errors.ts'

/** Between two tries, doubling from the first to the second: each try repeats its own calls for up to a minute. */
const AWAIT_PAUSE_MS = { first: 500, most: 5_000 } as const

export class AwaitedServices {
  readonly #environment: Pick<Environment, 'clock' | 'random' | 'log'>
  readonly #awaited = new Set<string>()
  readonly #failures = new Map<string, string>()
  #closed = false

  constructor(environment: Pick<Environment, 'clock' | 'random' | 'log'>) {
    this.#environment = environment
  }

  /** For people, without addresses: anybody may read it. undefined: nothing. */
  get waitsFor(): string | undefined {
    return this.#awaited.size === 0 ? undefined : [...this.#awaited].join(' and ')
  }

  /** Why the last try failed of what is still waited for; undefined: none has. */
  failureOf(what: string): string | undefined {
    return this.#failures.get(what)
  }

  /** What `ask` resolves with; a rejection that says that time may mend it is repeated. */
  answered<T>(what: string, ask: () => Promise<T>): Promise<T> {
    return this.waiting(what, this.#repeat(what, ask))
  }

  /** As `answered`; what is opened after the end is closed at once. */
  async opened<T extends { close(): Promise<void> }>(what: string, open: () => Promise<T>): Promise<T> {
    return this.answered(what, async () => {
      const part = await open()
      if (this.#closed) await part.close()
      return part
    })
  }

  async waiting<T>(what: string, answer: Promise<T>): Promise<T> {
    this.#awaited.add(what)
    try {
      return await this.#unlessClosed(answer)
    } finally {
      this.#awaited.delete(what)
      this.#failures.delete(what)
    }
  }

  /** Nothing is tried again, and nobody hears of what was under way. */
  close(): void {
    this.#closed = true
  }

  #unlessClosed<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      answer.then(
        (value) => void (this.#closed || resolve(value)),
        (error: unknown) => void (this.#closed || reject(error)),
      )
    })
  }

  async #repeat<T>(what: string, ask: () => Promise<T>): Promise<T> {
    const { clock, random, log } = this.#environment
    for (let pauseMs: number = AWAIT_PAUSE_MS.first; ; pauseMs = Math.min(pauseMs * 2, AWAIT_PAUSE_MS.most)) {
      try {
        return await ask()
      } catch (error) {
        if (this.#closed || !(error instanceof MillraceError && error.retry)) throw error
        this.#failures.set(what, error.message)
        log('warn', `the coordinator waits for ${what}`, { error: error.message })
        await pause(clock, pauseMs * (0.5 + random.next() / 2))
      }
    }
  }
}
