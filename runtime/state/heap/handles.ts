// The handles that operators hold: the user's verbs on top of the tables. They follow the backend's current key.

import type {
  AggregateFunction,
  AggregatingState,
  DeepReadonly,
  ListState,
  MapState,
  ReducingState,
  ValueState,
} from '../contract.ts'
import type { Cells } from './cell-table.ts'
import { replacement } from '../keeping.ts'
import type { Keeping } from '../keeping.ts'
import type { EntryKey, MapCell, MapTable } from './map-table.ts'

export class HeapValueState implements ValueState<unknown> {
  private readonly table: Cells
  private readonly keeping: Keeping

  constructor(table: Cells, keeping: Keeping) {
    this.table = table
    this.keeping = keeping
  }

  get(): unknown {
    return this.table.find() ? this.table.value : undefined
  }

  update(value: unknown): void {
    this.table.put(this.keeping.keep === undefined ? value : this.keeping.keep(value))
  }

  mutate(change: (value: unknown) => unknown): void {
    const { table, keeping } = this
    if (!table.find()) return
    table.beforeChange()
    if (keeping.plain) {
      const answer = change(table.value)
      if (answer !== undefined) table.replace(replacement(answer))
      return
    }
    table.replace(changed(table.value, change, keeping, table))
  }

  clear(): void {
    this.table.remove()
  }
}

export class HeapListState implements ListState<unknown> {
  private readonly table: Cells
  private readonly keeping: Keeping

  constructor(table: Cells, keeping: Keeping) {
    this.table = table
    this.keeping = keeping
  }

  /** A copy of the list: `add` goes on with the stored one, also while the caller walks over what it got. */
  get(): readonly DeepReadonly<unknown>[] {
    const items = this.table.find() ? (this.table.value as unknown[]).slice() : []
    return this.keeping.frozen ? Object.freeze(items) : items
  }

  add(value: unknown): void {
    const items = this.writable()
    items.push(this.keeping.keep === undefined ? value : this.keeping.keep(value))
  }

  addAll(values: readonly unknown[]): void {
    if (values.length === 0) return
    const items = this.writable()
    const { keep } = this.keeping
    for (let index = 0; index < values.length; index++)
      items.push(keep === undefined ? values[index] : keep(values[index]))
  }

  update(values: readonly unknown[]): void {
    if (values.length === 0) this.table.remove()
    else this.table.put(this.keeping.keep === undefined ? values.slice() : values.map(this.keeping.keep))
  }

  clear(): void {
    this.table.remove()
  }

  private writable(): unknown[] {
    if (this.table.find()) {
      this.table.beforeChange()
      return this.table.value as unknown[]
    }
    const items: unknown[] = []
    this.table.put(items)
    return items
  }
}

export class HeapReducingState implements ReducingState<unknown> {
  private readonly table: Cells
  private readonly keeping: Keeping
  private readonly reduce: (left: unknown, right: unknown) => unknown

  constructor(table: Cells, keeping: Keeping, reduce: (left: unknown, right: unknown) => unknown) {
    this.table = table
    this.keeping = keeping
    this.reduce = reduce
  }

  get(): unknown {
    return this.table.find() ? this.table.value : undefined
  }

  add(value: unknown): void {
    const { table } = this
    const { keep } = this.keeping
    if (!table.find()) {
      table.put(keep === undefined ? value : keep(value))
      return
    }
    // Before the function runs: should it change its left argument in place, the snapshot must not see that.
    table.beforeChange()
    const reduced = this.reduce(table.value, value)
    table.replace(keep === undefined ? reduced : keep(reduced))
  }

  clear(): void {
    this.table.remove()
  }
}

/** `keeping` does not freeze: the function may change the accumulator in place. */
export class HeapAggregatingState implements AggregatingState<unknown, unknown> {
  private readonly table: Cells
  private readonly keepChanged: Keeping['keepChanged']
  private readonly aggregate: AggregateFunction<unknown, unknown, unknown>

  constructor(table: Cells, keeping: Keeping, aggregate: AggregateFunction<unknown, unknown, unknown>) {
    this.table = table
    this.keepChanged = keeping.keepChanged
    this.aggregate = aggregate
    table.renew = keeping.renew
  }

  get(): unknown {
    return this.table.find() ? this.aggregate.result(this.table.value) : undefined
  }

  add(value: unknown): void {
    const { table, aggregate } = this
    if (!table.find()) {
      table.put(this.kept(aggregate.add(aggregate.create(), value)))
      return
    }
    table.beforeChange()
    table.replace(this.kept(aggregate.add(table.value, value)))
  }

  clear(): void {
    this.table.remove()
  }

  private kept(accumulator: unknown): unknown {
    return this.keepChanged === undefined ? accumulator : this.keepChanged(accumulator)
  }
}

export class HeapMapState implements MapState<EntryKey, unknown> {
  private readonly table: MapTable
  private readonly keeping: Keeping

  constructor(table: MapTable, keeping: Keeping) {
    this.table = table
    this.keeping = keeping
  }

  get(key: EntryKey): unknown {
    return this.table.entries()?.get(key)?.value
  }

  has(key: EntryKey): boolean {
    return this.table.entries()?.has(key) ?? false
  }

  put(key: EntryKey, value: unknown): void {
    this.table.put(key, this.keeping.keep === undefined ? value : this.keeping.keep(value))
  }

  mutate(key: EntryKey, change: (value: unknown) => unknown): void {
    const cell = this.table.entries()?.get(key)
    if (cell === undefined) return
    this.table.beforeChange(key, cell)
    if (this.keeping.plain) {
      const answer = change(cell.value)
      if (answer !== undefined) cell.value = replacement(answer)
      return
    }
    cell.value = changed(cell.value, change, this.keeping, this.table)
  }

  delete(key: EntryKey): void {
    this.table.remove(key)
  }

  entries(): readonly (readonly [EntryKey, unknown])[] {
    const entries: (readonly [EntryKey, unknown])[] = []
    const cells: ReadonlyMap<EntryKey, MapCell> | undefined = this.table.entries()
    if (cells !== undefined) for (const [key, cell] of cells) entries.push([key, cell.value])
    return entries
  }

  keys(): readonly EntryKey[] {
    return [...(this.table.entries()?.keys() ?? [])]
  }

  get size(): number {
    return this.table.entries()?.size ?? 0
  }

  clear(): void {
    this.table.removeAll()
  }
}

/** The value after `change`, which changed it or returned another. */
export function changed(
  value: unknown,
  change: (value: unknown) => unknown,
  keeping: Keeping,
  table: { renew: Keeping['renew'] },
): unknown {
  // A frozen value cannot be changed in place: the function gets a copy of its own.
  const changeable = keeping.frozen ? keeping.copy(value) : value
  const texts = keeping.changedTexts
  if (texts !== undefined) texts.remember(changeable)
  const answer = change(changeable)
  const next = answer === undefined ? changeable : replacement(answer)
  if (texts !== undefined && next === changeable && texts.own(next)) return next
  table.renew = keeping.renew
  return keeping.keepChanged === undefined ? next : keeping.keepChanged(next)
}
