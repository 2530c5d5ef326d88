// Any schema, any value: what goes in comes out, row-wise and in batches, and damaged bytes never do harm.

import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z, type ZodType } from 'zod'
import { MillraceError } from '../base/errors.ts'
import { createReader, createWriter } from './bytes.ts'
import type { TypeInfo } from './contract.ts'
import { NO_TIMESTAMP } from './element.ts'
import { typeInfoOf } from './type-info.ts'

interface Typed {
  readonly schema: ZodType
  readonly value: fc.Arbitrary<unknown>
}

const anyText = fc.oneof(
  fc.string({ maxLength: 40 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 10 }).map((codes) => String.fromCharCode(...codes)),
)
const anyInteger = fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer(), fc.maxSafeInteger())
const anyDate = fc.date({ noInvalidDate: false })
const plain = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.integer(),
  fc.boolean(),
  fc.constantFrom(null, undefined, 3n, -(2n ** 90n)),
  fc.array(fc.integer()),
  fc.dictionary(
    fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__'),
    fc.string({ unit: 'grapheme' }),
    { noNullPrototype: true },
  ),
)

const scalars: readonly Typed[] = [
  { schema: z.string(), value: anyText },
  { schema: z.number(), value: fc.oneof(anyInteger, fc.double(), fc.constant(-0)) },
  { schema: z.int(), value: anyInteger },
  { schema: z.int32(), value: fc.integer() },
  { schema: z.bigint(), value: fc.oneof(fc.bigInt(), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })) },
  { schema: z.boolean(), value: fc.boolean() },
  { schema: z.date(), value: anyDate },
  { schema: z.null(), value: fc.constant(null) },
  { schema: z.literal('only'), value: fc.constant('only') },
  { schema: z.literal([1, 'two', null, 4n]), value: fc.constantFrom(1, 'two', null, 4n) },
  { schema: z.enum(['red', 'green']), value: fc.constantFrom('red', 'green') },
  { schema: z.instanceof(Uint8Array), value: fc.uint8Array({ maxLength: 20 }) },
  { schema: z.unknown(), value: plain },
]

function fieldsOf(
  fields: readonly { readonly name: string; readonly typed: Typed; readonly optional: boolean }[],
): Typed {
  const shape = Object.fromEntries(
    fields.map(({ name, typed, optional }) => [name, optional ? typed.schema.optional() : typed.schema]),
  )
  const required = fields.filter((field) => !field.optional).map((field) => field.name)
  const values = Object.fromEntries(
    fields.map(({ name, typed, optional }) => [
      name,
      optional ? fc.option(typed.value, { nil: undefined }) : typed.value,
    ]),
  )
  const value = fc.record(values, { requiredKeys: required, noNullPrototype: true })
  return { schema: z.object(shape), value }
}

const anyName = fc
  .oneof(fc.constantFrom('a', 'b', 'c', 'two words', "it's", '`${x}`', 'constructor', '1'), fc.string({ maxLength: 6 }))
  .filter(
    // zod itself refuses to read a field of that name.
    (name) => name !== '__proto__',
  )

const anyTyped = fc.letrec<{ typed: Typed; object: Typed }>((tie) => ({
  object: fc
    .uniqueArray(fc.record({ name: anyName, typed: tie('typed'), optional: fc.boolean() }), {
      maxLength: 5,
      selector: (field) => field.name,
    })
    .map(fieldsOf),
  typed: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    { weight: 6, arbitrary: fc.constantFrom(...scalars) },
    { weight: 3, arbitrary: tie('object') },
    tie('typed').map(({ schema, value }): Typed => ({ schema: schema.nullable(), value: fc.option(value) })),
    tie('typed').map(({ schema, value }): Typed => ({
      schema: z.array(schema),
      value: fc.array(value, { maxLength: 4 }),
    })),
    tie('typed').map(({ schema, value }): Typed => ({
      schema: z.tuple([schema, z.int()], z.string()),
      value: fc.tuple(value, anyInteger, fc.array(anyText, { maxLength: 2 })).map(([a, b, rest]) => [a, b, ...rest]),
    })),
    tie('typed').map(({ schema, value }): Typed => ({
      schema: z.record(z.string(), schema),
      value: fc.dictionary(anyName, value, { maxKeys: 3, noNullPrototype: true }),
    })),
    tie('typed').map(({ schema, value }): Typed => ({
      schema: z.map(z.string(), schema),
      value: fc.array(fc.tuple(anyText, value), { maxLength: 3 }).map((entries) => new Map(entries)),
    })),
    fc.constant<Typed>({ schema: z.set(z.int()), value: fc.array(anyInteger).map((items) => new Set(items)) }),
    tie('object').map(({ schema, value }): Typed => ({
      schema: z.discriminatedUnion('tag of it', [
        (schema as z.ZodObject).extend({ 'tag of it': z.literal('first') }),
        z.object({ 'tag of it': z.literal('second'), n: z.number() }),
      ]),
      value: fc.oneof(
        value.map((held) => ({ ...(held as object), 'tag of it': 'first' })),
        fc.double().map((n) => ({ 'tag of it': 'second', n })),
      ),
    })),
    fc.constant<Typed>({
      schema: z.union([z.string(), z.number(), z.object({ a: z.string() }), z.object({ a: z.string(), b: z.int() })]),
      value: fc.oneof(
        anyText,
        fc.double(),
        fc.record({ a: anyText }, { noNullPrototype: true }),
        fc.record({ a: anyText, b: anyInteger }, { noNullPrototype: true }),
      ),
    }),
    fc.constant<Typed>({
      schema: z.looseObject({ a: z.string() }),
      value: fc.record({ a: anyText, other: fc.integer() }, { requiredKeys: ['a'], noNullPrototype: true }),
    }),
  ),
}))

