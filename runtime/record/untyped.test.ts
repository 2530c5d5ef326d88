import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MillraceError } from '../base/errors.ts'
import { createReader, createWriter } from './bytes.ts'
import { untypedBatchCodec, untypedCodec } from './untyped.ts'

function encode(value: unknown): Uint8Array {
  const writer = createWriter()
  untypedCodec.encode(value, writer)
  return writer.take()
}

const plainValue = fc
  .anything({
    key: fc.string({ unit: 'grapheme' }).filter((name) => name !== '__proto__'),
    withBigInt: true,
    withDate: true,
    withMap: true,
    withSet: true,
    values: [
      fc.string({ unit: 'grapheme' }),
      fc.integer(),
      fc.double(),
      fc.boolean(),
      fc.constantFrom(null, undefined),
      fc.bigInt(),
      fc.uint8Array(),
    ],
  })
  .filter((value) => !holdsNegativeZero(value))

function holdsNegativeZero(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return Object.is(value, -0)
  if (value instanceof Map) return [...value].flat().some(holdsNegativeZero)
  if (value instanceof Set) return [...value].some(holdsNegativeZero)
  return !(value instanceof Uint8Array) && Object.values(value).some(holdsNegativeZero)
}

describe('self-describing values', () => {
  it('come back as they were', () => {
    fc.assert(
      fc.property(plainValue, (value) => {
        const decoded = untypedCodec.decode(createReader(encode(value)))
        if (!isDeepStrictEqual(decoded, value)) expect(decoded).toStrictEqual(value)
      }),
      { numRuns: 300 },
    )
  })

  it('can be read in any order, each alone', () => {
    const values = [
      { a: 1, b: 2 },
      { a: 2, b: 3 },
      { b: 4, a: 5 },
      [
        { a: 1, b: 2 },
        { a: 1, b: 2 },
      ],
      { a: { a: 1, b: 2 } },
    ]
    const blobs = values.map(encode)
    for (const index of [4, 0, 2, 1, 3, 0, 4]) {
      expect(untypedCodec.decode(createReader(blobs[index]!))).toStrictEqual(values[index])
    }
    expect(Buffer.from(encode(values[0])).equals(blobs[0]!)).toBe(true)
  })

  it('do not keep the bytes that they were read from', () => {
    const bytes = encode({ raw: Uint8Array.of(1, 2, 3) })
    const decoded = untypedCodec.decode(createReader(bytes))
    bytes.fill(0)
    expect(decoded).toStrictEqual({ raw: Uint8Array.of(1, 2, 3) })
  })

  it('travel in batches with their timestamps', () => {
    const writer = createWriter()
    const values = [{ a: 1 }, undefined, 'text', new Map([['k', { a: 2n }]])]
    untypedBatchCodec.encodeBatch(values, [1, 2, 3, 4], 0, 2, writer)
    untypedBatchCodec.encodeBatch(values, [1, 2, 3, 4], 2, 4, writer)
    expect(untypedBatchCodec.decodeBatch(createReader(writer.take()))).toStrictEqual({
      values,
      timestamps: [1, 2, 3, 4],
    })
  })

  it('refuse what has no form, saying where', () => {
    class Money {
      readonly cents = 5
    }
    const endless: Record<string, unknown> = {}
    endless['self'] = endless
    const cases: [unknown, string][] = [
      [() => 1, 'The value is a function.'],
      [{ a: { b: Symbol('x') } }, 'Field a.b is a symbol.'],
      [{ a: [new Money()] }, 'Field a[] is an instance of Money.'],
      [new Map([['k', /x/]]), 'Field {} is an instance of RegExp.'],
      [{ a: Promise.resolve(1) }, 'Field a is an instance of Promise.'],
      [{ a: '\ud800' }, 'Field a is a string with lone surrogates.'],
      [{ '\ud800': 1 }, 'The value is an object with a field name'],
      [JSON.parse('{"__proto__":1}'), 'The value is an object with a field name'],
      [new Float64Array(2), 'The value is an instance of Float64Array.'],
      [endless, 'contains itself'],
    ]
    for (const [value, text] of cases) {
      expect(() => encode(value)).toThrow('MR-R07')
      expect(() => encode(value)).toThrow(text)
    }
  })

  it('answer damaged bytes with an error or another value, never with harm', () => {
    fc.assert(
      fc.property(fc.array(plainValue, { maxLength: 5 }), fc.infiniteStream(fc.nat()), (values, randoms) => {
        const random = (limit: number): number => (randoms.next().value as number) % limit
        const writer = createWriter()
        untypedBatchCodec.encodeBatch(
          values,
          values.map(() => 1),
          0,
          values.length,
          writer,
        )
        const bytes = writer.take()
        for (let round = 0; round < 10; round++) {
          const damaged = bytes.slice()
          damaged[random(damaged.length)] = random(256)
          try {
            untypedBatchCodec.decodeBatch(createReader(damaged))
          } catch (error) {
            expect(error).toBeInstanceOf(MillraceError)
          }
        }
      }),
      { numRuns: 200 },
    )
  })
})
