// The entries of a state by key group and key.

import type { Key } from '../../record/contract.ts'
import type { MapKey } from './cursor.ts'
import { NumberEntries } from './number-entries.ts'
import { OtherEntries } from './other-entries.ts'
import { Location, VALUE } from './slots.ts'

export class KeyEntries<Value> {
  /** By group. Number keys have tables of their own (number-entries.ts). */
  private readonly numbers: readonly NumberEntries[]
  private readonly others: readonly OtherEntries[]
  private readonly location = new Location()

  constructor(groupCount: number) {
    this.numbers = Array.from({ length: groupCount }, () => new NumberEntries())
    this.others = Array.from({ length: groupCount }, () => new OtherEntries())
  }

  /** `hash` is keyHash of the key, here and below. */
  find(group: number, mapKey: MapKey, hash: number, location: Location): void {
    if (typeof mapKey === 'number') this.numbers[group]!.find(mapKey, hash, location)
    else this.others[group]!.find(mapKey, location)
  }

  get(group: number, mapKey: MapKey, hash: number): Value | undefined {
    const { location } = this
    this.find(group, mapKey, hash, location)
    return location.at < 0 ? undefined : (location.slots[location.at + VALUE] as Value)
  }

  /** Of a number key's group: what lies where a search for it begins (prefetch.ts). */
  first(group: number, hash: number): unknown {
    return this.numbers[group]!.first(hash)
  }

  /** The key must not be there yet. `location` gets its place. */
  add(
    {
      group,
      mapKey,
      hash,
      key,
    }: { readonly group: number; readonly mapKey: MapKey; readonly hash: number; readonly key: Key },
    value: Value,
    epoch: number,
    location = this.location,
  ): void {
    if (typeof mapKey === 'number') this.numbers[group]!.add(mapKey, hash, value, epoch, location)
    else this.others[group]!.add(mapKey, key, value, epoch, location)
  }

  /** Nothing happens when there is none. */
  remove(group: number, mapKey: MapKey, hash: number): void {
    const { location } = this
    this.find(group, mapKey, hash, location)
    if (location.at < 0) return
    if (typeof mapKey === 'number') this.numbers[group]!.remove(location)
    else this.others[group]!.remove(mapKey, location)
  }

  /** So many entries come into the group, of keys like this one. */
  reserve(group: number, key: Key, count: number): void {
    if (typeof key === 'number') this.numbers[group]!.reserve(count)
  }

  /**
   * Goes over the entries of a group: those that are there from the beginning of the walk to its end, and some of those that come or go
   * meanwhile. One that is moved meanwhile may be met twice. It is the same object each time.
   */
  *walk(group: number): Generator<Location> {
    const location = new Location()
    yield* this.others[group]!.walk(location)
    yield* this.numbers[group]!.walk(location)
  }

  *values(group: number): Generator<Value> {
    for (const { slots, at } of this.walk(group)) yield slots[at + VALUE] as Value
  }

  keys(group: number): Key[] {
    return Array.from(this.walk(group), ({ slots, at }) => slots[at] as Key)
  }
}
