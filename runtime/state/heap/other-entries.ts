// The entries of one key group whose keys are no numbers: found by a Map, which knows the hashes of its texts.

import type { MapKey } from './cursor.ts'
import { EPOCH, STRIDE, VALUE } from './slots.ts'
import type { Location, Slots } from './slots.ts'

export class OtherEntries {
  private readonly places = new Map<MapKey, number>()
  private slots: Slots = []
  /** Of removed entries, for those that come. */
  private free: number[] = []

  get size(): number {
    return this.places.size
  }

  find(mapKey: MapKey, location: Location): void {
    location.slots = this.slots
    location.at = this.places.get(mapKey) ?? -1
  }

  /** The key must not be there yet. `location` gets its place. */
  add(mapKey: MapKey, key: unknown, value: unknown, epoch: number, location: Location): void {
    const { slots } = this
    const at = this.free.pop() ?? slots.length
    // In this order: an array without holes grows by its end.
    slots[at] = key
    slots[at + VALUE] = value
    slots[at + EPOCH] = epoch
    this.places.set(mapKey, at)
    location.slots = slots
    location.at = at
  }

  /** `location` is where find found it. */
  remove(mapKey: MapKey, { slots, at }: Location): void {
    this.places.delete(mapKey)
    slots[at] = undefined
    slots[at + VALUE] = undefined
    this.free.push(at)
    // Mostly free, it gives the memory back.
    if (this.free.length > FREE_MIN && this.free.length * STRIDE > slots.length * FREE_SHARE_MAX) this.compact()
  }

  /** As NumberEntries.walk. */
  *walk(location: Location): Generator<Location> {
    for (const at of this.places.values()) {
      location.slots = this.slots
      location.at = at
      yield location
    }
  }

  private compact(): void {
    const { slots } = this
    this.slots = []
    this.free = []
    for (const [mapKey, at] of this.places) {
      this.places.set(mapKey, this.slots.length)
      this.slots.push(slots[at], slots[at + VALUE], slots[at + EPOCH])
    }
  }
}

/** Below, there is no memory worth giving back. */
const FREE_MIN = 64
const FREE_SHARE_MAX = 7 / 8
