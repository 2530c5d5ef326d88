import { describe, expect, it } from 'vitest'
import { z, type ZodType } from 'zod'
import { createReader, createWriter } from './bytes.ts'
import type { Codec } from './contract.ts'
import { rowCodec } from './row-codec.ts'
import { layoutOfSchema } from './schema-layout.ts'
import { untypedCodec } from './untyped.ts'

function codecOf(schema: ZodType): Codec<unknown> {
  return rowCodec<unknown>(layoutOfSchema(schema))
}

function encode(codec: Codec<unknown>, value: unknown): Uint8Array {
  const writer = createWriter()
  codec.encode(value, writer)
  return writer.take()
}

/** What a value stored under one schema is under another; or why not. */
function evolve(from: ZodType, to: ZodType, value: unknown): unknown {
  const stored = codecOf(from)
  const description = JSON.parse(JSON.stringify(stored.description)) as Codec<unknown>['description']
  const answer = codecOf(to).readerOf(description)
  if ('refused' in answer) return answer.refused
  const reader = createReader(encode(stored, value))
  const result = answer.codec.decode(reader)
  expect(reader.position).toBe(reader.end)
  return result
}

describe('rows', () => {
  it('drop the fields that a schema does not list', () => {
    const codec = codecOf(z.object({ a: z.int() }))
    expect(codec.decode(createReader(encode(codec, { a: 1, b: 2 })))).toStrictEqual({ a: 1 })
  })

  it('keep fields in the schema order, and missing apart from undefined', () => {
    const codec = codecOf(z.object({ a: z.int().optional(), b: z.int(), c: z.int().optional() }))
    const decoded = codec.decode(createReader(encode(codec, { c: undefined, b: 2 }))) as object
    expect(Object.keys(decoded)).toEqual(['b', 'c'])
    const full = codec.decode(createReader(encode(codec, { c: 3, b: 2, a: 1 }))) as object
    expect(Object.keys(full)).toEqual(['a', 'b', 'c'])
  })

  it('keep names that JavaScript itself uses', () => {
    const codec = codecOf(z.record(z.string(), z.int()))
    const value = JSON.parse('{"__proto__":1,"constructor":2}') as object
    const decoded = codec.decode(createReader(encode(codec, value))) as object
    expect(Object.entries(decoded)).toEqual([
      ['__proto__', 1],
      ['constructor', 2],
    ])
    const optional = codecOf(z.object({ toString: z.string().optional() }))
    expect(Object.keys(optional.decode(createReader(encode(optional, {}))) as object)).toEqual([])
  })

  it('copy bytes and strings, so that a kept value does not keep its frame', () => {
    const codec = codecOf(z.instanceof(Uint8Array))
    const bytes = encode(codec, Uint8Array.of(1, 2, 3))
    const decoded = codec.decode(createReader(bytes)) as Uint8Array
    bytes.fill(0)
    expect(decoded).toEqual(Uint8Array.of(1, 2, 3))
    expect(decoded.buffer.byteLength).toBe(3)
  })

  it('refuse values that do not fit, naming the field and what is there', () => {
    const schema = z.object({
      name: z.string(),
      items: z.array(z.object({ price: z.number(), count: z.int() })),
      color: z.enum(['red', 'green']),
      at: z.date().nullable(),
      pair: z.tuple([z.int(), z.string()]),
    })
    const codec = codecOf(schema)
    const good = { name: 'x', items: [{ price: 1, count: 1 }], color: 'red', at: null, pair: [1, 'a'] }
    encode(codec, good)
    const cases: [object, string][] = [
      [{ ...good, name: 5 }, 'Field name is an integer, not a string.'],
      [{ ...good, items: [{ price: '1', count: 1 }] }, 'Field items[].price is a string, not a number.'],
      [{ ...good, items: [{ price: 1, count: 1.5 }] }, 'Field items[].count is a number, not a safe integer.'],
      [{ ...good, items: [{ price: 1 }] }, 'Field items[].count is undefined, not a safe integer.'],
      [{ ...good, items: [null] }, 'Field items[] is null, not an object.'],
      [{ ...good, items: {} }, 'Field items is an object, not an array.'],
      [{ ...good, color: 'blue' }, 'Field color is a string, not "red" or "green".'],
      [{ ...good, at: 5 }, 'Field at is an integer, not a Date.'],
      [{ ...good, at: undefined }, 'Field at is undefined, not a Date.'],
      [{ ...good, pair: [1, 'a', 2] }, 'Field pair is an array, not an array of 2 elements.'],
      [{ ...good, pair: [1] }, 'Field pair[1] is undefined, not a string.'],
    ]
    for (const [value, text] of cases)
      expect(() => encode(codec, value)).toThrow(`MR-R04 A value does not fit its schema. ${text}`)
    expect(() => encode(codec, Promise.resolve(good))).toThrow('Field name is undefined')
    expect(() => encode(codec, null)).toThrow('The value is null, not an object.')
    expect(() => encode(codecOf(z.union([z.string(), z.int()])), true)).toThrow('not any of its union')
  })

  it('choose the option of a union that loses nothing', () => {
    const codec = codecOf(z.union([z.object({ a: z.int() }), z.object({ a: z.int(), b: z.int() })]))
    const through = (value: unknown): unknown => codec.decode(createReader(encode(codec, value)))
    expect(through({ a: 1, b: 2 })).toStrictEqual({ a: 1, b: 2 })
    expect(through({ a: 1 })).toStrictEqual({ a: 1 })
    expect(through({ a: 1, c: 2 })).toStrictEqual({ a: 1 })
  })

  it('run no text of a schema as code', () => {
    const name = `"]; globalThis.intruded = true; //\u2028\``
    const codec = codecOf(z.object({ [name]: z.object({ [name]: z.int() }).optional(), kind: z.literal(name) }))
    const value = { [name]: { [name]: 1 }, kind: name }
    expect(codec.decode(createReader(encode(codec, value)))).toStrictEqual(value)
    expect(() => encode(codec, { [name]: { [name]: 'x' }, kind: name })).toThrow('MR-R04')
    expect(globalThis).not.toHaveProperty('intruded')
  })
})

