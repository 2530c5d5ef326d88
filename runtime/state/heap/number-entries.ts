// The entries of one key group whose keys are numbers: an open-addressing table (linear probing) of the entries themselves.
//
// A Map of a million keys over 128 groups goes to memory for the bucket, the pair, and every pair before it in the chain; this table goes
// for the hash and the entry, and asks for both at once. The hash is the one that chose the key group: nothing is hashed twice.
// Arrays are never rearranged in place, so a walk over those that it began with meets every entry that was there and is still alive.

import type { Key } from '../../record/contract.ts'

/** A power of two, as all capacities are. */
const CAPACITY_MIN = 8

/** Shared by all tables until their first entry comes, so never written to; most groups of a small state have none. */
const noHashes = new Int32Array(2)
const noEntries: readonly undefined[] = [undefined, undefined]

/** Spreads hashes that agree in their low bits, as all of one key group do (2^32 divided by the golden ratio). */
const SPREAD = 0x9e3779b1

export class NumberEntries<Entry extends { readonly key: Key }> {
  /** How many there are. */
  size = 0
  /** 0: never used, so that a search ends here. Of a removed entry the hash stays, for searches to go on. */
  private hashes = noHashes
  private entries: (Entry | undefined)[] = noEntries as undefined[]
  /** Places whose hash is not 0; the shared ones count as full. */
  private used = noHashes.length
  /** 32 less the bits of a place. */
  private shift = 31

  /** `hash` is keyHash of the key, here and below. */
  get(key: number, hash: number): Entry | undefined {
    const place = this.placeOf(key, hash)
    return place < 0 ? undefined : this.entries[place]
  }

  /** As get, without a look at the entry itself: it may be another key's of the same hash. */
  candidate(hash: number): Entry | undefined {
    const { hashes } = this
    const wanted = storedHash(hash)
    const mask = hashes.length - 1
    let place = this.firstPlace(wanted)
    while (hashes[place] !== wanted && hashes[place] !== 0) place = (place + 1) & mask
    return this.entries[place]
  }

  set(entry: Entry, hash: number): void {
    const known = this.placeOf(entry.key, hash)
    if (known >= 0) {
      this.entries[known] = entry
      return
    }
    // Two thirds full, a search looks at 2 places for what is there, and at 5 for what is not.
    if ((this.used + 1) * 3 > this.hashes.length * 2) this.rebuild()
    this.place(entry, storedHash(hash))
    this.size++
  }

  remove(key: number, hash: number): void {
    const place = this.placeOf(key, hash)
    if (place < 0) return
    this.entries[place] = undefined
    this.size--
    if (this.size * 8 < this.hashes.length && this.hashes.length > CAPACITY_MIN) this.rebuild()
  }

  /** What was there when the walk began and is there when it comes to it; what is added meanwhile may be met or not. */
  *values(): Generator<Entry> {
    const { entries } = this
    for (let place = 0; place < entries.length; place++) {
      const entry = entries[place]
      if (entry !== undefined) yield entry
    }
  }

  /** -1: the key has no entry. */
  private placeOf(key: Key, hash: number): number {
    const { hashes, entries } = this
    const wanted = storedHash(hash)
    const mask = hashes.length - 1
    let place = this.firstPlace(wanted)
    for (;;) {
      const found = hashes[place]!
      if (found === wanted && entries[place]?.key === key) return place
      if (found === 0) return -1
      place = (place + 1) & mask
    }
  }

  /** Over the top bits: the low ones are the group's. */
  private firstPlace(stored: number): number {
    return Math.imul(stored, SPREAD) >>> this.shift
  }

  private place(entry: Entry, stored: number): void {
    const { hashes, entries } = this
    const mask = hashes.length - 1
    let place = this.firstPlace(stored)
    while (hashes[place] !== 0 && entries[place] !== undefined) place = (place + 1) & mask
    if (hashes[place] === 0) this.used++
    hashes[place] = stored
    entries[place] = entry
  }

  /** New arrays, at most two fifths full. */
  private rebuild(): void {
    const { hashes, entries } = this
    let capacity = CAPACITY_MIN
    while ((this.size + 1) * 5 > capacity * 2) capacity *= 2
    this.hashes = new Int32Array(capacity)
    // oxlint-disable-next-line unicorn/no-new-array -- 7 to 9 times faster than Array.from, and records wait for it
    this.entries = new Array<Entry | undefined>(capacity).fill(undefined)
    this.shift = Math.clz32(capacity) + 1
    this.used = 0
    for (let place = 0; place < entries.length; place++) {
      const entry = entries[place]
      if (entry !== undefined) this.place(entry, hashes[place]!)
    }
  }
}

/** 0 says that a place was never used. */
function storedHash(hash: number): number {
  const stored = hash | 0
  return stored === 0 ? 1 : stored
}
