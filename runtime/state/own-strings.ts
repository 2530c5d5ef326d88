// Strings cut from a larger one keep the larger one alive. A columnar frame decodes a whole column into one text and cuts the records'
// fields from it, so one 20-character field in state would hold about 10 KiB; over a million keys, gigabytes. So state copies the
// strings that it stores: at once what `update`, `put` and `add` bring, and small values changed in place; large ones changed in
// place (walking them with each record would cost more than the job) when a snapshot next writes them.
//
// Measured (Node 24, 20 characters): cutting a string 5 ns, cutting and copying it 90 ns. Strings below 13 characters are copied by
// the engine when they are cut, so they cost a length check. A type whose schema holds no text costs nothing; an object of two
// numbers without a schema 7 ns.

import type { CodecDescription } from '../record/contract.ts'
import { detachString } from '../record/detach.ts'
import type { Layout } from '../record/layout.ts'

/** V8 cuts shorter strings by copying (SlicedString::kMinLength). */
export const SHARED_LENGTH_MIN = 13
/** Values changed in place with more members than this wait for the snapshot. */
export const SMALL_MEMBERS_MAX = 32

/**
 * The same value, or a copy where it holds strings that might belong to a frame. An array that begins with a number, bigint or boolean
 * is taken as one of those. Containers with more than `membersMax` members are left as they are.
 */
export function ownStrings(value: unknown, membersMax = Number.POSITIVE_INFINITY): unknown {
  if (typeof value === 'string') return detachString(value)
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.length > membersMax ? value : ownItems(value, membersMax)
  if (value instanceof Map) return value.size > membersMax ? value : ownMap(value, membersMax)
  if (value instanceof Set) return value.size > membersMax ? value : new Set(ownItems([...value], membersMax))
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
    ? ownFields(value as Record<string, unknown>, membersMax)
    : value
}

function ownFields(value: Record<string, unknown>, membersMax: number): Record<string, unknown> {
  let copy: Record<string, unknown> | undefined
  let members = 0
  for (const name in value) {
    if (++members > membersMax) return copy ?? value
    const field = value[name]
    if (typeof field !== 'string' && typeof field !== 'object') continue
    const own = ownStrings(field, membersMax)
    // A copied string equals its original: only its length says that it was copied.
    if (own !== field || isShareable(field)) {
      copy ??= { ...value }
      copy[name] = own
    }
  }
  return copy ?? value
}

function ownItems(values: readonly unknown[], membersMax: number): readonly unknown[] {
  const kind = typeof values[0]
  if (kind === 'number' || kind === 'bigint' || kind === 'boolean') return values
  let copy: unknown[] | undefined
  for (let index = 0; index < values.length; index++) {
    const item = values[index]
    const own = ownStrings(item, membersMax)
    if (own !== item || isShareable(item)) {
      copy ??= values.slice()
      copy[index] = own
    }
  }
  return copy ?? values
}

function ownMap(value: ReadonlyMap<unknown, unknown>, membersMax: number): ReadonlyMap<unknown, unknown> {
  const copy = new Map<unknown, unknown>()
  for (const [key, member] of value) copy.set(ownStrings(key, membersMax), ownStrings(member, membersMax))
  return copy
}

function isShareable(value: unknown): boolean {
  return typeof value === 'string' && value.length >= SHARED_LENGTH_MIN
}

/** Whether values of this codec may hold text. */
export function mayHoldText(codec: CodecDescription): boolean {
  return codec.kind !== 'schema' || layoutHoldsText(codec.layout as Layout)
}

function layoutHoldsText(layout: Layout): boolean {
  switch (layout.kind) {
    case 'number':
    case 'int':
    case 'bigint':
    case 'boolean':
    case 'date':
    case 'bytes':
    case 'choice':
      return false
    case 'nullable':
    case 'optional':
      return layoutHoldsText(layout.inner)
    case 'array':
    case 'set':
      return layoutHoldsText(layout.item)
    case 'object':
      return layout.rest !== null || layout.fields.some((field) => layoutHoldsText(field.layout))
    case 'tuple':
      return layout.rest !== null || layout.items.some(layoutHoldsText)
    case 'map':
      return layoutHoldsText(layout.key) || layoutHoldsText(layout.value)
    case 'union':
      return layout.options.some(layoutHoldsText)
    case 'string':
    case 'untyped':
    case 'record':
      return true
    default:
      return layout satisfies never
  }
}
