// A state with one entry per key: value, list, reducing, aggregating. The entries by key group and key.

import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import type { ByteReader, ByteWriter, Key } from '../../record/contract.ts'
import { keyHash } from '../../record/key-group.ts'
import { decodeKey, encodeKey, mapKeyOf } from '../../record/key.ts'
import { entryOperation } from '../segment.ts'
import type { BlockWriter, Pace } from '../segment.ts'
import { ownKey, ownMapKey } from './cursor.ts'
import type { Cursor } from './cursor.ts'
import { KeyEntries } from './key-entries.ts'
import { EPOCH, Location, VALUE } from './slots.ts'
import type { Slots } from './slots.ts'
import { ENTRIES_BETWEEN_CHECKS, loaderBy, readPut, SavedEntries } from './table.ts'
import type { StateTable } from './table.ts'
import type { ValueFormat } from './value-format.ts'

/** What the handles of such states stand on. */
export interface Cells {
  /** Set once values were changed in place: what the snapshot does to them (own-strings.ts). */
  renew: ((value: unknown) => unknown) | undefined
  /** Whether the current key has a value; looked up once per key, however often it is asked. */
  find(): boolean
  /** What find found. */
  readonly value: unknown
  put(value: unknown): void
  /** To be called before what find found is changed in place. */
  beforeChange(): void
  /** After that: the value that the change brought. */
  replace(value: unknown): void
  remove(): void
}

/**
 * Entries from which on waiting for memory costs more than the second look at each key (prefetch.ts); fewer stay in the caches by themselves.
 * Bytes are three objects, one of them outside of the heap. Measured by a keyed update of values of 100 bytes.
 */
const ENTRIES_MIN = 50_000
const ENTRIES_OF_BYTES_MIN = 4_000

export class CellTable implements StateTable, Cells {
  readonly description: KeyedStateDescription
  readonly format: ValueFormat
  renew: ((value: unknown) => unknown) | undefined = undefined
  private readonly cursor: Cursor
  private readonly entries: KeyEntries<unknown>
  private saved = new SavedEntries()
  private readonly found = new Location()
  private foundAt = -1
  /** What `fetch` is at. */
  private readonly fetched: unknown[] = []
  private readonly fetching = new Location()
  entryCount = 0
  /** Of the newest entry. */
  private holdsBytes = false

  constructor(description: KeyedStateDescription, format: ValueFormat, cursor: Cursor, groupCount: number) {
    this.description = description
    this.format = format
    this.cursor = cursor
    this.entries = new KeyEntries(groupCount)
  }

  find(): boolean {
    const { cursor, found } = this
    if (this.foundAt !== cursor.version) {
      this.entries.find(cursor.requireGroup(), cursor.mapKey, cursor.hash, found)
      this.foundAt = cursor.version
    }
    return found.at >= 0
  }

  get value(): unknown {
    const { slots, at } = this.found
    return slots[at + VALUE]
  }

  /** Whether it holds more than the caches. */
  get outgrowsCaches(): boolean {
    return this.entryCount >= (this.holdsBytes ? ENTRIES_OF_BYTES_MIN : ENTRIES_MIN)
  }

  /** The first `count` keys' entries and values are read, so that they are in the caches (prefetch.ts). What it returns means nothing. */
  fetch(keyGroups: Uint32Array, hashes: Int32Array, keys: Float64Array, count: number): number {
    const { entries, fetched, fetching } = this
    let seen = 0
    // A look may move entries.
    this.foundAt = -1
    // Loops of their own: each read of one would wait for the read before it, if they were one.
    for (let index = 0; index < count; index++) fetched[index] = entries.first(keyGroups[index]!, hashes[index]!)
    for (let index = 0; index < count; index++) {
      entries.find(keyGroups[index]!, keys[index]!, hashes[index]!, fetching)
      fetched[index] = fetching.at < 0 ? undefined : fetching.slots[fetching.at + VALUE]
    }
    for (let index = 0; index < count; index++) if (typeof fetched[index] === 'object') seen++
    if (fetched[0] instanceof Uint8Array) seen += firstBytes(fetched, count)
    return seen
  }

  put(value: unknown): void {
    if (this.find()) {
      this.beforeChange()
      this.replace(value)
    } else this.insert(value)
  }

