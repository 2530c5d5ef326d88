// A state with one entry per key: value, list, reducing, aggregating. Per key group the cells, found by key.

import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import type { ByteReader, ByteWriter, Key } from '../../record/contract.ts'
import { keyHash } from '../../record/key-group.ts'
import { decodeKey, encodeKey, mapKeyOf } from '../../record/key.ts'
import { entryOperation } from '../segment.ts'
import type { BlockWriter, Pace } from '../segment.ts'
import { ownKey, ownMapKey } from './cursor.ts'
import type { Cursor } from './cursor.ts'
import { GroupEntries } from './group-entries.ts'
import { ENTRIES_BETWEEN_CHECKS, loaderBy, readPut, SavedEntries } from './table.ts'
import type { StateTable } from './table.ts'
import type { ValueFormat } from './value-format.ts'

export class Cell {
  readonly key: Key
  value: unknown
  /** The snapshot in which this cell was created, written or saved last (Cursor.cutEpoch). */
  epoch: number

  constructor(key: Key, value: unknown, epoch: number) {
    this.key = key
    this.value = value
    this.epoch = epoch
  }
}

/** What the handles of such states stand on. */
export interface Cells {
  /** Set once values were changed in place: what the snapshot does to them (own-strings.ts). */
  renew: ((value: unknown) => unknown) | undefined
  /** The current key's cell; looked up once per key, however often it is asked. */
  find(): Cell | undefined
  put(value: unknown): void
  /** To be called before the cell's value is changed in place. */
  beforeChange(cell: Cell): void
  remove(): void
}

export class CellTable implements StateTable, Cells {
  readonly description: KeyedStateDescription
  readonly format: ValueFormat
  renew: ((value: unknown) => unknown) | undefined = undefined
  private readonly cursor: Cursor
  private readonly groups: GroupEntries<Cell>[]
  private saved = new SavedEntries()
  private found: Cell | undefined = undefined
  private foundAt = -1
  /** What `fetch` is at. */
  private readonly fetched: (Cell | undefined)[] = []
  entryCount = 0

  constructor(description: KeyedStateDescription, format: ValueFormat, cursor: Cursor, groupCount: number) {
    this.description = description
    this.format = format
    this.cursor = cursor
    this.groups = Array.from({ length: groupCount }, () => new GroupEntries<Cell>())
  }

  find(): Cell | undefined {
    const cursor = this.cursor
    if (this.foundAt !== cursor.version) {
      this.found = this.groups[cursor.requireGroup()]!.get(cursor.mapKey, cursor.hash)
      this.foundAt = cursor.version
    }
    return this.found
  }

  /** The first `count` keys' cells and values are read, so that they are in the caches (prefetch.ts). What it returns means nothing. */
  fetch(keyGroups: Uint32Array, hashes: Uint32Array, count: number): number {
    const { groups, fetched } = this
    let seen = 0
    // Loops of their own: each read of one would wait for the read before it, if they were one.
    for (let index = 0; index < count; index++) fetched[index] = groups[keyGroups[index]!]?.candidate(hashes[index]!)
    for (let index = 0; index < count; index++) seen += fetched[index]?.epoch ?? 0
    for (let index = 0; index < count; index++) if (typeof fetched[index]?.value === 'object') seen++
    return seen
  }

  put(value: unknown): void {
    const cell = this.find()
    if (cell === undefined) this.insert(value)
    else {
      if (cell.epoch < this.cursor.cutEpoch) this.save(cell)
      cell.value = value
    }
  }

  beforeChange(cell: Cell): void {
    if (cell.epoch < this.cursor.cutEpoch) this.save(cell)
  }

  remove(): void {
    const cell = this.find()
    if (cell === undefined) return
    if (cell.epoch < this.cursor.cutEpoch) this.save(cell)
    const { group, mapKey, hash } = this.cursor
    this.groups[group]!.remove(mapKey, hash)
    this.entryCount--
    this.found = undefined
  }

  private insert(value: unknown): void {
    const cursor = this.cursor
    const key = ownKey(cursor.key!)
    const cell = new Cell(key, value, cursor.epoch)
    this.groups[cursor.group]!.set(ownMapKey(cursor.mapKey, key), cursor.hash, cell)
    this.entryCount++
    this.found = cell
  }

  private save(cell: Cell): void {
    this.write(cell, this.saved.next(this.cursor.group))
    cell.epoch = this.cursor.cutEpoch
  }

  private write(cell: Cell, writer: ByteWriter): void {
    writer.u8(entryOperation.put)
    encodeKey(cell.key, writer)
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
    // The group may change during a pause: what is removed was saved, what is new is no older than the cut, so it does not matter whether the walk meets it.
    for (const cell of this.groups[group]!.values()) {
      if (cell.epoch < cutEpoch) {
        this.write(cell, block.entries)
        block.endEntry()
        cell.epoch = cutEpoch
        if (this.renew !== undefined) cell.value = this.renew(cell.value)
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
    const cells = this.groups[group]!
    const epoch = this.cursor.epoch
    for (let index = 0; index < count; index++) {
      readPut(reader)
      const key = decodeKey(reader)
      cells.set(mapKeyOf(key), keyHash(key), new Cell(key, decode(reader), epoch))
    }
    this.entryCount += count
    this.forgetFound()
  }

  keysOf(group: number): readonly Key[] {
    return Array.from(this.groups[group]!.values(), ({ key }) => key)
  }

  forgetFound(): void {
    this.foundAt = -1
    this.found = undefined
  }
}
