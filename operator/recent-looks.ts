// What the API server said a moment ago: many looks at one thing are one request.

import type { Clock } from '../runtime/base/environment.ts'

const keptMs = 5_000
const rememberedMax = 1_000

export class RecentLooks<Answer> {
  readonly #clock: Clock
  readonly #known = new Map<string, { readonly answer: Answer; readonly atMs: number }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Rejects as `look` does, and keeps nothing then. */
  async at(key: string, look: () => Promise<Answer>): Promise<Answer> {
    const known = this.#known.get(key)
    if (known !== undefined && this.#clock.nowMs() - known.atMs < keptMs) return known.answer
    const answer = await look()
    this.#known.delete(key)
    this.#known.set(key, { answer, atMs: this.#clock.nowMs() })
    if (this.#known.size > rememberedMax) this.#known.delete(this.#known.keys().next().value!)
    return answer
  }
}