describe('schema evolution', () => {
  it('gives the default to a gained field, a fresh one each time, in the place where the schema has it', () => {
    const from = z.object({ a: z.int(), c: z.int() })
    const to = z.object({ a: z.int(), b: z.array(z.int()).default(() => []), c: z.int(), d: z.int().optional() })
    const first = evolve(from, to, { a: 1, c: 3 }) as { b: number[] }
    expect(first).toStrictEqual({ a: 1, b: [], c: 3 })
    expect(Object.keys(first)).toEqual(['a', 'b', 'c'])
    first.b.push(1)
    expect(evolve(from, to, { a: 1, c: 3 })).toStrictEqual({ a: 1, b: [], c: 3 })
    expect(
      evolve(from, from.extend({ e: z.string().prefault('p'), f: z.int().catch(4) }), { a: 1, c: 3 }),
    ).toStrictEqual({ a: 1, c: 3, e: 'p', f: 4 })
  })

  it('drops a lost field, however deep', () => {
    const from = z.object({
      a: z.int(),
      old: z.union([
        z.object({ t: z.literal('x'), list: z.array(z.map(z.string(), z.literal(1))) }),
        z.object({ t: z.literal('y') }),
      ]),
      gone: z.string().optional(),
      z: z.tuple([z.int()], z.string()),
    })
    const value = { a: 1, old: { t: 'x', list: [new Map([['k', 1]])] }, gone: 'g', z: [1, 'r'] }
    expect(evolve(from, z.object({ a: z.int() }), value)).toStrictEqual({ a: 1 })
    expect(evolve(from, z.object({ z: z.tuple([z.int()], z.string()), a: z.int() }), value)).toStrictEqual({
      z: [1, 'r'],
      a: 1,
    })
    expect(evolve(z.looseObject({ a: z.int() }), z.object({ a: z.int() }), { a: 1, more: [2] })).toStrictEqual({ a: 1 })
  })

  it('widens int to number, and values to optional or nullable ones', () => {
    expect(evolve(z.object({ a: z.array(z.int()) }), z.object({ a: z.array(z.number()) }), { a: [1] })).toStrictEqual({
      a: [1],
    })
    expect(evolve(z.int32(), z.int(), 5)).toBe(5)
    expect(evolve(z.object({ a: z.int() }), z.object({ a: z.number().nullable().optional() }), { a: 1 })).toStrictEqual(
      { a: 1 },
    )
    expect(evolve(z.object({ a: z.int().optional() }), z.object({ a: z.int().default(7) }), {})).toStrictEqual({ a: 7 })
    expect(evolve(z.enum(['x', 'y']), z.enum(['y', 'z', 'x']), 'x')).toBe('x')
  })

  it('finds the options of a union by what tells them apart, not by place', () => {
    const a = z.object({ type: z.literal('a'), n: z.int() })
    const b = z.object({ type: z.literal('b'), text: z.string() })
    const c = z.object({ type: z.literal('c') })
    expect(evolve(z.union([a, b]), z.union([c, b, a]), { type: 'a', n: 1 })).toStrictEqual({ type: 'a', n: 1 })
    expect(evolve(z.union([a, b]), z.union([a, c]), { type: 'a', n: 1 })).toBe(
      'the value no longer has the option 2 of its union',
    )
  })

  it('refuses everything else, naming the field', () => {
    const cases: [ZodType, ZodType, unknown, string][] = [
      [z.object({ a: z.int() }), z.object({ a: z.int(), b: z.int() }), { a: 1 }, 'field b is new, and has no default'],
      [z.object({ a: z.number() }), z.object({ a: z.int() }), { a: 1 }, 'field a was number and is int today'],
      [
        z.object({ a: z.object({ b: z.string() }) }),
        z.object({ a: z.object({ b: z.int() }) }),
        { a: { b: '' } },
        'field a.b was string and is int today',
      ],
      [
        z.object({ a: z.int().optional() }),
        z.object({ a: z.int() }),
        {},
        'field a was optional and is required today, and has no default',
      ],
      [
        z.object({ a: z.int().nullable() }),
        z.object({ a: z.int() }),
        { a: 1 },
        'field a was nullable and is int today',
      ],
      [z.array(z.enum(['x', 'y'])), z.array(z.enum(['x'])), [], 'field [] no longer allows y'],
      [z.tuple([z.int()]), z.tuple([z.int(), z.int()]), [1], 'the value is a tuple of another length today'],
      [z.map(z.string(), z.int()), z.record(z.string(), z.int()), new Map(), 'the value was map and is record today'],
    ]
    for (const [from, to, value, reason] of cases) expect(evolve(from, to, value)).toBe(reason)
  })

  it('refuses another kind or version of codec', () => {
    const codec = codecOf(z.int())
    expect(codec.readerOf(untypedCodec.description)).toEqual({
      refused: 'the data was written as untyped, today it has a schema',
    })
    expect(codec.readerOf({ ...codec.description, version: 2 })).toHaveProperty('refused')
    expect(untypedCodec.readerOf(codec.description)).toHaveProperty('refused')
    expect(untypedCodec.readerOf({ ...untypedCodec.description })).toEqual({ codec: untypedCodec })
  })

  it('uses the codec itself for the same layout', () => {
    const codec = codecOf(z.object({ a: z.int() }))
    expect(codec.readerOf(codecOf(z.object({ a: z.int32().max(5) })).description)).toEqual({ codec })
  })

  it('gives a codec that only reads', () => {
    const answer = codecOf(z.number()).readerOf(codecOf(z.int()).description)
    if ('refused' in answer) throw new Error(answer.refused)
    expect(() => answer.codec.encode(1, createWriter())).toThrow('does not write')
  })
})
