// Which columns a layout has: one per field of an object, or a single one for anything else.

import { choiceValue, type Layout, type LayoutOf } from './layout.ts'

export interface Column {
  /** The field; undefined: the value itself is the column. */
  readonly name: string | undefined
  readonly kind: 'number' | 'int' | 'date' | 'boolean' | 'choice' | 'string' | 'rows'
  /** Without its wrappers for null and undefined. */
  readonly layout: Layout
  readonly nullable: boolean
  readonly undefinable: boolean
  /** The field may be missing altogether. */
  readonly optionalField: boolean
  /** Some values are not there: a column of states goes before. */
  readonly stateful: boolean
}

export function columnsOf(layout: Layout): readonly Column[] {
  // Unlisted fields have no columns, and a record without fields needs none to be counted by.
  if (layout.kind !== 'object' || layout.rest !== null) return [columnOf(undefined, layout, false)]
  return layout.fields.map((field) => columnOf(field.name, field.layout, field.optional))
}

/** The values that a choice column's indexes stand for. */
export function choicesOf(column: Column): readonly unknown[] {
  return (column.layout as LayoutOf<'choice'>).values.map(choiceValue)
}

function columnOf(name: string | undefined, layout: Layout, optionalField: boolean): Column {
  let inner = layout
  let nullable = false
  let undefinable = optionalField
  while (inner.kind === 'nullable' || inner.kind === 'optional') {
    if (inner.kind === 'nullable') nullable = true
    else undefinable = true
    inner = inner.inner
  }
  return {
    name,
    kind: kindOf(inner),
    layout: inner,
    nullable,
    undefinable,
    optionalField,
    stateful: nullable || undefinable,
  }
}

function kindOf(layout: Layout): Column['kind'] {
  switch (layout.kind) {
    case 'number':
    case 'int':
    case 'date':
    case 'boolean':
    case 'choice':
    case 'string':
      return layout.kind
    default:
      return 'rows'
  }
}
