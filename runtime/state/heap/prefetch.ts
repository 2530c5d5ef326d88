// Fetches the state of the next records' keys from memory before they are processed.
//
// With a million keys a record waits for memory two or three times, each time for about as long as all the rest of its work takes:
// its entry, the value, and of bytes what lies behind that. Processed one by one, the records wait one after another; here each step is taken for many
// keys in a tight loop, so that the processor has many reads under way at once. A keyed update of a million keys: 1.6 times
// faster, the second look at each key included. In one loop over whole lookups it was 0.7 times as fast: too few fit into the
// processor's window.

import type { KeyGroup } from '../../base/ids.ts'
import type { Key } from '../../record/contract.ts'
import { groupOfHash, keyHash } from '../../record/key-group.ts'
import type { CellTable } from './cell-table.ts'

/** Keys fetched at once: with entries and values 30 KB, which the first or second cache holds until they are used. */
const KEYS_AT_ONCE = 128

export interface PrefetchOptions {
  readonly first: KeyGroup
  readonly last: KeyGroup
  readonly maxParallelism: number
}

export class Prefetch {
  private readonly options: PrefetchOptions
  private readonly tables: CellTable[] = []
  private readonly hashes = new Int32Array(KEYS_AT_ONCE)
  private readonly groups = new Uint32Array(KEYS_AT_ONCE)
  private readonly keys = new Float64Array(KEYS_AT_ONCE)
  /** Kept, so that the engine does not drop reads that nobody uses. */
  seen = 0

  constructor(options: PrefetchOptions) {
    this.options = options
  }

  add(table: CellTable): void {
    this.tables.push(table)
  }

  /** For values[from] and those behind it; returns how many it is done with, 1 or more. Never throws. */
  run(values: readonly unknown[], from: number, keyOf: (value: unknown) => Key): number {
    const { tables } = this
    let count = -1
    for (let index = 0; index < tables.length; index++) {
      const table = tables[index]!
      if (!table.outgrowsCaches) continue
      if (count < 0) count = this.hash(values, from, keyOf)
      this.seen = (this.seen + table.fetch(this.groups, this.hashes, this.keys, count)) & 1
    }
    // Nothing to fetch, or keys of which nothing can be: nobody need ask again within this batch.
    return count <= 0 ? values.length - from : count
  }

  /** How many have number keys of this range, before the first that has another: others are found by Maps, whose inside is not to be seen. */
  private hash(values: readonly unknown[], from: number, keyOf: (value: unknown) => Key): number {
    const { hashes, groups, keys } = this
    const { first, last, maxParallelism } = this.options
    const count = Math.min(values.length - from, KEYS_AT_ONCE)
    try {
      for (let index = 0; index < count; index++) {
        const key = keyOf(values[from + index])
        if (typeof key !== 'number') return index
        const hash = keyHash(key)
        const group = groupOfHash(hash, maxParallelism) - first
        if (group < 0 || first + group > last) return index
        keys[index] = key
        hashes[index] = hash
        groups[index] = group
      }
    } catch {
      // It will be thrown again, for that record, when its turn comes.
      return 0
    }
    return count
  }
}
