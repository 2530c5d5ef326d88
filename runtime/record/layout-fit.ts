// Which option of a union a value is, decided by the layouts alone.

import { unreachable } from '../base/errors.ts'
import { choiceValue, type Layout, type LayoutOf } from './layout.ts'

/** exact: the value also has no field that the layout would not write. */
type Fit = (value: unknown, exact: boolean) => boolean

/**
 * A function from a value to its option's index, -1 when none fits. The first option that fits and loses nothing wins;
 * failing that, the first that fits, as zod would have chosen.
 */
export function optionChooser(layout: LayoutOf<'union'>): (value: unknown) => number {
  const discriminator = discriminatorOf(layout)
  if (discriminator !== undefined) {
    const indexes = new Map<unknown, number>()
    for (const [index, option] of layout.options.entries()) {
      for (const value of discriminatorValues(option, discriminator)!) indexes.set(value, index)
    }
    return (value) =>
      typeof value === 'object' && value !== null
        ? (indexes.get(fieldOf(value as Record<string, unknown>, discriminator)) ?? -1)
        : -1
  }
  const fits = layout.options.map(fitOf)
  return (value) => {
    const exact = fits.findIndex((fit) => fit(value, true))
    return exact >= 0 ? exact : fits.findIndex((fit) => fit(value, false))
  }
}

/** The field that tells all options apart: required in each, a choice, no value shared. */
export function discriminatorOf(layout: LayoutOf<'union'>): string | undefined {
  const first = layout.options[0]
  if (first?.kind !== 'object') return undefined
  return first.fields
    .map((field) => field.name)
    .find((name) => {
      const seen = new Set<unknown>()
      let count = 0
      for (const option of layout.options) {
        const values = discriminatorValues(option, name)
        if (values === undefined) return false
        count += values.length
        for (const value of values) seen.add(value)
      }
      return seen.size === count
    })
}

export function discriminatorValues(option: Layout, name: string): readonly unknown[] | undefined {
  if (option.kind !== 'object') return undefined
  const field = option.fields.find((candidate) => candidate.name === name)
  if (field === undefined || field.optional || field.layout.kind !== 'choice') return undefined
  return field.layout.values.map(choiceValue)
}

function fitOf(layout: Layout): Fit {
  switch (layout.kind) {
    case 'string':
    case 'number':
    case 'bigint':
    case 'boolean':
      return (value) => typeof value === layout.kind
    case 'int':
      return (value) => Number.isSafeInteger(value)
    case 'date':
      return (value) => value instanceof Date
    case 'bytes':
      return (value) => value instanceof Uint8Array
    case 'untyped':
      return () => true
    case 'choice': {
      const values = new Set<unknown>(layout.values.map(choiceValue))
      return (value) => values.has(value)
    }
    case 'nullable':
    case 'optional': {
      const inner = fitOf(layout.inner)
      const empty = layout.kind === 'nullable' ? null : undefined
      return (value, exact) => value === empty || inner(value, exact)
    }
    case 'array': {
      const item = fitOf(layout.item)
      return (value, exact) => Array.isArray(value) && value.every((element) => item(element, exact))
    }
    case 'set': {
      const item = fitOf(layout.item)
      return (value, exact) => value instanceof Set && [...value].every((element) => item(element, exact))
    }
    case 'tuple': {
      const items = layout.items.map(fitOf)
      const rest = layout.rest === null ? undefined : fitOf(layout.rest)
      return (value, exact) =>
        Array.isArray(value) &&
        (rest !== undefined || value.length <= items.length) &&
        items.every((item, index) => item(value[index], exact)) &&
        value.slice(items.length).every((element) => rest!(element, exact))
    }
    case 'record': {
      const item = fitOf(layout.value)
      return (value, exact) => isPlainObject(value) && Object.values(value).every((element) => item(element, exact))
    }
    case 'map': {
      const key = fitOf(layout.key)
      const item = fitOf(layout.value)
      return (value, exact) =>
        value instanceof Map && [...value].every(([name, element]) => key(name, exact) && item(element, exact))
    }
    case 'object':
      return objectFit(layout)
    case 'union': {
      const options = layout.options.map(fitOf)
      return (value, exact) => options.some((option) => option(value, exact))
    }
    default:
      return unreachable(layout)
  }
}

function objectFit(layout: LayoutOf<'object'>): Fit {
  const fields = layout.fields.map((field) => ({ ...field, fit: fitOf(field.layout) }))
  const names = new Set(layout.fields.map((field) => field.name))
  const rest = layout.rest === null ? undefined : fitOf(layout.rest)
  return (value, exact) => {
    if (!isPlainObject(value)) return false
    for (const field of fields) {
      const held = fieldOf(value, field.name)
      if (!(field.optional && held === undefined) && !field.fit(held, exact)) return false
    }
    if (rest === undefined && !exact) return true
    return Object.keys(value).every((name) => names.has(name) || (rest !== undefined && rest(value[name], exact)))
  }
}

/** As fieldRead in source-writer.ts: what Object.prototype has is not the value's. */
function fieldOf(value: Record<string, unknown>, name: string): unknown {
  return name in Object.prototype && !Object.hasOwn(value, name) ? undefined : value[name]
}

/** As the row codec sees it: anything with fields that is not one of the kinds above. */
function isPlainObject(value: unknown): value is Record<string, unknown> {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Date || value instanceof Map || value instanceof Set || value instanceof Uint8Array)
  )
}
