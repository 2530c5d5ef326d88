// As map-table.ts, for a map state with a time to live: each entry knows when it was refreshed last, and expired ones go.

import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import type { ByteReader, ByteWriter, Key } from '../../record/contract.ts'
import { decodeKey, encodeKey, mapKeyOf } from '../../record/key.ts'
import { entryOperation } from '../segment.ts'
import type { BlockWriter, Pace } from '../segment.ts'
import { ownKey, ownMapKey } from './cursor.ts'
import type { Cursor, MapKey } from './cursor.ts'
import { checkEntryKey, MapCell } from './map-table.ts'
import type { EntryKey } from './map-table.ts'
import { ENTRIES_BETWEEN_CHECKS, loaderBy, readPut, SavedEntries } from './table.ts'
import type { StateTable } from './table.ts'
import type { TimedTableOptions } from './timed-cell-table.ts'
import { EntryWalk, LOOKS_PER_USE } from './time-to-live.ts'
import type { TimeToLive } from './time-to-live.ts'
import type { TimedDecoder, TimedFormat } from './value-format.ts'

class TimedMapCell extends MapCell {
  readonly entryKey: EntryKey
  /** Wall time, ms. */
  refreshedAtMs: number

  constructor(entryKey: EntryKey, value: unknown, epoch: number, refreshedAtMs: number) {
    super(value, epoch)
    this.entryKey = entryKey
    this.refreshedAtMs = refreshedAtMs
  }
}

interface KeyEntries {
  readonly key: Key
  readonly group: number
  readonly cells: Map<EntryKey, TimedMapCell>
}

export class TimedMapTable implements StateTable {
  readonly description: KeyedStateDescription
  renew: ((value: unknown) => unknown) | undefined = undefined
  entryCount = 0
  private readonly format: TimedFormat
  private readonly life: TimeToLive
  private readonly mapKey: 'string' | 'number'
  private readonly cursor: Cursor
  private readonly groups: Map<MapKey, KeyEntries>[]
  private readonly walk: EntryWalk<KeyEntries>
  /** The key that the walk is at, and where among its entries. */
  private walked: { readonly entries: KeyEntries; readonly cells: Iterator<TimedMapCell> } | undefined = undefined
  private saved = new SavedEntries()
  private found: KeyEntries | undefined = undefined
  private foundAt = -1
  /** When the running snapshot began: what had expired by then is not in it. */
  private cutMs = 0
  private readonly livesAtCut = (refreshedAtMs: number): boolean => !this.life.hasExpired(refreshedAtMs, this.cutMs)

  constructor(options: TimedTableOptions & { readonly mapKey: 'string' | 'number' }) {
    this.description = options.description
    this.format = options.format
    this.life = options.life
    this.mapKey = options.mapKey
    this.cursor = options.cursor
    this.groups = Array.from({ length: options.groupCount }, () => new Map<MapKey, KeyEntries>())
    this.walk = new EntryWalk(this.groups)
  }

  /** A read: the entry, refreshed where reads do that; an expired one only where the state may return it. */
  read(entryKey: EntryKey): TimedMapCell | undefined {
    const nowMs = this.life.nowMs()
    const entries = this.look(nowMs)
    const cell = entries?.cells.get(entryKey)
    return entries !== undefined && cell !== undefined && this.mayReturn(entries, cell, nowMs)
      ? this.refreshedByRead(entries, cell, nowMs)
      : undefined
  }

  /** A read of all of the current key's entries. */
  readAll(): TimedMapCell[] {
    const nowMs = this.life.nowMs()
    const entries = this.look(nowMs)
    if (entries === undefined) return []
    const cells = [...entries.cells.values()].filter((cell) => this.mayReturn(entries, cell, nowMs))
    for (const cell of cells) this.refreshedByRead(entries, cell, nowMs)
    return cells
  }

  /** How many entries `readAll` would give; refreshes none of them. */
  count(): number {
    const nowMs = this.life.nowMs()
    const entries = this.look(nowMs)
    if (entries === undefined) return 0
    // A deletion meanwhile does not disturb the walk over a Map.
    for (const cell of entries.cells.values()) this.mayReturn(entries, cell, nowMs)
    return entries.cells.size
  }

  put(entryKey: EntryKey, value: unknown): void {
    checkEntryKey(entryKey, this.mapKey, this.description.name)
    const nowMs = this.life.nowMs()
    const entries = this.look(nowMs) ?? this.insert()
    const cell = entries.cells.get(entryKey)
    if (cell === undefined) {
      const key = ownKey(entryKey) as EntryKey
      entries.cells.set(key, new TimedMapCell(key, value, this.cursor.epoch, nowMs))
      this.entryCount++
      // One key may get any number of entries: the walk must gain on each.
      this.cleanSome(nowMs)
    } else {
      this.refresh(entries, cell, nowMs)
      cell.value = value
    }
  }

  /** To be called before the value of a cell of the current key is changed in place. */
  beforeChange(cell: TimedMapCell): void {
    this.refresh(this.found!, cell, this.life.nowMs())
  }

