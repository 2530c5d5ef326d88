import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import { mayHoldText, ownStrings } from './own-strings.ts'

const long = 'a text of more than thirteen characters'

describe('ownStrings', () => {
  it('gives an equal value, copied only where it holds long strings', () => {
    const value = {
      short: 'ABC',
      text: long,
      nested: { list: [long, 'x'], numbers: [1, 2] },
      map: new Map([[long, { a: long }]]),
      set: new Set([long]),
    }
    const own = ownStrings(value) as typeof value
    expect(own).toEqual(value)
    expect(own).not.toBe(value)
    expect(own.nested.numbers).toBe(value.nested.numbers)
    const plain = { a: 1, b: 'short', c: [1, 2], d: null, e: { f: true } }
    expect(ownStrings(plain)).toBe(plain)
  })

  it('never changes the value that it was given', () => {
    const value = Object.freeze({ text: long, list: Object.freeze([long]) })
    expect(ownStrings(value)).toEqual(value)
  })

  it('leaves large containers alone when told to', () => {
    const large = Array.from({ length: 100 }, () => long)
    expect(ownStrings(large, 32)).toBe(large)
    expect(ownStrings(large)).not.toBe(large)
  })

  it('is not needed for types without text', () => {
    const needs = (schema?: z.ZodType): boolean => mayHoldText(typeInfoOf('t', schema).row.description)
    expect(needs()).toBe(true)
    expect(needs(z.object({ count: z.number(), at: z.date().optional(), list: z.array(z.bigint()) }))).toBe(false)
    expect(needs(z.object({ kind: z.enum(['one', 'two']) }))).toBe(false)
    expect(needs(z.object({ list: z.array(z.object({ name: z.string().nullable() })) }))).toBe(true)
    expect(needs(z.record(z.string(), z.number()))).toBe(true)
  })
})
