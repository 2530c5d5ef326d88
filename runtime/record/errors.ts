// Errors of records, codecs and keys: MR-R…

import { errorsOf, MillraceError, type ErrorRow } from '../base/errors.ts'

/** A record, a value or a key is at fault, not a place where it is kept. */
export function isRecordError(error: unknown): boolean {
  return error instanceof MillraceError && error.code in recordErrors
}

export const recordErrors = {
  'MR-R01': {
    meaning: 'Bytes do not have the form they should have.',
    who: 'external system',
    retry: false,
    remedy:
      'The stored or received data is damaged or of another version: restore the object from a copy, and check the disk or network.',
  },
  'MR-R02': {
    meaning: 'A schema uses a kind that has no binary form.',
    who: 'user',
    retry: false,
    remedy: 'Describe the field with another zod type, or use z.unknown() for it (self-describing, slower).',
  },
  'MR-R03': {
    meaning: 'A value cannot be a key.',
    who: 'user',
    retry: false,
    remedy: 'Let the key selector return a string, a number other than NaN, a bigint, a boolean, or an array of these.',
  },
  'MR-R04': {
    meaning: 'A value does not fit its schema.',
    who: 'user',
    retry: false,
    remedy: 'Change the schema, or the operator that emitted the value.',
  },
  'MR-R06': {
    meaning: 'A record or batch is too large.',
    who: 'user',
    retry: false,
    remedy: 'Emit smaller records; keep large payloads in an object store and send their names.',
  },
  'MR-R07': {
    meaning: 'A value has no self-describing binary form.',
    who: 'user',
    retry: false,
    remedy:
      'Emit plain data: objects, arrays, Map, Set, Date, Uint8Array, strings, numbers, bigints, booleans, null and undefined.',
  },
  'MR-R08': {
    meaning: 'A schema validates asynchronously.',
    who: 'user',
    retry: false,
    remedy: 'Use synchronous refinements and transforms in the schemas of streams.',
  },
} as const satisfies Readonly<Record<`MR-R${string}`, ErrorRow>>

export const recordError = errorsOf(recordErrors)

/** What a value is, for an error's text; never its content, which may be secret or huge. */
export function describeValue(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'undefined'
  if (typeof value === 'number')
    return Number.isSafeInteger(value) ? 'an integer' : Number.isNaN(value) ? 'NaN' : 'a number'
  if (Array.isArray(value)) return 'an array'
  if (typeof value !== 'object') return `a ${typeof value}`
  const name = (value as { constructor?: { name?: unknown } }).constructor?.name
  return typeof name === 'string' && name !== 'Object' ? `an instance of ${name}` : 'an object'
}