  remove(entryKey: EntryKey): void {
    const entries = this.look(this.life.nowMs())
    const cell = entries?.cells.get(entryKey)
    if (entries !== undefined && cell !== undefined) this.removeCell(entries, cell)
  }

  removeAll(): void {
    const entries = this.look(this.life.nowMs())
    if (entries !== undefined) for (const cell of entries.cells.values()) this.removeCell(entries, cell)
  }

  /** Where not, the cell is removed: what was seen to be gone must not come back when the clock is set back. */
  private mayReturn(entries: KeyEntries, cell: TimedMapCell, nowMs: number): boolean {
    if (this.life.returnsExpired || !this.life.hasExpired(cell.refreshedAtMs, nowMs)) return true
    this.removeCell(entries, cell)
    return false
  }

  private refreshedByRead(entries: KeyEntries, cell: TimedMapCell, nowMs: number): TimedMapCell {
    const due = this.life.refreshesOnRead && cell.refreshedAtMs !== nowMs
    if (due && !this.life.hasExpired(cell.refreshedAtMs, nowMs)) this.refresh(entries, cell, nowMs)
    return cell
  }

  private refresh(entries: KeyEntries, cell: TimedMapCell, nowMs: number): void {
    this.keepForSnapshot(entries, cell)
    cell.refreshedAtMs = nowMs
  }

  private look(nowMs: number): KeyEntries | undefined {
    const cursor = this.cursor
    if (this.foundAt !== cursor.version) {
      const group = cursor.requireGroup()
      this.cleanSome(nowMs)
      this.found = this.groups[group]!.get(cursor.mapKey)
      this.foundAt = cursor.version
    }
    return this.found
  }

  private insert(): KeyEntries {
    const { key: current, mapKey, group } = this.cursor
    const key = ownKey(current!)
    const entries: KeyEntries = { key, group, cells: new Map() }
    this.groups[group]!.set(ownMapKey(mapKey, key), entries)
    this.found = entries
    return entries
  }

  private cleanSome(nowMs: number): void {
    for (let looks = 0; looks < LOOKS_PER_USE; looks++) {
      if (this.walked === undefined) {
        const entries = this.walk.next()
        this.walked = entries && { entries, cells: entries.cells.values() }
        continue
      }
      const { entries, cells } = this.walked
      const step = cells.next()
      if (step.done === true) this.walked = undefined
      else if (this.life.hasExpired(step.value.refreshedAtMs, nowMs)) this.removeCell(entries, step.value)
    }
  }

  private removeCell(entries: KeyEntries, cell: TimedMapCell): void {
    this.keepForSnapshot(entries, cell)
    entries.cells.delete(cell.entryKey)
    this.entryCount--
    if (entries.cells.size > 0) return
    this.groups[entries.group]!.delete(mapKeyOf(entries.key))
    if (this.found === entries) this.found = undefined
  }

  private keepForSnapshot({ key, group }: KeyEntries, cell: TimedMapCell): void {
    if (cell.epoch >= this.cursor.cutEpoch) return
    if (this.livesAtCut(cell.refreshedAtMs)) this.write(key, cell, this.saved.next(group))
    cell.epoch = this.cursor.cutEpoch
  }

  private write(key: Key, cell: TimedMapCell, writer: ByteWriter): void {
    writer.u8(entryOperation.put)
    encodeKey(key, writer)
    encodeKey(cell.entryKey, writer)
    this.format.encode(cell, writer, this.livesAtCut)
  }

  freeze(): void {
    this.saved = new SavedEntries()
    this.cutMs = this.life.nowMs()
  }

  thaw(): void {
    this.saved = new SavedEntries()
  }

  async writeGroup(group: number, block: BlockWriter, pace: Pace): Promise<void> {
    const cutEpoch = this.cursor.cutEpoch
    let untilCheck = ENTRIES_BETWEEN_CHECKS
    // MapTable.writeGroup says why the walk stays right while the Maps change.
    for (const entries of this.groups[group]!.values()) {
      for (const cell of entries.cells.values()) {
        if (cell.epoch < cutEpoch) {
          if (this.livesAtCut(cell.refreshedAtMs)) {
            this.write(entries.key, cell, block.entries)
            block.endEntry()
            cell.epoch = cutEpoch
            if (this.renew !== undefined) cell.value = this.renew(cell.value)
          } else this.removeCell(entries, cell)
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

  private load(group: number, reader: ByteReader, count: number, decode: TimedDecoder): void {
    const table = this.groups[group]!
    const epoch = this.cursor.epoch
    const nowMs = this.life.nowMs()
    for (let index = 0; index < count; index++) {
      readPut(reader)
      const key = decodeKey(reader)
      const entryKey = decodeKey(reader) as EntryKey
      const { value, refreshedAtMs } = decode(reader, nowMs)
      if (this.life.hasExpired(refreshedAtMs, nowMs)) continue
      const mapKey = mapKeyOf(key)
      let entries = table.get(mapKey)
      if (entries === undefined) {
        entries = { key, group, cells: new Map() }
        table.set(mapKey, entries)
      }
      entries.cells.set(entryKey, new TimedMapCell(entryKey, value, epoch, refreshedAtMs))
      this.entryCount++
    }
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
