// What the edge needs of a record's schema: its fields' kinds (to give Parquet and CSV values their types), and a
// validator that is cheap where the schema is plain. The compiled check accepts only what zod would return unchanged;
// everything else goes through zod itself, so the two never disagree.

/* oxlint-disable no-underscore-dangle -- _zod is how zod lets libraries read a schema. */

import { z } from 'zod'
import type { ZodSafeParseResult, ZodType } from 'zod'
import { recordError } from '../record/errors.ts'

export type FieldKind = 'string' | 'number' | 'boolean' | 'bigint' | 'date' | 'other'

export interface RecordField {
  readonly name: string
  readonly kind: FieldKind
  readonly nullable: boolean
  readonly optional: boolean
  /** JavaScript that is true for the variable `v` only if zod accepts it and leaves it as it is; undefined: only zod knows. */
  readonly test: string | undefined
}

/** The fields of an object schema; undefined for any other. */
export function fieldsOf(schema: ZodType): readonly RecordField[] | undefined {
  const definition = definitionOf(schema)
  if (definition.type !== 'object' || definition.shape === undefined) return undefined
  return Object.entries(definition.shape).map(([name, field]) => fieldOf(name, field))
}

/** Validates records at the edge. Not shared between threads; `problem` belongs to the last refusal. */
export interface RecordValidator<T> {
  /** The valid record, or undefined. */
  accept(raw: unknown): T | undefined
  /** The valid record of row `index` of columns in the order of `fieldsOf(schema)`, or undefined. */
  acceptRow(columns: readonly ArrayLike<unknown>[], index: number): T | undefined
  /** Why the last record was refused, as a sentence without its end. */
  readonly problem: string
}

/** `schema` must be an object schema for `acceptRow`. A schema with asynchronous checks throws MR-R08 at the first record. */
export function validatorOf<T>(schema: ZodType<T>): RecordValidator<T> {
  const fields = fieldsOf(schema) ?? []
  const plain = isPlainObject(schema, fields)
  const fromObject = plain ? compile<T>(fields, 'raw', (field) => `raw[${JSON.stringify(field.name)}]`) : undefined
  const fromColumns = plain ? compile<T>(fields, 'columns, index', (_, at) => `columns[${at}][index]`) : undefined

  const validator = {
    problem: '',
    accept(raw: unknown): T | undefined {
      if (fromObject !== undefined && typeof raw === 'object' && raw !== null) {
        const record = fromObject(raw)
        if (record !== undefined) return record
      }
      const parsed = parsedBy(schema, raw)
      if (parsed.success) return parsed.data
      validator.problem = parsed.error.issues
        .map((issue) => (issue.path.length === 0 ? issue.message : `${issue.path.join('.')}: ${issue.message}`))
        .join('; ')
      return undefined
    },
    acceptRow(columns: readonly ArrayLike<unknown>[], index: number): T | undefined {
      const record = fromColumns?.(columns, index)
      if (record !== undefined) return record
      return validator.accept(rowObject(fields, columns, index))
    },
  }
  return validator
}

function parsedBy<T>(schema: ZodType<T>, raw: unknown): ZodSafeParseResult<T> {
  try {
    return schema.safeParse(raw)
  } catch (cause) {
    if (cause instanceof z.core.$ZodAsyncError) throw recordError('MR-R08', 'It is the schema of a source.', cause)
    throw cause
  }
}

/** A row as a plain object; a null where the schema knows none is a missing field. */
export function rowObject(
  fields: readonly RecordField[],
  columns: readonly ArrayLike<unknown>[],
  index: number,
): Record<string, unknown> {
  const raw: Record<string, unknown> = {}
  for (let at = 0; at < fields.length; at++) {
    const value = columns[at]![index]
    if (value === undefined || (value === null && !fields[at]!.nullable)) continue
    raw[fields[at]!.name] = value
  }
  return raw
}

type Compiled<T> = (...inputs: unknown[]) => T | undefined

function compile<T>(
  fields: readonly RecordField[],
  parameters: string,
  access: (field: RecordField, at: number) => string,
): Compiled<T> {
  const lines = fields.map((field, at) => {
    const test = field.test!.replaceAll('$', `f${at}`)
    return `const f${at} = ${access(field, at)}; if (!(${test})) return undefined;`
  })
  const literal = fields.map((field, at) => `${JSON.stringify(field.name)}: f${at}`).join(', ')
  // The names come out of JSON.stringify, the tests out of this file: nothing of the schema runs as code.
  // oxlint-disable-next-line no-new-func, typescript/no-implied-eval -- 7 ns a record, its object included; zod's parse of a ready one takes 20.
  return new Function(...parameters.split(', '), `${lines.join('\n')}\nreturn { ${literal} }`) as Compiled<T>
}

