// Whether values stored under one layout can become values of today's. Pure; row-decode.ts carries it out.
//
// Allowed: a field gained that has a default or is optional; a field lost; an optional field that has a default today;
// int widened to number; a value that became optional or nullable; a choice or union that gained values or options; a choice that
// became the type of its values.

import { choiceValue, fingerprintOf, type ChoiceValue, type FieldLayout, type Layout, type LayoutOf } from './layout.ts'
import { discriminatorOf, discriminatorValues } from './layout-fit.ts'

/** What a missing field becomes; undefined: it has no default. */
export type FallbackOf = (field: FieldLayout) => (() => unknown) | undefined

/** Why stored values cannot be read, as a sentence naming the field; undefined: they can. */
export function whyUnreadable(stored: Layout, today: Layout, fallbackOf: FallbackOf, path = ''): string | undefined {
  if ((today.kind === 'nullable' || today.kind === 'optional') && stored.kind !== today.kind) {
    return whyUnreadable(stored, today.inner, fallbackOf, path)
  }
  if (stored.kind === 'int' && today.kind === 'number') return undefined
  const changed = sentence(path, `was ${nounOf(stored)} and is ${nounOf(today)} today`)
  const inside = (from: Layout, to: Layout, step: string): string | undefined =>
    whyUnreadable(from, to, fallbackOf, step)
  switch (stored.kind) {
    case 'nullable':
    case 'optional':
      return today.kind === stored.kind ? inside(stored.inner, today.inner, path) : changed
    case 'array':
    case 'set':
      return today.kind === stored.kind ? inside(stored.item, today.item, `${path}[]`) : changed
    case 'record':
      return today.kind === 'record' ? inside(stored.value, today.value, `${path}{}`) : changed
    case 'map':
      if (today.kind !== 'map') return changed
      return inside(stored.key, today.key, `${path}{key}`) ?? inside(stored.value, today.value, `${path}{}`)
    case 'choice': {
      if (today.kind !== 'choice')
        return stored.values.every((value) => isOfKind(value, today.kind)) ? undefined : changed
      const known = new Set(today.values.map(choiceValue))
      const lost = stored.values.map(choiceValue).find((value) => !known.has(value))
      const all = stored.values.every((value) => known.has(choiceValue(value)))
      return all ? undefined : sentence(path, `no longer allows ${String(lost)}`)
    }
    case 'tuple':
      return today.kind === 'tuple' ? whyTupleUnreadable(stored, today, fallbackOf, path) : changed
    case 'object':
      return today.kind === 'object' ? whyObjectUnreadable(stored, today, fallbackOf, path) : changed
    case 'union':
      if (today.kind !== 'union') return changed
      for (const [index, option] of stored.options.entries()) {
        const target = matchingOption(stored, today, index)
        if (target === undefined) return sentence(path, `no longer has the option ${index + 1} of its union`)
        const problem = inside(option, target, path)
        if (problem !== undefined) return problem
      }
      return undefined
    default:
      return today.kind === stored.kind ? undefined : changed
  }
}

/**
 * Today's option for a stored one: by the values of the discriminator where both unions have it; else the same layout wherever it stands
 * now; else the one in its place, unless that is where another stored option went.
 */
export function matchingOption(stored: LayoutOf<'union'>, today: LayoutOf<'union'>, index: number): Layout | undefined {
  const option = stored.options[index]!
  const name = discriminatorOf(stored)
  if (name === undefined || discriminatorOf(today) !== name) {
    const same = today.options.find((candidate) => fingerprintOf(candidate) === fingerprintOf(option))
    const inPlace = today.options[index]
    const taken = (place: Layout): boolean =>
      stored.options.some((other) => fingerprintOf(other) === fingerprintOf(place))
    return same ?? (inPlace === undefined || taken(inPlace) ? undefined : inPlace)
  }
  const values = discriminatorValues(option, name)!
  return today.options.find((candidate) => {
    const known = discriminatorValues(candidate, name)!
    return values.every((value) => known.includes(value))
  })
}

function whyObjectUnreadable(
  stored: LayoutOf<'object'>,
  today: LayoutOf<'object'>,
  fallbackOf: FallbackOf,
  path: string,
): string | undefined {
  for (const field of today.fields) {
    const step = path === '' ? field.name : `${path}.${field.name}`
    const source = stored.fields.find((candidate) => candidate.name === field.name)
    if (source !== undefined) {
      const problem = whyUnreadable(source.layout, field.layout, fallbackOf, step)
      if (problem !== undefined) return problem
    }
    if (source === undefined && stored.rest !== null) {
      return sentence(step, 'is new, and stored values may have it among the fields that were not listed')
    }
    const mayMiss = source === undefined || source.optional
    if (mayMiss && !field.optional && fallbackOf(field) === undefined) {
      const change = source === undefined ? 'is new' : 'was optional and is required today'
      return sentence(step, `${change}, and has no default`)
    }
  }
  if (stored.rest === null || today.rest === null) return undefined
  return whyUnreadable(stored.rest, today.rest, fallbackOf, `${path}.*`)
}

function whyTupleUnreadable(
  stored: LayoutOf<'tuple'>,
  today: LayoutOf<'tuple'>,
  fallbackOf: FallbackOf,
  path: string,
): string | undefined {
  if (stored.items.length !== today.items.length || (stored.rest !== null && today.rest === null)) {
    return sentence(path, 'is a tuple of another length today')
  }
  for (const [index, item] of stored.items.entries()) {
    const problem = whyUnreadable(item, today.items[index]!, fallbackOf, `${path}[${index}]`)
    if (problem !== undefined) return problem
  }
  if (stored.rest === null || today.rest === null) return undefined
  return whyUnreadable(stored.rest, today.rest, fallbackOf, `${path}[]`)
}

function isOfKind(value: ChoiceValue, kind: Layout['kind']): boolean {
  const held = choiceValue(value)
  if (kind === 'int') return Number.isSafeInteger(held)
  // Not by typeof alone: null is no object here.
  return (kind === 'string' || kind === 'number' || kind === 'bigint' || kind === 'boolean') && typeof held === kind
}

function nounOf(layout: Layout): string {
  return layout.kind === 'choice' ? `one of ${layout.values.length} values` : layout.kind
}

function sentence(path: string, text: string): string {
  return path === '' ? `the value ${text}` : `field ${path} ${text}`
}
