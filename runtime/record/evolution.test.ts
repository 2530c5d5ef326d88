import { describe, expect, it } from 'vitest'
import { z, type ZodType } from 'zod'
import { createReader, createWriter } from './bytes.ts'
import { typeInfoOf } from './type-info.ts'

/** `value` written under one schema and read under another; a text is why it is refused. */
function evolve(from: ZodType, to: ZodType, value: unknown): unknown {
  const writer = createWriter()
  const { row } = typeInfoOf<unknown>('value', from)
  row.encode(value, writer)
  const answer = typeInfoOf<unknown>('value', to).row.readerOf(JSON.parse(JSON.stringify(row.description)))
  return 'refused' in answer ? answer.refused : { read: answer.codec.decode(createReader(writer.take())) }
}

describe('a schema that changes', () => {
  it('may let a choice become the type of its values', () => {
    expect(evolve(z.enum(['a', 'b']), z.string(), 'b')).toEqual({ read: 'b' })
    expect(evolve(z.object({ unit: z.literal('km') }), z.object({ unit: z.string() }), { unit: 'km' })).toEqual({
      read: { unit: 'km' },
    })
    expect(evolve(z.literal([1, 2]), z.int(), 2)).toEqual({ read: 2 })
    expect(evolve(z.literal([1, 2.5]), z.number(), 2.5)).toEqual({ read: 2.5 })
    expect(evolve(z.literal([1n, 2n]), z.bigint(), 2n)).toEqual({ read: 2n })
    expect(evolve(z.literal([1, 2.5]), z.int(), 1)).toBe('the value was one of 2 values and is int today')
    expect(evolve(z.literal([1, 'a']), z.string(), 'a')).toBe('the value was one of 2 values and is string today')
    expect(evolve(z.null(), z.object({}), null)).toBe('the value was one of 1 values and is object today')
    expect(evolve(z.string(), z.enum(['a']), 'a')).toBe('the value was string and is one of 1 values today')
  })

  it('finds an option of a union that stands elsewhere now, and takes none for another', () => {
    const left = z.object({ left: z.string().optional() })
    const right = z.object({ right: z.string().optional() })
    const wider = z.object({ left: z.string().optional(), more: z.int().default(0) })
    expect(evolve(z.union([left, right]), z.union([right, left]), { left: 'x' })).toEqual({ read: { left: 'x' } })
    expect(evolve(z.union([z.string(), z.int()]), z.union([z.boolean(), z.int(), z.string()]), 'x')).toEqual({
      read: 'x',
    })
    // In its place, with a field more.
    expect(evolve(z.union([left, right]), z.union([wider, right]), { left: 'x' })).toEqual({
      read: { left: 'x', more: 0 },
    })
    expect(evolve(z.union([left, right]), z.union([right, wider]), { left: 'x' })).toBe(
      'the value no longer has the option 1 of its union',
    )
  })

  it('takes no default for a field that values may have had unlisted', () => {
    const from = z.looseObject({ a: z.int() })
    const reason = 'field b is new, and stored values may have it among the fields that were not listed'
    expect(evolve(from, from.extend({ b: z.int().default(0) }), { a: 1, b: 'text' })).toBe(reason)
    expect(evolve(from, from.extend({ b: z.int().optional() }), { a: 1, b: 'text' })).toBe(reason)
    expect(evolve(from, z.object({ a: z.int(), b: z.int().default(0) }), { a: 1, b: 'text' })).toBe(reason)
    expect(evolve(from, z.object({ a: z.number() }), { a: 1, b: 'text' })).toEqual({ read: { a: 1 } })
  })
})
