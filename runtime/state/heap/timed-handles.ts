// Handles of list and map states with a time to live, whose items and entries expire one by one. The other kinds have the handles of
// handles.ts, on a TimedCellTable.

import type { ListState, MapState } from '../contract.ts'
import { changed } from './handles.ts'
import type { Keeping } from '../keeping.ts'
import type { EntryKey } from './map-table.ts'
import type { TimedCell, TimedCellTable } from './timed-cell-table.ts'
import type { TimedMapTable } from './timed-map-table.ts'
import type { TimeToLive } from './time-to-live.ts'
import { newestOf } from './value-format.ts'
import type { TimedValue } from './value-format.ts'

export class TimedListState implements ListState<unknown> {
  private readonly table: TimedCellTable
  private readonly life: TimeToLive
  private readonly keeping: Keeping

  constructor(table: TimedCellTable, keeping: Keeping) {
    this.table = table
    this.life = table.life
    this.keeping = keeping
  }

  get(): readonly unknown[] {
    const nowMs = this.life.nowMs()
    const cell = this.current(nowMs)
    const items: unknown[] = []
    if (cell !== undefined) {
      if (this.life.refreshesOnRead) this.refreshItems(cell, nowMs)
      for (const { value, refreshedAtMs } of itemsOf(cell)) {
        if (this.life.returnsExpired || !this.life.hasExpired(refreshedAtMs, nowMs)) items.push(value)
      }
    }
    return this.keeping.frozen ? Object.freeze(items) : items
  }

  add(value: unknown): void {
    this.addAll([value])
  }

  addAll(values: readonly unknown[]): void {
    if (values.length === 0) return
    const nowMs = this.life.nowMs()
    const added = this.timed(values, nowMs)
    const cell = this.current(nowMs)
    if (cell === undefined) {
      this.table.put(added)
      return
    }
    this.table.keepForSnapshot(cell)
    const items = itemsOf(cell)
    for (const item of added) items.push(item)
    cell.refreshedAtMs = Math.max(cell.refreshedAtMs, nowMs)
  }

  update(values: readonly unknown[]): void {
    if (values.length === 0) this.table.remove()
    else this.table.put(this.timed(values, this.life.nowMs()))
  }

  clear(): void {
    this.table.remove()
  }

  private current(nowMs: number): TimedCell | undefined {
    const cell = this.table.peek(nowMs)
    if (cell !== undefined && !this.life.returnsExpired) this.table.dropOldItems(cell, nowMs)
    return cell
  }

  private timed(values: readonly unknown[], refreshedAtMs: number): TimedValue[] {
    const { keep } = this.keeping
    return values.map((value) => ({ value: keep === undefined ? value : keep(value), refreshedAtMs }))
  }

  private refreshItems(cell: TimedCell, nowMs: number): void {
    this.table.keepForSnapshot(cell)
    const items = itemsOf(cell)
    for (const item of items) {
      if (!this.life.hasExpired(item.refreshedAtMs, nowMs)) item.refreshedAtMs = nowMs
    }
    cell.refreshedAtMs = newestOf(items)
  }
}

export class TimedMapState implements MapState<EntryKey, unknown> {
  private readonly table: TimedMapTable
  private readonly keeping: Keeping

  constructor(table: TimedMapTable, keeping: Keeping) {
    this.table = table
    this.keeping = keeping
  }

  get(key: EntryKey): unknown {
    return this.table.read(key)?.value
  }

  has(key: EntryKey): boolean {
    return this.table.read(key) !== undefined
  }

  put(key: EntryKey, value: unknown): void {
    this.table.put(key, this.keeping.keep === undefined ? value : this.keeping.keep(value))
  }

  mutate(key: EntryKey, change: (value: unknown) => unknown): void {
    const cell = this.table.read(key)
    if (cell === undefined) return
    this.table.beforeChange(cell)
    cell.value = changed(cell.value, change, this.keeping, this.table)
  }

  delete(key: EntryKey): void {
    this.table.remove(key)
  }

  entries(): readonly (readonly [EntryKey, unknown])[] {
    return this.table.readAll().map(({ entryKey, value }) => [entryKey, value] as const)
  }

  keys(): readonly EntryKey[] {
    return this.table.readAll().map(({ entryKey }) => entryKey)
  }

  get size(): number {
    return this.table.count()
  }

  clear(): void {
    this.table.removeAll()
  }
}

function itemsOf(cell: TimedCell): TimedValue[] {
  return cell.value as TimedValue[]
}