interface Definition {
  readonly type: string
  readonly shape?: Readonly<Record<string, ZodType>>
  readonly catchall?: ZodType
  readonly checks?: readonly ZodType[]
  readonly check?: string
  readonly format?: string
  readonly coerce?: boolean
  readonly innerType?: ZodType
  readonly values?: readonly unknown[]
  readonly entries?: Readonly<Record<string, string | number>>
  readonly value?: unknown
  readonly inclusive?: boolean
}

function definitionOf(schema: ZodType): Definition {
  return (schema as unknown as { _zod: { def: Definition } })._zod.def
}

/** Without refinements, unknown-key rules or a name that an object literal would treat apart. */
function isPlainObject(schema: ZodType, fields: readonly RecordField[]): boolean {
  const definition = definitionOf(schema)
  if (definition.type !== 'object' || definition.catchall !== undefined) return false
  if (definition.checks !== undefined && definition.checks.length > 0) return false
  return fields.every((field) => field.test !== undefined && field.name !== '__proto__')
}

const passThrough = new Set(['optional', 'nullable', 'nonoptional', 'readonly'])
const withDefault = new Set(['default', 'prefault', 'catch'])

function fieldOf(name: string, schema: ZodType): RecordField {
  let nullable = false
  let optional = false
  let testable = true
  let definition = definitionOf(schema)
  while ((passThrough.has(definition.type) || withDefault.has(definition.type)) && definition.innerType !== undefined) {
    if (definition.type === 'nullable') nullable = true
    if (definition.type === 'optional' || withDefault.has(definition.type)) optional = true
    // A default changes the record, and `readonly` freezes it: only zod does that.
    if (withDefault.has(definition.type) || definition.type === 'readonly') testable = false
    definition = definitionOf(definition.innerType)
  }
  const inner = testable ? testOf(definition) : undefined
  const test = inner !== undefined && nullable ? `$ === null || (${inner})` : inner
  return { name, kind: kindOf(definition), nullable, optional, test }
}

function kindOf(definition: Definition): FieldKind {
  switch (definition.type) {
    case 'string':
    case 'number':
    case 'boolean':
    case 'bigint':
    case 'date':
      return definition.type
    case 'int':
      return 'number'
    case 'enum':
      return kindOfValues(Object.values(definition.entries ?? {}))
    case 'literal':
      return kindOfValues(definition.values ?? [])
    default:
      return 'other'
  }
}

function kindOfValues(values: readonly unknown[]): FieldKind {
  if (values.length === 0) return 'other'
  if (values.every((value) => typeof value === 'string')) return 'string'
  if (values.every((value) => typeof value === 'number')) return 'number'
  if (values.every((value) => typeof value === 'boolean')) return 'boolean'
  return 'other'
}

/** `$` stands for the value. */
function testOf(definition: Definition): string | undefined {
  if (definition.coerce === true) return undefined
  const checks = [
    ...(definition.check === undefined ? [] : [definition]),
    ...(definition.checks ?? []).map(definitionOf),
  ]
  switch (definition.type) {
    case 'string':
      return checks.length === 0 ? `typeof $ === 'string'` : undefined
    case 'boolean':
      return checks.length === 0 ? `typeof $ === 'boolean'` : undefined
    case 'bigint':
      return checks.length === 0 ? `typeof $ === 'bigint'` : undefined
    case 'number': {
      const tests = checks.map(numberCheck)
      return tests.includes(undefined) ? undefined : [`typeof $ === 'number'`, `$ - $ === 0`, ...tests].join(' && ')
    }
    case 'enum': {
      const values = Object.values(definition.entries ?? {})
      return values.length > 0 && values.every((value) => typeof value === 'string')
        ? values.map((value) => `$ === ${JSON.stringify(value).replaceAll('$', '\\u0024')}`).join(' || ')
        : undefined
    }
    default:
      return undefined
  }
}

function numberCheck(check: Definition): string | undefined {
  if (check.check === 'number_format' && check.format === 'safeint') return `Number.isSafeInteger($)`
  if (check.check === 'number_format' && check.format === 'int32') return `($ | 0) === $`
  if (typeof check.value !== 'number' || !Number.isFinite(check.value)) return undefined
  if (check.check === 'greater_than') return `$ ${check.inclusive === true ? '>=' : '>'} ${check.value}`
  if (check.check === 'less_than') return `$ ${check.inclusive === true ? '<=' : '<'} ${check.value}`
  return undefined
}
