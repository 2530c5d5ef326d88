// A layout says how a value lies in bytes: JSON-able, stored beside the data, enough to read it without the schema.
// It holds nothing that does not change the bytes: no defaults, refinements or formats, so they may change freely.

import { createHash } from 'node:crypto'
import { z } from 'zod'
import { recordError } from './errors.ts'

/** A value of a literal or enum. */
export type ChoiceValue = string | number | boolean | null | { readonly bigint: string } | { readonly undefined: true }

export interface FieldLayout {
  readonly name: string
  /** The field may be missing; whether it is missing or undefined is kept. */
  readonly optional: boolean
  readonly layout: Layout
}

/**
 * int: safe integer. number: any float64. choice: one of the listed values, by its index; a single one takes no bytes.
 * union: the index of the option, then its bytes. object.rest: what unlisted fields hold; null: they are not written.
 */
export type Layout =
  | { readonly kind: 'string' | 'number' | 'int' | 'bigint' | 'boolean' | 'date' | 'bytes' | 'untyped' }
  | { readonly kind: 'choice'; readonly values: readonly ChoiceValue[] }
  | { readonly kind: 'nullable' | 'optional'; readonly inner: Layout }
  | { readonly kind: 'array' | 'set'; readonly item: Layout }
  | { readonly kind: 'tuple'; readonly items: readonly Layout[]; readonly rest: Layout | null }
  | { readonly kind: 'record'; readonly value: Layout }
  | { readonly kind: 'map'; readonly key: Layout; readonly value: Layout }
  | { readonly kind: 'object'; readonly fields: readonly FieldLayout[]; readonly rest: Layout | null }
  | { readonly kind: 'union'; readonly options: readonly Layout[] }

export type LayoutOf<Kind extends Layout['kind']> = Extract<Layout, { readonly kind: Kind }>

/** Version of the bytes that row-codec.ts writes for a layout. */
export const LAYOUT_VERSION = 1

/** 16 hex digits; the same when and only when the written bytes' layout is the same. */
export function fingerprintOf(layout: Layout): string {
  return createHash('sha256')
    .update(JSON.stringify([LAYOUT_VERSION, canonical(layout)]))
    .digest('hex')
    .slice(0, 16)
}

/** Reads a stored layout. Throws MR-R01 when it is none that this version knows. */
export function parseLayout(stored: unknown): Layout {
  const result = layoutSchema.safeParse(stored)
  if (result.success) return result.data
  throw recordError('MR-R01', `A stored layout: ${z.prettifyError(result.error)}.`)
}

/** The value that a choice stands for. */
export function choiceValue(value: ChoiceValue): string | number | boolean | bigint | null | undefined {
  if (typeof value !== 'object' || value === null) return value
  return 'bigint' in value ? BigInt(value.bigint) : undefined
}

/** Fewest bytes that a value takes; containers pad elements that may take none, so that a count never exceeds the bytes left. */
export function minimumBytes(layout: Layout): number {
  switch (layout.kind) {
    case 'choice':
      return layout.values.length === 1 ? 0 : 1
    case 'object': {
      let sum = layout.rest === null ? 0 : 1
      for (const field of layout.fields) sum += field.optional ? 1 : minimumBytes(field.layout)
      return sum
    }
    default:
      return 1
  }
}

/** Property order must not depend on who built the tree: a stored one has been through JSON. */
function canonical(layout: Layout): unknown {
  switch (layout.kind) {
    case 'choice':
      return [layout.kind, layout.values]
    case 'nullable':
    case 'optional':
      return [layout.kind, canonical(layout.inner)]
    case 'array':
    case 'set':
      return [layout.kind, canonical(layout.item)]
    case 'tuple':
      return [layout.kind, layout.items.map(canonical), layout.rest && canonical(layout.rest)]
    case 'record':
      return [layout.kind, canonical(layout.value)]
    case 'map':
      return [layout.kind, canonical(layout.key), canonical(layout.value)]
    case 'object':
      return [
        layout.kind,
        layout.fields.map((field) => [field.name, field.optional, canonical(field.layout)]),
        layout.rest && canonical(layout.rest),
      ]
    case 'union':
      return [layout.kind, layout.options.map(canonical)]
    default:
      return [layout.kind]
  }
}

const choiceSchema = z.union([
  z.string(),
  z.number(),
  z.boolean(),
  z.null(),
  z.strictObject({ bigint: z.string().regex(/^-?\d+$/) }),
  z.strictObject({ undefined: z.literal(true) }),
])

const layoutSchema: z.ZodType<Layout> = z.lazy(() =>
  z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.enum(['string', 'number', 'int', 'bigint', 'boolean', 'date', 'bytes', 'untyped']),
    }),
    z.strictObject({ kind: z.literal('choice'), values: z.array(choiceSchema).min(1) }),
    z.strictObject({ kind: z.enum(['nullable', 'optional']), inner: layoutSchema }),
    z.strictObject({ kind: z.enum(['array', 'set']), item: layoutSchema }),
    z.strictObject({ kind: z.literal('tuple'), items: z.array(layoutSchema), rest: layoutSchema.nullable() }),
    z.strictObject({ kind: z.literal('record'), value: layoutSchema }),
    z.strictObject({ kind: z.literal('map'), key: layoutSchema, value: layoutSchema }),
    z.strictObject({ kind: z.literal('object'), fields: z.array(fieldSchema), rest: layoutSchema.nullable() }),
    z.strictObject({ kind: z.literal('union'), options: z.array(layoutSchema).min(1) }),
  ]),
)

const fieldSchema = z.strictObject({
  name: z.string().refine((name) => name !== '__proto__'),
  optional: z.boolean(),
  layout: layoutSchema,
})
