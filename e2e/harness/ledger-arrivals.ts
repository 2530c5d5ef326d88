// When records that were never seen before came, to the millisecond: the longest silence, and the first after a moment.

export interface LedgerGap {
  readonly ms: number
  /** Milliseconds since the epoch, by the ledger's clock. */
  readonly fromMs: number
  readonly toMs: number
}

export interface LedgerArrival {
  readonly atMs: number
  readonly split: number
  readonly n: number
}

export class Arrivals {
  /** Three numbers each: when, split, n. */
  #events = new Float64Array(3 * 1_024)
  #count = 0

  /** Times never go back. Several within one millisecond count as their first. */
  add(atMs: number, split: number, n: number): void {
    if (this.#count > 0 && this.#at(this.#count - 1) === atMs) return
    if (3 * this.#count >= this.#events.length) {
      const larger = new Float64Array(2 * this.#events.length)
      larger.set(this.#events)
      this.#events = larger
    }
    this.#events.set([atMs, split, n], 3 * this.#count++)
  }

  get first(): LedgerArrival | undefined {
    return this.#arrival(0)
  }

  get last(): LedgerArrival | undefined {
    return this.#arrival(this.#count - 1)
  }

  /** The first that came later than `ms`. */
  firstAfter(ms: number): LedgerArrival | undefined {
    return this.#arrival(this.#indexAfter(ms))
  }

  /** The longest time between two arrivals, of which the second came after `sinceMs`; undefined: there are no two. */
  largestGap(sinceMs: number): LedgerGap | undefined {
    let largest: LedgerGap | undefined
    for (let index = Math.max(1, this.#indexAfter(sinceMs)); index < this.#count; index++) {
      const [fromMs, toMs] = [this.#at(index - 1), this.#at(index)]
      if (largest === undefined || toMs - fromMs > largest.ms) largest = { ms: toMs - fromMs, fromMs, toMs }
    }
    return largest
  }

  #at(index: number): number {
    return this.#events[3 * index]!
  }

  #arrival(index: number): LedgerArrival | undefined {
    if (index < 0 || index >= this.#count) return undefined
    return { atMs: this.#at(index), split: this.#events[3 * index + 1]!, n: this.#events[3 * index + 2]! }
  }

  #indexAfter(ms: number): number {
    let [low, high] = [0, this.#count]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#at(middle) > ms) high = middle
      else low = middle + 1
    }
    return low
  }
}