/** A type, and values of it. -0 is 0 where the schema says integer; anyInteger has no -0. */
const anyStream = fc
  .oneof(anyTyped.object, anyTyped.typed)
  .chain(({ schema, value }) => fc.record({ schema: fc.constant(schema), values: fc.array(value, { maxLength: 20 }) }))

function infoOf(schema: ZodType): TypeInfo<unknown> {
  return typeInfoOf<unknown>('stream', schema)
}

function encodeBatch(type: TypeInfo<unknown>, values: readonly unknown[], timestamps: readonly number[]): Uint8Array {
  const writer = createWriter(16)
  type.batch.encodeBatch(values, timestamps, 0, values.length, writer)
  return writer.take()
}

/** Not toStrictEqual, which takes a field named constructor for the class. */
function expectSame(found: unknown, expected: unknown): void {
  if (!isDeepStrictEqual(found, expected)) expect(found).toStrictEqual(expected)
}

/** Runs `read`; an error must be of the table. */
function harmless(read: () => unknown): void {
  try {
    read()
  } catch (error) {
    expect(error).toBeInstanceOf(MillraceError)
  }
}

describe('codecs of any schema', () => {
  it('give back every value, row-wise', () => {
    fc.assert(
      fc.property(anyStream, ({ schema, values }) => {
        const { row } = infoOf(schema)
        const writer = createWriter(16)
        for (const value of values) row.encode(value, writer)
        const reader = createReader(writer.take())
        for (const value of values) expectSame(row.decode(reader), value)
        expect(reader.position).toBe(reader.end)
      }),
      { numRuns: 400 },
    )
  })

  it('give back every batch with its timestamps, also several in a row', () => {
    fc.assert(
      fc.property(
        anyStream,
        fc.func(fc.oneof(fc.constant(NO_TIMESTAMP), fc.maxSafeInteger())),
        ({ schema, values }, timestampOf) => {
          const type = infoOf(schema)
          const timestamps = values.map((_, index) => timestampOf(index))
          const writer = createWriter(16)
          const middle = Math.floor(values.length / 3)
          type.batch.encodeBatch(values, timestamps, 0, middle, writer)
          type.batch.encodeBatch(values, timestamps, middle, values.length, writer)
          const decoded = type.batch.decodeBatch(createReader(writer.take()))
          expectSame(decoded.values, values)
          expect(decoded.timestamps).toStrictEqual(timestamps)
        },
      ),
      { numRuns: 400 },
    )
  })

  it('read old bytes with the stored layout alone', () => {
    fc.assert(
      fc.property(anyStream, ({ schema, values }) => {
        const { row } = infoOf(schema)
        const stored = JSON.parse(JSON.stringify(row.description)) as typeof row.description
        // Another fingerprint: the reader must be compiled from the stored layout.
        const reading = infoOf(schema).row.readerOf({ ...stored, fingerprint: 'other' })
        if ('refused' in reading) throw new Error(reading.refused)
        const writer = createWriter(16)
        for (const value of values) row.encode(value, writer)
        const reader = createReader(writer.take())
        for (const value of values) expectSame(reading.codec.decode(reader), value)
      }),
      { numRuns: 150 },
    )
  })

  it('answer damaged bytes with an error or another value, never with harm', () => {
    fc.assert(
      fc.property(anyStream, fc.infiniteStream(fc.nat()), ({ schema, values }, randoms) => {
        const type = infoOf(schema)
        const random = (limit: number): number => (randoms.next().value as number) % limit
        const batch = encodeBatch(
          type,
          values,
          values.map(() => 7),
        )
        for (let round = 0; round < 10; round++) {
          const damaged = batch.slice(0, round % 3 === 0 ? random(batch.length + 1) : batch.length)
          for (let index = 0; index <= round % 4 && damaged.length > 0; index++)
            damaged[random(damaged.length)] = random(256)
          harmless(() => type.batch.decodeBatch(createReader(damaged)))
          harmless(() => type.row.decode(createReader(damaged)))
        }
        // Cut anywhere, a batch is refused: no record is made of less than was written.
        const cut = batch.subarray(0, 1 + random(batch.length - 1))
        expect(() => type.batch.decodeBatch(createReader(cut))).toThrow('MR-R01')
      }),
      { numRuns: 200 },
    )
  })
})
