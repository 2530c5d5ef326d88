// What the keyed counter counted: a key's counts must be 1, 2, 3 … each once, whatever the order in which transactions were committed.

import { keyName, keyNumber } from './ledger-entry.ts'

/** Counts of one key that are remembered beyond a gap; the key is wrong anyway while there is one. */
const AHEAD_MAX = 1_000

export class KeyCounts {
  readonly #indexOf = new Map<string, number>()
  /** By the key's index: all counts from 1 to this one were seen. */
  #upTo = new Uint32Array(1_024)
  /** Seen behind a gap. */
  readonly #ahead = new Map<number, Set<number>>()
  /** Keys that had a count twice, or one that is no count. */
  readonly #broken = new Set<number>()

  get size(): number {
    return this.#indexOf.size
  }

  /** The key's index, for whoever keeps more about it; indexes go up from 0. */
  add(key: string, count: unknown): number {
    let index = this.#indexOf.get(key)
    if (index === undefined) {
      index = this.#indexOf.size
      this.#indexOf.set(key, index)
      if (index >= this.#upTo.length) this.#upTo = grown(this.#upTo)
    }
    this.#count(index, count)
    return index
  }

  #count(index: number, count: unknown): void {
    const upTo = this.#upTo[index]!
    const ahead = this.#ahead.get(index)
    if (typeof count !== 'number' || !Number.isInteger(count) || count <= upTo || ahead?.has(count) === true) {
      this.#broken.add(index)
      return
    }
    if (count !== upTo + 1) {
      const waiting = ahead ?? new Set()
      if (waiting.size < AHEAD_MAX) waiting.add(count)
      this.#ahead.set(index, waiting)
      return
    }
    let next = count
    if (ahead !== undefined) while (ahead.delete(next + 1)) next++
    if (ahead?.size === 0) this.#ahead.delete(index)
    this.#upTo[index] = next
  }

  /**
   * How many keys have counts that are not 1 … the number of their records, and some of those. `expected`: what all records together
   * must have given; without it only gaps and repetitions are seen.
   */
  wrong(expected: { readonly splits: number; readonly perSplit: number; readonly keys: number } | undefined): {
    readonly count: number
    readonly samples: readonly string[]
  } {
    const wrong = new Set<string>()
    const perKey = expected === undefined ? undefined : recordsPerKey(expected)
    for (const [key, index] of this.#indexOf) {
      if (this.#broken.has(index) || this.#ahead.has(index)) wrong.add(key)
      else if (perKey !== undefined && perKey.get(key) !== this.#upTo[index]) wrong.add(key)
    }
    for (const key of perKey?.keys() ?? []) if (!this.#indexOf.has(key)) wrong.add(key)
    const samples = [...wrong].slice(0, 10).map((key) => this.#describe(key, perKey?.get(key)))
    return { count: wrong.size, samples }
  }

  #describe(key: string, expected: number | undefined): string {
    const index = this.#indexOf.get(key)
    if (index === undefined) return `wrong counts: ${key} has none of ${expected}`
    const ahead = [...(this.#ahead.get(index) ?? [])].slice(0, 5)
    const said = [
      `has 1 to ${this.#upTo[index]}`,
      ...(ahead.length > 0 ? [`then a gap, then ${ahead.join(', ')}`] : []),
      ...(this.#broken.has(index) ? ['one of them twice or none'] : []),
      ...(expected === undefined ? [] : [`expected 1 to ${expected}`]),
    ]
    return `wrong counts: ${key} ${said.join(', ')}`
  }
}

function recordsPerKey({ splits, perSplit, keys }: { splits: number; perSplit: number; keys: number }) {
  const counts = new Uint32Array(keys)
  for (let split = 0; split < splits; split++) for (let n = 0; n < perSplit; n++) counts[keyNumber(split, n, keys)]!++
  const perKey = new Map<string, number>()
  for (const [number, count] of counts.entries()) if (count > 0) perKey.set(keyName(number), count)
  return perKey
}

export function grown(array: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  const larger = new Uint32Array(2 * array.length)
  larger.set(array)
  return larger
}
