// As cell-table.ts, for a state with a time to live: each cell knows when it was refreshed last, and expired ones go. A table of its own,
// so that states without a time to live pay nothing for it.

import type { KeyedStateDescription } from '../../checkpoint/contract.ts'
import type { ByteReader, ByteWriter, Key } from '../../record/contract.ts'
import { decodeKey, encodeKey, mapKeyOf } from '../../record/key.ts'
import { entryOperation } from '../segment.ts'
import type { BlockWriter, Pace } from '../segment.ts'
import type { Cells } from './cell-table.ts'
import { ownKey, ownMapKey } from './cursor.ts'
import type { Cursor, MapKey } from './cursor.ts'
import { ENTRIES_BETWEEN_CHECKS, loaderBy, readPut, SavedEntries } from './table.ts'
import type { StateTable } from './table.ts'
import { EntryWalk, LOOKS_PER_USE } from './time-to-live.ts'
import type { TimeToLive } from './time-to-live.ts'
import type { TimedDecoder, TimedFormat, TimedValue } from './value-format.ts'

export class TimedCell {
  readonly key: Key
  value: unknown
  /** The snapshot in which this cell was created, written or saved last (Cursor.cutEpoch). */
  epoch: number
  /** Wall time, ms; of a list the newest of its items'. */
  refreshedAtMs: number

  constructor(key: Key, value: unknown, epoch: number, refreshedAtMs: number) {
    this.key = key
    this.value = value
    this.epoch = epoch
    this.refreshedAtMs = refreshedAtMs
  }
}

export interface TimedTableOptions {
  readonly description: KeyedStateDescription
  readonly format: TimedFormat
  readonly life: TimeToLive
  readonly cursor: Cursor
  readonly groupCount: number
}

export class TimedCellTable implements StateTable, Cells {
  readonly description: KeyedStateDescription
  readonly life: TimeToLive
  renew: ((value: unknown) => unknown) | undefined = undefined
  private readonly format: TimedFormat
  private readonly cursor: Cursor
  private readonly groups: Map<MapKey, TimedCell>[]
  private readonly walk: EntryWalk<TimedCell>
  private saved = new SavedEntries()
  private found: TimedCell | undefined = undefined
  private foundAt = -1
  /** When the running snapshot began: what had expired by then is not in it. */
  private cutMs = 0
  private readonly livesAtCut = (refreshedAtMs: number): boolean => !this.life.hasExpired(refreshedAtMs, this.cutMs)

  constructor(options: TimedTableOptions) {
    this.description = options.description
    this.format = options.format
    this.life = options.life
    this.cursor = options.cursor
    this.groups = Array.from({ length: options.groupCount }, () => new Map<MapKey, TimedCell>())
    this.walk = new EntryWalk(this.groups)
  }

  /** A read: the current key's cell, refreshed where reads do that; an expired one only where the state may return it. */
  find(): boolean {
    const nowMs = this.life.nowMs()
    const cell = this.peek(nowMs)
    if (cell === undefined) return false
    if (!this.life.refreshesOnRead) return true
    if (cell.refreshedAtMs !== nowMs && !this.life.hasExpired(cell.refreshedAtMs, nowMs)) this.refresh(cell, nowMs)
    return true
  }

  get value(): unknown {
    return this.found!.value
  }

  /** As `find`, without refreshing. */
  peek(nowMs: number): TimedCell | undefined {
    const cell = this.look(nowMs)
    if (cell === undefined || this.life.returnsExpired || !this.life.hasExpired(cell.refreshedAtMs, nowMs)) return cell
    this.removeCell(cell, this.cursor.group)
    return undefined
  }

  put(value: unknown): void {
    const nowMs = this.life.nowMs()
    const cell = this.look(nowMs)
    if (cell === undefined) this.insert(value, nowMs)
    else {
      this.refresh(cell, nowMs)
      cell.value = value
    }
  }

  beforeChange(): void {
    this.refresh(this.found!, this.life.nowMs())
  }

  replace(value: unknown): void {
    // The change may have removed it.
    if (this.found !== undefined) this.found.value = value
  }

