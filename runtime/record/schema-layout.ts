// From a zod schema to the layout of the values it yields (its output side: what flows after validation).

/* oxlint-disable no-underscore-dangle -- _zod is zod's documented door for libraries that read schemas. */

import type { ZodType } from 'zod'
import type { $ZodType, $ZodTypes } from 'zod/v4/core'
import { recordError } from './errors.ts'
import type { ChoiceValue, FieldLayout, Layout } from './layout.ts'

/** Bounds nesting, and with it the generated code. */
const DEPTH_MAX = 32

const INTEGER_FORMATS: ReadonlySet<unknown> = new Set(['safeint', 'int32', 'uint32'])

/** Fallback of an object's field: the schema that may turn `undefined` into a value. */
export type Fallbacks = ReadonlyMap<FieldLayout, ZodType>

export interface SchemaLayout {
  readonly layout: Layout
  /** Kept beside the layout because defaults do not change the bytes. */
  readonly fallbacks: Fallbacks
}

/** Throws MR-R02, naming the field, for what has no binary form. */
export function layoutOfSchema(schema: ZodType): SchemaLayout {
  const fallbacks = new Map<FieldLayout, ZodType>()
  const layout = visit(schema, { path: '', depth: 0, open: new Set(), fallbacks })
  return { layout, fallbacks }
}

interface Place {
  readonly path: string
  readonly depth: number
  /** Schemas that the walk is inside of: meeting one again is recursion. */
  readonly open: ReadonlySet<$ZodType>
  readonly fallbacks: Map<FieldLayout, ZodType>
}

function visit(schema: $ZodType, place: Place): Layout {
  if (place.open.has(schema)) throw unsupported(place, 'a recursive schema')
  if (place.depth > DEPTH_MAX) throw unsupported(place, `nested more than ${DEPTH_MAX} deep`)
  const open = new Set(place.open).add(schema)
  const at = (inner: $ZodType, step = ''): Layout =>
    visit(inner, { ...place, path: place.path + step, depth: place.depth + 1, open })

  const typed = schema as $ZodTypes
  const definition = typed._zod.def
  switch (definition.type) {
    case 'string':
    case 'template_literal':
      return { kind: 'string' }
    case 'number':
      return { kind: isInteger(definition) ? 'int' : 'number' }
    case 'nan':
      return { kind: 'number' }
    case 'bigint':
    case 'boolean':
    case 'date':
      return { kind: definition.type }
    case 'any':
    case 'unknown':
      return { kind: 'untyped' }
    case 'null':
      return { kind: 'choice', values: [null] }
    case 'undefined':
    case 'void':
      return { kind: 'choice', values: [{ undefined: true }] }
    case 'literal':
    case 'enum':
      return { kind: 'choice', values: [...(typed._zod.values ?? [])].map((value) => choiceOf(value, place)) }
    case 'custom':
      // z.instanceof(Uint8Array) says its class in the bag; nothing else of a custom check is known.
      if (typed._zod.bag['Class'] === Uint8Array) return { kind: 'bytes' }
      throw unsupported(place, 'z.custom() or z.instanceof() of another class than Uint8Array')
    case 'optional':
    case 'nullable':
      return { kind: definition.type, inner: at(definition.innerType) }
    case 'default':
    case 'nonoptional':
      return withoutOptional(at(definition.innerType))
    case 'prefault':
    case 'catch':
    case 'readonly':
      return at(definition.innerType)
    case 'lazy':
      return at(definition.getter())
    case 'pipe':
      return at(definition.out)
    case 'array':
      return { kind: 'array', item: at(definition.element, '[]') }
    case 'set':
      return { kind: 'set', item: at(definition.valueType, '[]') }
    case 'tuple':
      return {
        kind: 'tuple',
        items: definition.items.map((item, index) => at(item, `[${index}]`)),
        rest: definition.rest ? at(definition.rest, '[]') : null,
      }
    case 'record':
      return { kind: 'record', value: at(definition.valueType, '{}') }
    case 'map':
      return { kind: 'map', key: at(definition.keyType, '{key}'), value: at(definition.valueType, '{}') }
    case 'union': {
      const options = definition.options.map((option) => at(option))
      return {
        kind: 'union',
        options: options.flatMap((option) => (option.kind === 'union' ? option.options : option)),
      }
    }
    case 'object': {
      const fields = Object.entries(definition.shape).map(([name, field]) => {
        if (name === '__proto__') throw unsupported(place, 'a field named __proto__')
        const step = place.path === '' ? name : `.${name}`
        const inner = at(field, step)
        const optional = field._zod.optout === 'optional'
        const layout: FieldLayout = { name, optional, layout: optional ? withoutOptional(inner) : inner }
        place.fallbacks.set(layout, field as ZodType)
        return layout
      })
      const rest = definition.catchall
      const keepsRest = rest !== undefined && rest._zod.def.type !== 'never'
      return { kind: 'object', fields, rest: keepsRest ? at(rest, '.*') : null }
    }
    default:
      throw unsupported(place, `z.${definition.type}()`)
  }
}

function isInteger(definition: object): boolean {
  const { format, checks } = definition as {
    readonly format?: unknown
    readonly checks?: readonly { readonly _zod: { readonly def: { readonly format?: unknown } } }[]
  }
  return INTEGER_FORMATS.has(format) || (checks ?? []).some((check) => INTEGER_FORMATS.has(check._zod.def.format))
}

function withoutOptional(layout: Layout): Layout {
  return layout.kind === 'optional' ? layout.inner : layout
}

function choiceOf(value: symbol | string | number | boolean | bigint | null | undefined, place: Place): ChoiceValue {
  if (value === null || typeof value === 'string' || typeof value === 'boolean') return value
  if (typeof value === 'number' && Number.isFinite(value)) return value === 0 ? 0 : value
  if (typeof value === 'bigint') return { bigint: value.toString() }
  if (value === undefined) return { undefined: true }
  throw unsupported(place, `the literal ${String(value)}`)
}

function unsupported(place: Place, what: string): Error {
  return recordError('MR-R02', `${place.path === '' ? 'The schema itself' : `Field ${place.path}`} is ${what}.`)
}
