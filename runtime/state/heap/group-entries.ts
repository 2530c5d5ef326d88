// The entries of one key group, found by key.

import type { Key } from '../../record/contract.ts'
import type { MapKey } from './cursor.ts'
import { NumberEntries } from './number-entries.ts'

/** Number keys have a table of their own (number-entries.ts); the others are found by a Map, which knows the hashes of its texts. */
export class GroupEntries<Entry extends { readonly key: Key }> {
  private readonly numbers = new NumberEntries<Entry>()
  private readonly others = new Map<MapKey, Entry>()

  /** `hash` is keyHash of the key, here and below. */
  get(key: MapKey, hash: number): Entry | undefined {
    return typeof key === 'number' ? this.numbers.get(key, hash) : this.others.get(key)
  }

  /** Of number keys only: NumberEntries.candidate. */
  candidate(hash: number): Entry | undefined {
    return this.numbers.candidate(hash)
  }

  set(key: MapKey, hash: number, entry: Entry): void {
    if (typeof key === 'number') this.numbers.set(entry, hash)
    else this.others.set(key, entry)
  }

  remove(key: MapKey, hash: number): void {
    if (typeof key === 'number') this.numbers.remove(key, hash)
    else this.others.delete(key)
  }

  /**
   * Each entry that is there from the beginning of the walk to its end is met, once. Entries may come and go meanwhile: of those, some
   * are met.
   */
  *values(): Generator<Entry> {
    yield* this.others.values()
    yield* this.numbers.values()
  }
}