  /** Before a change that is no write: the snapshot must not see it. */
  keepForSnapshot(cell: TimedCell, group = this.cursor.group): void {
    if (cell.epoch < this.cursor.cutEpoch) this.save(cell, group)
  }

  remove(): void {
    const cell = this.look(this.life.nowMs())
    if (cell !== undefined) this.removeCell(cell, this.cursor.group)
  }

  private refresh(cell: TimedCell, nowMs: number): void {
    this.keepForSnapshot(cell)
    cell.refreshedAtMs = nowMs
  }

  private look(nowMs: number): TimedCell | undefined {
    const cursor = this.cursor
    if (this.foundAt !== cursor.version) {
      const group = cursor.requireGroup()
      this.cleanSome(nowMs)
      this.found = this.groups[group]!.get(cursor.mapKey)
      this.foundAt = cursor.version
    }
    return this.found
  }

  private insert(value: unknown, nowMs: number): void {
    const cursor = this.cursor
    const key = ownKey(cursor.key!)
    const cell = new TimedCell(key, value, cursor.epoch, nowMs)
    this.groups[cursor.group]!.set(ownMapKey(cursor.mapKey, key), cell)
    this.found = cell
  }

  /** Else the memory of keys that never come again would grow for ever. */
  private cleanSome(nowMs: number): void {
    for (let looks = 0; looks < LOOKS_PER_USE; looks++) {
      const cell = this.walk.next()
      if (cell === undefined) continue
      if (this.life.hasExpired(cell.refreshedAtMs, nowMs)) this.removeCell(cell, this.walk.group)
      else if (this.description.kind === 'list') this.dropOldItems(cell, nowMs, this.walk.group)
    }
  }

  /**
   * Of a list that has not expired: its first items, as far as they have. Items are in the order of their times but for clocks set back,
   * so the rest has none, or some that stay in memory longer by the jump.
   */
  dropOldItems(cell: TimedCell, nowMs: number, group = this.cursor.group): void {
    const items = cell.value as TimedValue[]
    let expired = 0
    while (expired < items.length && this.life.hasExpired(items[expired]!.refreshedAtMs, nowMs)) expired++
    if (expired === 0) return
    this.keepForSnapshot(cell, group)
    items.splice(0, expired)
  }

  private removeCell(cell: TimedCell, group: number): void {
    this.keepForSnapshot(cell, group)
    this.groups[group]!.delete(mapKeyOf(cell.key))
    if (this.found === cell) this.found = undefined
  }

  private save(cell: TimedCell, group: number): void {
    if (this.livesAtCut(cell.refreshedAtMs)) this.write(cell, this.saved.next(group))
    cell.epoch = this.cursor.cutEpoch
  }

  private write(cell: TimedCell, writer: ByteWriter): void {
    writer.u8(entryOperation.put)
    encodeKey(cell.key, writer)
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
    // CellTable.writeGroup says why the walk stays right while the Map changes.
    for (const cell of this.groups[group]!.values()) {
      if (cell.epoch < cutEpoch) {
        if (this.livesAtCut(cell.refreshedAtMs)) {
          this.write(cell, block.entries)
          block.endEntry()
          cell.epoch = cutEpoch
          if (this.renew !== undefined) cell.value = this.renew(cell.value)
        } else this.removeCell(cell, group)
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

  private load(group: number, reader: ByteReader, count: number, decode: TimedDecoder): void {
    const cells = this.groups[group]!
    const epoch = this.cursor.epoch
    const nowMs = this.life.nowMs()
    for (let index = 0; index < count; index++) {
      readPut(reader)
      const key = decodeKey(reader)
      const { value, refreshedAtMs } = decode(reader, nowMs)
      if (this.life.hasExpired(refreshedAtMs, nowMs)) continue
      cells.set(mapKeyOf(key), new TimedCell(key, value, epoch, refreshedAtMs))
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

  get entryCount(): number {
    let count = 0
    for (const cells of this.groups) count += cells.size
    return count
  }
}
