// Map state: per key group each key's entries. Saved, written and (later) incremented entry by entry.

import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import type { ByteReader, ByteWriter, Key } from '../../record/contract.ts'
import { keyHash } from '../../record/key-group.ts'
import { decodeKey, encodeKey, mapKeyOf } from '../../record/key.ts'
import { stateError } from '../errors.ts'
import { detachString } from '../../record/detach.ts'
import { entryOperation } from '../segment.ts'
import type { BlockWriter, Pace } from '../segment.ts'
import { ownKey, ownMapKey } from './cursor.ts'
import type { Cursor } from './cursor.ts'
import { KeyEntries } from './key-entries.ts'
import { ENTRIES_BETWEEN_CHECKS, loaderBy, readPut, SavedEntries } from './table.ts'
import type { StateTable } from './table.ts'
import type { ValueFormat } from './value-format.ts'

export type EntryKey = string | number

export class MapCell {
  value: unknown
  /** As EPOCH in slots.ts. */
  epoch: number

  constructor(value: unknown, epoch: number) {
    this.value = value
    this.epoch = epoch
  }
}

interface EntriesOfKey {
  readonly key: Key
  readonly cells: Map<EntryKey, MapCell>
}

/** What every put into a map state must hold to. */
export function checkEntryKey(entryKey: EntryKey, mapKey: 'string' | 'number', name: string): void {
  if (typeof entryKey === mapKey && !Number.isNaN(entryKey)) return
  throw stateError('MR-T07', `Map state '${name}' has ${mapKey} keys and was given ${typeof entryKey} ${entryKey}.`)
}

export class MapTable implements StateTable {
  readonly description: KeyedStateDescription
  readonly format: ValueFormat
  readonly mapKey: 'string' | 'number'
  /** Set once values were changed in place: what the snapshot does to them (own-strings.ts). */
  renew: ((value: unknown) => unknown) | undefined = undefined
  private readonly cursor: Cursor
  private readonly keys: KeyEntries<EntriesOfKey>
  private saved = new SavedEntries()
  private found: EntriesOfKey | undefined = undefined
  private foundAt = -1
  entryCount = 0

  constructor(
    description: KeyedStateDescription,
    format: ValueFormat,
    mapKey: 'string' | 'number',
    cursor: Cursor,
    groupCount: number,
  ) {
    this.description = description
    this.format = format
    this.mapKey = mapKey
    this.cursor = cursor
    this.keys = new KeyEntries(groupCount)
  }

  /** The current key's entries; undefined when it has none. */
  entries(): Map<EntryKey, MapCell> | undefined {
    return this.find()?.cells
  }

  put(entryKey: EntryKey, value: unknown): void {
    checkEntryKey(entryKey, this.mapKey, this.description.name)
    const entries = this.find() ?? this.insert()
    const cell = entries.cells.get(entryKey)
    if (cell === undefined) {
      const key = typeof entryKey === 'string' ? detachString(entryKey) : entryKey
      entries.cells.set(key, new MapCell(value, this.cursor.epoch))
      this.entryCount++
    } else {
      this.beforeChange(entryKey, cell)
      cell.value = value
    }
  }

  /** To be called before the cell's value is changed in place. */
  beforeChange(entryKey: EntryKey, cell: MapCell): void {
    if (cell.epoch < this.cursor.cutEpoch) this.save(this.found!.key, entryKey, cell)
  }

  remove(entryKey: EntryKey): void {
    const entries = this.find()
    const cell = entries?.cells.get(entryKey)
    if (entries === undefined || cell === undefined) return
    this.beforeChange(entryKey, cell)
    entries.cells.delete(entryKey)
    this.entryCount--
    if (entries.cells.size === 0) this.drop()
  }

  removeAll(): void {
    const entries = this.find()
    if (entries === undefined) return
    if (this.cursor.cutEpoch > 0) {
      for (const [entryKey, cell] of entries.cells) this.beforeChange(entryKey, cell)
    }
    this.entryCount -= entries.cells.size
    this.drop()
  }

  private find(): EntriesOfKey | undefined {
    const cursor = this.cursor
    if (this.foundAt !== cursor.version) {
      this.found = this.keys.get(cursor.requireGroup(), cursor.mapKey, cursor.hash)
      this.foundAt = cursor.version
    }
    return this.found
  }

  private insert(): EntriesOfKey {
    const cursor = this.cursor
    const { group, hash } = cursor
    const key = ownKey(cursor.key!)
    const entries: EntriesOfKey = { key, cells: new Map() }
    this.keys.add({ group, mapKey: ownMapKey(cursor.mapKey, key), hash, key }, entries, cursor.epoch)
    this.found = entries
    return entries
  }

  private drop(): void {
    const { group, mapKey, hash } = this.cursor
    this.keys.remove(group, mapKey, hash)
    this.found = undefined
  }

  private save(key: Key, entryKey: EntryKey, cell: MapCell): void {
    this.write(key, entryKey, cell, this.saved.next(this.cursor.group))
    cell.epoch = this.cursor.cutEpoch
  }

  private write(key: Key, entryKey: EntryKey, cell: MapCell, writer: ByteWriter): void {
    writer.u8(entryOperation.put)
    encodeKey(key, writer)
    encodeKey(entryKey, writer)
    this.format.encode(cell.value, writer)
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
    // Both Maps may change during a pause; CellTable.writeGroup says why the walk stays right. The entries of a key removed
    // meanwhile were saved, and carry the cut's epoch.
    for (const { key, cells } of this.keys.values(group)) {
      for (const [entryKey, cell] of cells) {
        if (cell.epoch < cutEpoch) {
          this.write(key, entryKey, cell, block.entries)
          block.endEntry()
          cell.epoch = cutEpoch
          if (this.renew !== undefined) cell.value = this.renew(cell.value)
        }
        if (--untilCheck === 0) {
          untilCheck = ENTRIES_BETWEEN_CHECKS
          if (pace.shouldYield()) await pace.pause()
        }
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
    const epoch = this.cursor.epoch
    for (let index = 0; index < count; index++) {
      readPut(reader)
      const key = decodeKey(reader)
      const mapKey = mapKeyOf(key)
      const hash = keyHash(key)
      const entryKey = decodeKey(reader) as EntryKey
      let entries = this.keys.get(group, mapKey, hash)
      if (entries === undefined) {
        entries = { key, cells: new Map() }
        this.keys.add({ group, mapKey, hash, key }, entries, epoch)
      }
      entries.cells.set(entryKey, new MapCell(decode(reader), epoch))
    }
    this.entryCount += count
    this.forgetFound()
  }

  keysOf(group: number): readonly Key[] {
    return this.keys.keys(group)
  }

  forgetFound(): void {
    this.foundAt = -1
    this.found = undefined
  }
}
