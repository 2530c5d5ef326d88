// Today's bytes, kept: the readers of tomorrow must read them, and a change of format must be seen as a change of this file.
// One line each: name, codec, fingerprint, bytes. To add a case, run vitest with -u and look at the difference.

import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { z, type ZodType } from 'zod'
import { createReader, createWriter } from './bytes.ts'
import { NO_TIMESTAMP } from './element.ts'
import { typeInfoOf } from './type-info.ts'

interface GoldenCase {
  readonly schema?: ZodType
  readonly values: readonly unknown[]
}

const shape = z.discriminatedUnion('kind', [
  z.object({ kind: z.literal('circle'), radius: z.number() }),
  z.object({ kind: z.literal('square'), side: z.int(), turned: z.boolean().optional() }),
])

const cases: Readonly<Record<string, GoldenCase>> = {
  string: { schema: z.string(), values: ['', 'text', 'naïve €', '\ud800', 'long '.repeat(10)] },
  number: { schema: z.number(), values: [0, -0, 1, -1, 240, 70_000, 2 ** 40, 0.1, Number.NaN, Infinity] },
  'number, whole': { schema: z.number(), values: [1000, 1001, 1200] },
  int: { schema: z.int(), values: [0, 239, 240, -32_768, 2 ** 31 - 1, Number.MAX_SAFE_INTEGER] },
  'int, 2 bytes': { schema: z.int(), values: [-5, 60_000] },
  'int, 4 bytes': { schema: z.int(), values: [1_730_000_000_000, 1_730_001_000_000] },
  bigint: { schema: z.bigint(), values: [0n, -1n, 2n ** 63n - 1n, 2n ** 63n, -(2n ** 80n)] },
  boolean: { schema: z.boolean(), values: [true, false] },
  date: { schema: z.date(), values: [new Date(0), new Date(1_730_000_000_123)] },
  bytes: { schema: z.instanceof(Uint8Array), values: [Uint8Array.of(), Uint8Array.of(1, 255)] },
  untyped: { schema: z.unknown(), values: [{ a: 1, b: 'x' }, [null], 5n] },
  literal: { schema: z.literal('one'), values: ['one', 'one'] },
  choice: { schema: z.literal(['a', 2, 3n, true]), values: ['a', 2, 3n, true] },
  null: { schema: z.null(), values: [null] },
  nullable: { schema: z.int().nullable(), values: [null, 7] },
  optional: { schema: z.string().optional(), values: [undefined, 'x'] },
  array: { schema: z.array(z.int()), values: [[], [1, 2]] },
  'array of nothing': { schema: z.array(z.literal(1)), values: [[1, 1]] },
  set: { schema: z.set(z.string()), values: [new Set(['a', 'b'])] },
  map: { schema: z.map(z.string(), z.int()), values: [new Map([['a', 1]])] },
  tuple: {
    schema: z.tuple([z.int(), z.string()], z.boolean()),
    values: [
      [1, 'a'],
      [1, 'a', true],
    ],
  },
  record: { schema: z.record(z.string(), z.number()), values: [{}, { a: 1, b: 0.5 }] },
  union: { schema: z.union([z.string(), z.int(), z.null()]), values: ['a', 5, null] },
  'discriminated union': {
    schema: shape,
    values: [
      { kind: 'circle', radius: 0.5 },
      { kind: 'square', side: 3 },
    ],
  },
  object: {
    schema: z.object({
      id: z.int(),
      name: z.string(),
      score: z.number().nullable(),
      tags: z.array(z.string()),
      color: z.enum(['red', 'green']),
      note: z.string().optional(),
      inner: z.object({ at: z.date(), flag: z.boolean() }),
    }),
    values: [
      {
        id: 1,
        name: 'Ada',
        score: 0.5,
        tags: ['x'],
        color: 'green',
        note: 'n',
        inner: { at: new Date(5), flag: true },
      },
      { id: 300, name: 'Zoë', score: null, tags: [], color: 'red', inner: { at: new Date(-1), flag: false } },
      { id: 2, name: '', score: 3, tags: [], color: 'red', note: undefined, inner: { at: new Date(6), flag: false } },
    ],
  },
  'loose object': { schema: z.looseObject({ a: z.int() }), values: [{ a: 1 }, { a: 2, more: 'x' }] },
  'without schema': {
    values: [
      { a: 1, b: [true, null, undefined] },
      { a: 2, b: 'text' },
      new Map<unknown, unknown>([[1, new Set(['x'])]]),
      [5n, -(2n ** 70n), new Date(1_730_000_000_123), Uint8Array.of(1, 2)],
    ],
  },
}

const timestamps = (count: number): number[] =>
  Array.from({ length: count }, (_, index) => (index === 1 ? NO_TIMESTAMP : index * 1000))

describe('golden bytes', () => {
  it('are what the codecs write today', async () => {
    const lines: string[] = []
    for (const [name, { schema, values }] of Object.entries(cases)) {
      const type = typeInfoOf<unknown>(name, schema)
      const writer = createWriter()
      for (const value of values) type.row.encode(value, writer)
      lines.push(`${name}; row; ${type.row.description.fingerprint}; ${Buffer.from(writer.take()).toString('hex')}`)
      writer.reset()
      type.batch.encodeBatch(values, timestamps(values.length), 0, values.length, writer)
      lines.push(`${name}; batch; ${type.row.description.fingerprint}; ${Buffer.from(writer.take()).toString('hex')}`)
    }
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('testdata/codec-bytes.txt')
  })

  it('are read as the values that they were written from', () => {
    const lines = readFileSync(new URL('testdata/codec-bytes.txt', import.meta.url), 'utf8')
      .trim()
      .split('\n')
    expect(lines).toHaveLength(Object.keys(cases).length * 2)
    for (const line of lines) {
      const [name, form, , hex] = line.split('; ') as [string, string, string, string]
      const { schema, values } = cases[name]!
      const type = typeInfoOf<unknown>(name, schema)
      const reader = createReader(Buffer.from(hex, 'hex'))
      if (form === 'batch') {
        expect(type.batch.decodeBatch(reader), line).toStrictEqual({ values, timestamps: timestamps(values.length) })
      } else {
        for (const value of values) expect(type.row.decode(reader), line).toStrictEqual(value)
        expect(reader.position).toBe(reader.end)
      }
    }
  })

  it('have layouts that are kept with them', async () => {
    const layouts = Object.entries(cases).map(
      ([name, { schema }]) => `${name}; ${JSON.stringify(typeInfoOf(name, schema).row.description)}`,
    )
    await expect(`${layouts.join('\n')}\n`).toMatchFileSnapshot('testdata/codec-descriptions.txt')
  })
})
