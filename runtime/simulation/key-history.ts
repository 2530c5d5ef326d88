// Which keys a store had when: what a list shows that lags behind.

import type { ObjectKey } from '../storage/contract.ts'

interface Change {
  readonly atMs: number
  readonly key: ObjectKey
  readonly created: boolean
}

export class KeyHistory {
  readonly #changes: Change[] = []

  created(key: ObjectKey, atMs: number): void {
    this.#changes.push({ atMs, key, created: true })
  }

  deleted(key: ObjectKey, atMs: number): void {
    this.#changes.push({ atMs, key, created: false })
  }

  /** `now`: the keys with this prefix that are there. Those that were there at that time, sorted. */
  asOf(now: readonly ObjectKey[], prefix: string, atMs: number): ObjectKey[] {
    const keys = new Set(now)
    for (let index = this.#changes.length - 1; index >= 0; index--) {
      const change = this.#changes[index]!
      if (change.atMs <= atMs) break
      if (!change.key.startsWith(prefix)) continue
      if (change.created) keys.delete(change.key)
      else keys.add(change.key)
    }
    return [...keys].toSorted()
  }
}