  beforeChange(): void {
    const { cutEpoch } = this.cursor
    if (cutEpoch === 0) return
    const { slots, at } = this.found
    if ((slots[at + EPOCH] as number) < cutEpoch) this.save(slots, at)
  }

  replace(value: unknown): void {
    // The change may have removed it.
    if (!this.find()) return
    const { slots, at } = this.found
    // Mostly it is the same, changed in place.
    if (slots[at + VALUE] !== value) slots[at + VALUE] = value
  }

  remove(): void {
    if (!this.find()) return
    this.beforeChange()
    const { group, mapKey, hash } = this.cursor
    this.entries.remove(group, mapKey, hash)
    this.entryCount--
    this.found.at = -1
  }

  private insert(value: unknown): void {
    const { group, mapKey, hash, key, epoch } = this.cursor
    const owned = ownKey(key!)
    this.entries.add({ group, mapKey: ownMapKey(mapKey, owned), hash, key: owned }, value, epoch, this.found)
    this.entryCount++
    this.holdsBytes = value instanceof Uint8Array
  }

  private save(slots: Slots, at: number): void {
    this.write(slots[at] as Key, slots[at + VALUE], this.saved.next(this.cursor.group))
    slots[at + EPOCH] = this.cursor.cutEpoch
  }

  private write(key: Key, value: unknown, writer: ByteWriter): void {
    writer.u8(entryOperation.put)
    encodeKey(key, writer)
    this.format.encode(value, writer)
  }

  freeze(): void {
    this.saved = new SavedEntries()
  }

  thaw(): void {
    this.saved = new SavedEntries()
  }

  async writeGroup(group: number, block: BlockWriter, pace: Pace): Promise<void> {
    const cutEpoch = this.cursor.cutEpoch
    let untilCheck = ENTRIES_BETWEEN_CHECKS
    // The group may change during a pause: what is removed was saved, what is new is no older than the cut, so it does not matter whether the walk meets it.
    for (const { slots, at } of this.entries.walk(group)) {
      if ((slots[at + EPOCH] as number) < cutEpoch) {
        this.write(slots[at] as Key, slots[at + VALUE], block.entries)
        block.endEntry()
        slots[at + EPOCH] = cutEpoch
        if (this.renew !== undefined) slots[at + VALUE] = this.renew(slots[at + VALUE])
      }
      if (--untilCheck === 0) {
        untilCheck = ENTRIES_BETWEEN_CHECKS
        if (pace.shouldYield()) await pace.pause()
      }
    }
    this.saved.moveTo(block, group)
  }

  loaderOf(stored: KeyedStateDescription): ReturnType<StateTable['loaderOf']> {
    const { description: today, format } = this
    return loaderBy({ stored, today, format }, (group, reader, count, decode) =>
      this.load(group, reader, count, decode),
    )
  }

  private load(group: number, reader: ByteReader, count: number, decode: (reader: ByteReader) => unknown): void {
    const { entries, found } = this
    const epoch = this.cursor.epoch
    for (let index = 0; index < count; index++) {
      readPut(reader)
      const key = decodeKey(reader)
      // Each entry takes two bytes or more: a damaged count must not allocate.
      if (index === 0) entries.reserve(group, key, Math.min(count, (reader.end - reader.position) / 2))
      const mapKey = mapKeyOf(key)
      const hash = keyHash(key)
      const value = decode(reader)
      entries.find(group, mapKey, hash, found)
      if (found.at < 0) entries.add({ group, mapKey, hash, key }, value, epoch, found)
      else found.slots[found.at + VALUE] = value
      this.holdsBytes = value instanceof Uint8Array
    }
    this.entryCount += count
    this.forgetFound()
  }

  keysOf(group: number): readonly Key[] {
    return this.entries.keys(group)
  }

  forgetFound(): void {
    this.foundAt = -1
    this.found.at = -1
  }
}

/** Bytes lie behind their object, in memory of their own. */
function firstBytes(values: readonly unknown[], count: number): number {
  let sum = 0
  for (let index = 0; index < count; index++) {
    const value = values[index]
    if (value instanceof Uint8Array && value.length > 0) sum += value[0]!
  }
  return sum
}
