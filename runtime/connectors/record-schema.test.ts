import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { fieldsOf, validatorOf } from './record-schema.ts'

const schema = z.object({
  number: z.number(),
  int: z.int(),
  small: z.number().int().min(0).max(9),
  above: z.number().gt(1),
  int32: z.int32(),
  text: z.string(),
  flag: z.boolean(),
  big: z.bigint(),
  maybe: z.string().nullable(),
  absent: z.string().optional(),
  level: z.enum(['low$1', 'high']),
})

const anything = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constant(-0),
  fc.string(),
  fc.boolean(),
  fc.bigInt(),
  fc.constant(null),
  fc.constant(undefined),
  fc.constantFrom('low$1', 'high'),
)
const fitting = {
  number: fc.double({ noNaN: true, noDefaultInfinity: true }),
  int: fc.maxSafeInteger(),
  small: fc.integer({ min: 0, max: 9 }),
  above: fc.double({ min: 1.5, max: 9, noNaN: true }),
  int32: fc.integer(),
  text: fc.string(),
  flag: fc.boolean(),
  big: fc.bigInt(),
  maybe: fc.oneof(fc.string(), fc.constant(null)),
  absent: fc.string(),
  level: fc.constantFrom('low$1', 'high'),
}

describe('record validator', () => {
  it('agrees with zod on every record, whole or spoiled in one field', () => {
    const validator = validatorOf(schema)
    const spoiled = fc.tuple(
      fc.record(fitting, { requiredKeys: [] }),
      fc.option(fc.constantFrom(...Object.keys(fitting))),
      anything,
    )
    fc.assert(
      fc.property(spoiled, ([record, field, value]) => {
        const raw: Record<string, unknown> = { ...record, extra: 1 }
        if (field !== null) raw[field] = value
        const parsed = schema.safeParse(raw)
        expect(validator.accept(raw)).toEqual(parsed.success ? parsed.data : undefined)
      }),
      { numRuns: 2_000 },
    )
  })

  it('agrees with zod on rows of columns', () => {
    const validator = validatorOf(schema)
    const fields = fieldsOf(schema)!
    fc.assert(
      fc.property(
        fc.record(fitting),
        fc.option(fc.constantFrom(...Object.keys(fitting))),
        anything,
        (record, field, value) => {
          const raw: Record<string, unknown> = { ...record }
          if (field !== null && value !== null && value !== undefined) raw[field] = value
          const parsed = schema.safeParse(raw)
          expect(
            validator.acceptRow(
              fields.map(({ name }) => [raw[name]]),
              0,
            ),
          ).toEqual(parsed.success ? parsed.data : undefined)
        },
      ),
      { numRuns: 500 },
    )
  })

  it('leaves everything that is not plain to zod', () => {
    const changing = z.object({
      text: z.string().transform((text) => text.length),
      number: z.coerce.number(),
      level: z.number().default(3),
    })
    expect(validatorOf(changing).accept({ text: 'four', number: '7' })).toEqual({ text: 4, number: 7, level: 3 })
    expect(validatorOf(z.strictObject({ a: z.string() })).accept({ a: '', b: 1 })).toBeUndefined()
    expect(validatorOf(z.looseObject({ a: z.string() })).accept({ a: '', b: 1 })).toEqual({ a: '', b: 1 })
    expect(validatorOf(z.object({ a: z.number() }).refine(({ a }) => a > 3)).accept({ a: 1 })).toBeUndefined()
    expect(validatorOf(z.object({ a: z.string().min(2) })).accept({ a: 'b' })).toBeUndefined()
    expect(validatorOf(z.number()).accept(5)).toBe(5)
    expect(validatorOf(z.object({ a: z.object({ b: z.number() }) })).accept({ a: { b: 1, c: 2 } })).toEqual({
      a: { b: 1 },
    })
  })

  it('names the field and the reason of a refusal', () => {
    const validator = validatorOf(schema)
    expect(validator.accept({})).toBeUndefined()
    expect(validator.problem).toContain('number: ')
    expect(validator.problem).toContain('level: ')
  })

  it('fills in defaults, drops unknown fields, and names a place inside the record', () => {
    const flight = z.object({ from: z.string(), delay: z.int().default(0) })
    expect(validatorOf(flight).accept({ from: 'JFK', more: 1 })).toEqual({ from: 'JFK', delay: 0 })
    const list = validatorOf(z.array(z.int()))
    expect(list.accept([1, 'x'])).toBeUndefined()
    expect(list.problem).toContain('1: ')
  })

  it('refuses a schema that validates asynchronously', () => {
    const slow = validatorOf(z.object({ text: z.string().refine(async () => true) }))
    expect(() => slow.accept({ text: 'x' })).toThrow('MR-R08')
  })

  it('takes field names that would be code for what they are: names', () => {
    const odd = z.object({ 'a"]; throw 1; //': z.string(), constructor: z.string(), __proto__x: z.string() })
    const record = { 'a"]; throw 1; //': 'x', constructor: 'y', __proto__x: 'z' }
    expect(validatorOf(odd).accept(record)).toEqual(record)
  })
})
