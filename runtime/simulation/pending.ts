// What has not happened yet. Occurrences wait by their due time; those due now are ready, and the world picks among them by seed.

import type { SimProcess } from './process.ts'

/** One thing that will happen: a timer, a turn, a delivery, a completion. */
export interface Occurrence {
  /** Virtual milliseconds; not before. */
  dueMs: number
  /** Goes into the trace hash and the story. */
  readonly label: string
  /** Whose callback it is: it dies, and freezes, with this process. The world's own when undefined. */
  readonly owner: SimProcess | undefined
  readonly action: () => void
  cancelled: boolean
}

/**
 * Occurrences that keep their order among themselves: the turns of one executor, the messages of one connection. A lane waits as
 * one entry, that of its first occurrence.
 */
export class Lane {
  readonly items: Occurrence[] = []
  /** Index of the first one that has not happened. */
  head = 0
  /** Not before this, whatever is due: the thread is still busy with the turn before. */
  freeAtMs = 0
  /** Whether the lane waits in a queue. */
  waiting = false

  first(): Occurrence | undefined {
    return this.items[this.head]
  }

  /** Takes the first one off. */
  shift(): void {
    this.head++
    if (this.head < this.items.length) {
      // Compacting now and then keeps a long-lived lane from holding everything that ever passed through it.
      if (this.head >= 256) {
        this.items.splice(0, this.head)
        this.head = 0
      }
      return
    }
    this.items.length = 0
    this.head = 0
  }
}

export type Entry = Occurrence | Lane

/** A binary heap by due time, then by order of arrival, so that equal times have one order in every run. */
export class DueQueue {
  readonly #entries: Entry[] = []
  readonly #dues: number[] = []
  readonly #arrivals: number[] = []
  #arrived = 0

  get size(): number {
    return this.#entries.length
  }

  /** Due time of the first entry, or Infinity. */
  get nextDueMs(): number {
    return this.#dues[0] ?? Infinity
  }

  push(entry: Entry, dueMs: number): void {
    let hole = this.#entries.length
    const arrival = this.#arrived++
    this.#entries.push(entry)
    this.#dues.push(dueMs)
    this.#arrivals.push(arrival)
    while (hole > 0) {
      const parent = (hole - 1) >> 1
      if (this.#dues[parent]! <= dueMs) break // An equal one arrived before.
      this.#move(parent, hole)
      hole = parent
    }
    this.#put(hole, entry, dueMs, arrival)
  }

  pop(): Entry | undefined {
    const first = this.#entries[0]
    const entry = this.#entries.pop()
    const dueMs = this.#dues.pop()
    const arrival = this.#arrivals.pop()
    const size = this.#entries.length
    if (entry === undefined || dueMs === undefined || arrival === undefined || size === 0) return first
    let hole = 0
    for (;;) {
      let child = 2 * hole + 1
      if (child >= size) break
      if (child + 1 < size && this.#before(child + 1, child)) child++
      const childDueMs = this.#dues[child]!
      if (dueMs < childDueMs || (dueMs === childDueMs && arrival < this.#arrivals[child]!)) break
      this.#move(child, hole)
      hole = child
    }
    this.#put(hole, entry, dueMs, arrival)
    return first
  }

  #before(left: number, right: number): boolean {
    const difference = this.#dues[left]! - this.#dues[right]!
    return difference < 0 || (difference === 0 && this.#arrivals[left]! < this.#arrivals[right]!)
  }

  #move(from: number, to: number): void {
    this.#entries[to] = this.#entries[from]!
    this.#dues[to] = this.#dues[from]!
    this.#arrivals[to] = this.#arrivals[from]!
  }

  #put(at: number, entry: Entry, dueMs: number, arrival: number): void {
    this.#entries[at] = entry
    this.#dues[at] = dueMs
    this.#arrivals[at] = arrival
  }
}
