// The entries of one key group whose keys are numbers: an open-addressing table with linear probing.
//
// A Map of a million keys over 128 groups goes to memory for the bucket, the pair, and every pair before it in the chain; this table
// goes there once. The hash is the one that chose the key group: nothing is hashed twice but what moves to a larger table.
//
// A table that is full is followed by a larger one, and entries move over a few at a time, so that no record waits for all of them.
// Within an array they are never rearranged, so a walk over the arrays that it began with meets every entry that is still there.

import type { Key } from '../../record/contract.ts'
import { keyHash } from '../../record/key-group.ts'
import { EPOCH, STRIDE, VALUE } from './slots.ts'
import type { Location, Slots } from './slots.ts'

/** A power of two, as all capacities are. */
const CAPACITY_MIN = 8

/** Shared by all tables until their first entry comes, so never written to; most groups of a small state have none. */
const noSlots = emptySlots(2)
const NO_SLOTS_SHIFT = 31

/** Spreads hashes that agree in their low bits, as all of one key group do (2^32 divided by the golden ratio). */
const SPREAD = 0x9e3779b1

/**
 * Places of the earlier table looked through whenever an entry is looked for, added or removed. That table has at most 4 times the places of
 * the one that follows, of which 4 in 15 and more are free beyond what moves over: with 15 it is empty before the other is full.
 */
export const MOVED_AT_ONCE = 16

/** In the place of a removed entry's key, for searches to go on; no key is NaN. */
const REMOVED = Number.NaN

export class NumberEntries {
  /** How many there are. */
  size = 0
  /** Without a key: never used, so that a search ends here. */
  private slots = noSlots
  /** Places that were used at least once; the shared ones count as full. */
  private used = 2
  /** 32 less the bits of a place. */
  private shift = NO_SLOTS_SHIFT
  /** The table before, while entries move over. */
  private earlier: Slots | undefined = undefined
  private earlierShift = NO_SLOTS_SHIFT
  /** What lies before it in `earlier` has moved, or was removed. */
  private moved = 0

  /** `hash` is keyHash of the key, here and below. */
  find(key: number, hash: number, location: Location): void {
    if (this.earlier !== undefined) this.moveSome(this.earlier)
    this.locate(key, hash, location)
  }

  /** What lies where a search for the key begins. */
  first(hash: number): unknown {
    return this.slots[firstAt(hash, this.shift)]
  }

  /** The key must not be there yet. `location` gets its place. */
  add(key: number, hash: number, value: unknown, epoch: number, location: Location): void {
    // Two thirds full, a search looks at 2 places for what is there, and at 5 for what is not.
    if ((this.used + 1) * 3 * STRIDE > this.slots.length * 2) this.follow(this.usualCapacity())
    if (this.earlier !== undefined) this.moveSome(this.earlier)
    location.slots = this.slots
    location.at = this.place(key, hash, value, epoch)
    this.size++
  }

  /** `location` is where find found it. */
  remove({ slots, at }: Location): void {
    slots[at] = REMOVED
    slots[at + VALUE] = undefined
    this.size--
    if (this.earlier !== undefined) this.moveSome(this.earlier)
    else if (this.size * 8 * STRIDE < this.slots.length && this.slots.length > CAPACITY_MIN * STRIDE)
      this.follow(this.usualCapacity())
  }

  /**
   * Makes room for so many more. A restore has them in the order of another table's places: put into a table that grows on the way, each
   * first part of them would crowd together in one part of it, and every search there would be long.
   */
  reserve(count: number): void {
    let capacity = CAPACITY_MIN
    while ((this.size + count) * 3 > capacity * 2) capacity *= 2
    if (capacity * STRIDE > this.slots.length) this.follow(capacity)
    this.moveAll()
  }

  /**
   * `location` goes from entry to entry: to each that is there from the beginning of the walk to its end, and to some of those that come
   * or go meanwhile. One that moves, or is removed and comes again, may be met twice.
   */
  *walk(location: Location): Generator<Location> {
    const { earlier, slots, moved } = this
    if (earlier !== undefined) yield* this.walkOver(earlier, moved, location)
    yield* this.walkOver(slots, 0, location)
  }

  private *walkOver(slots: Slots, from: number, location: Location): Generator<Location> {
    for (let at = from; at < slots.length; at += STRIDE) {
      const key = slots[at] as number | undefined
      if (key === undefined || Number.isNaN(key)) continue
      if (slots === this.slots) {
        location.slots = slots
        location.at = at
      } else {
        // It moves or has moved on, or was removed since.
        this.locate(key, keyHash(key), location)
        if (location.at < 0) continue
      }
      yield location
    }
  }

  private locate(key: number, hash: number, location: Location): void {
    location.slots = this.slots
    location.at = search(this.slots, this.shift, key, hash)
    if (location.at < 0 && this.earlier !== undefined) this.locateEarlier(this.earlier, key, hash, location)
  }

  private locateEarlier(earlier: Slots, key: number, hash: number, location: Location): void {
    const at = search(earlier, this.earlierShift, key, hash)
    if (at < this.moved) return
    location.slots = earlier
    location.at = at
  }

  private place(key: number, hash: number, value: unknown, epoch: unknown): number {
    const { slots } = this
    let at = firstAt(hash, this.shift)
    while (slots[at] !== undefined && !Number.isNaN(slots[at])) at = next(slots, at)
    if (slots[at] === undefined) this.used++
    slots[at] = key
    slots[at + VALUE] = value
    slots[at + EPOCH] = epoch
    return at
  }

  /** At most two fifths full. */
  private usualCapacity(): number {
    let capacity = CAPACITY_MIN
    while ((this.size + 1) * 5 > capacity * 2) capacity *= 2
    return capacity
  }

  /** Begins a new table. */
  private follow(capacity: number): void {
    this.moveAll()
    if (this.size > 0) {
      this.earlier = this.slots
      this.earlierShift = this.shift
      this.moved = 0
    }
    this.slots = emptySlots(capacity)
    this.shift = Math.clz32(capacity) + 1
    this.used = 0
  }

  private moveAll(): void {
    while (this.earlier !== undefined) this.moveSome(this.earlier)
  }

  private moveSome(earlier: Slots): void {
    const end = Math.min(earlier.length, this.moved + MOVED_AT_ONCE * STRIDE)
    for (let at = this.moved; at < end; at += STRIDE) {
      const key = earlier[at] as number | undefined
      if (key !== undefined && !Number.isNaN(key))
        this.place(key, keyHash(key), earlier[at + VALUE], earlier[at + EPOCH])
    }
    this.moved = end
    if (end === earlier.length) this.earlier = undefined
  }
}

function emptySlots(capacity: number): Slots {
  // oxlint-disable-next-line unicorn/no-new-array -- 7 to 9 times faster than Array.from, and records wait for it
  return new Array<unknown>(capacity * STRIDE).fill(undefined)
}

/** -1: the key has no entry. */
function search(slots: Slots, shift: number, key: Key, hash: number): number {
  let at = firstAt(hash, shift)
  for (;;) {
    const found = slots[at]
    if (found === undefined) return -1
    if (found === key) return at
    at = next(slots, at)
  }
}

/** Over the top bits: the low ones are the group's. */
function firstAt(hash: number, shift: number): number {
  return (Math.imul(hash, SPREAD) >>> shift) * STRIDE
}

function next(slots: Slots, at: number): number {
  return at + STRIDE === slots.length ? 0 : at + STRIDE
}
