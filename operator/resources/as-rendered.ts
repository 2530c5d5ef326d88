// Whether an object is as it was rendered, in our fields: what others added, and what the API server filled in, is nobody's business here.

import { thousandthsOf } from '../../crds/quantities.ts'
import { canonicalJson } from '../revision.ts'
import type { KubernetesObject } from './objects.ts'
import { entryKeyOf } from './merge-pod-template.ts'

type Json = Readonly<Record<string, unknown>>

/** Decided from moment to moment, and compared by those who decide. */
const ofTheMoment: Readonly<Record<string, readonly string[]>> = { StatefulSet: ['spec.replicas'] }

/** Fields that are amounts, and those whose entries are, whatever these are called: `nvidia.com/gpu` has dots and a slash. */
const amounts: ReadonlySet<string> = new Set(['sizeLimit', 'divisor'])
const mapsOfAmounts: ReadonlySet<string> = new Set(['requests', 'limits', 'overhead'])

interface Field {
  /** Of one in a list it has its place there. */
  readonly path: string
  readonly name: string
  readonly isAmount: boolean
}

/** The path of the first of our fields that is otherwise on the server; undefined: none is. */
export function firstDifference(rendered: KubernetesObject, live: KubernetesObject): string | undefined {
  const ignored = ofTheMoment[rendered.kind] ?? []
  const { metadata, ...rest } = rendered
  // Owners are looked at apart: whose it is comes before how it is.
  const { labels, annotations = {} } = metadata
  const ours = { ...rest, metadata: { labels, annotations } }
  return differenceOf(ours, live, { path: '', name: '', isAmount: false }, (path) => ignored.includes(path))
}

export function asRendered(rendered: KubernetesObject, live: KubernetesObject): boolean {
  return firstDifference(rendered, live) === undefined
}

function differenceOf(
  ours: unknown,
  live: unknown,
  field: Field,
  isIgnored: (path: string) => boolean,
): string | undefined {
  const { path } = field
  if (isIgnored(path)) return undefined
  if (isEmpty(ours) && isEmpty(live)) return undefined
  if (Array.isArray(ours)) return listDifference(ours, live, field, isIgnored)
  if (typeof ours === 'object' && ours !== null) {
    if (typeof live !== 'object' || live === null || Array.isArray(live)) return path
    for (const [name, value] of Object.entries(ours)) {
      const different = differenceOf(value, (live as Json)[name], fieldOf(field, name), isIgnored)
      if (different !== undefined) return different
    }
    return undefined
  }
  return sameValue(ours, live, field) ? undefined : path
}

function fieldOf(around: Field, name: string): Field {
  return {
    path: around.path === '' ? name : `${around.path}.${name}`,
    name,
    isAmount: amounts.has(name) || mapsOfAmounts.has(around.name),
  }
}

function listDifference(
  ours: readonly unknown[],
  live: unknown,
  { path, name: list }: Field,
  isIgnored: (path: string) => boolean,
): string | undefined {
  if (!Array.isArray(live)) return path
  const at = (index: number): Field => ({ path: `${path}[${index}]`, name: '', isAmount: false })
  const keys = ours.map((entry) => (isObject(entry) ? entryKeyOf(list, entry) : undefined))
  // A Service's ports have the name of a container's, and another key.
  const keyed = !keys.includes(undefined) && new Set(keys).size === keys.length
  if (!keyed) {
    if (ours.length !== live.length) return path
    return firstOf(ours, (entry, index) => differenceOf(entry, live[index], at(index), isIgnored))
  }
  return firstOf(ours as readonly Json[], (entry, index) => {
    const key = entryKeyOf(list, entry)
    const found = (live as readonly unknown[]).find((other) => isObject(other) && entryKeyOf(list, other) === key)
    return differenceOf(entry, found, at(index), isIgnored)
  })
}

function firstOf<Entry>(
  entries: readonly Entry[],
  difference: (entry: Entry, index: number) => string | undefined,
): string | undefined {
  for (const [index, entry] of entries.entries()) {
    const different = difference(entry, index)
    if (different !== undefined) return different
  }
  return undefined
}

/** The API server leaves out what says nothing. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) return true
  return Array.isArray(value) ? value.length === 0 : isObject(value) && Object.keys(value).length === 0
}

/** It also writes amounts in a form of its own: 1000m as 1. */
function sameValue(ours: unknown, live: unknown, { name, isAmount }: Field): boolean {
  if (ours === live) return true
  if (name.endsWith('.json')) return sameJson(ours, live)
  if (!isAmount) return false
  const [left, right] = [thousandthsOf(ours), thousandthsOf(live)]
  return left !== undefined && left === right
}

/** Another operator may write the fields of process.json in another order. */
function sameJson(ours: unknown, live: unknown): boolean {
  try {
    return canonicalJson(JSON.parse(String(ours))) === canonicalJson(JSON.parse(String(live)))
  } catch {
    return false
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
