import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { BATCH_RECORDS_MAX } from './batch-header.ts'
import { createReader, createWriter } from './bytes.ts'
import type { TypeInfo } from './contract.ts'
import { NO_TIMESTAMP } from './element.ts'
import { typeInfoOf } from './type-info.ts'

const Reading = z.object({ sensor: z.string(), celsius: z.number(), ok: z.boolean() })
const reading = typeInfoOf('reading', Reading)

function encode<T>(type: TypeInfo<T>, values: readonly T[], timestamps = values.map(() => NO_TIMESTAMP)): Uint8Array {
  const writer = createWriter()
  type.batch.encodeBatch(values, timestamps, 0, values.length, writer)
  return writer.take()
}

describe('batches', () => {
  it('spend next to nothing on columns that do not vary', () => {
    const values = Array.from({ length: 1000 }, () => ({ sensor: 'a', celsius: 20, ok: true }))
    expect(encode(reading, values).length).toBeLessThan(1100)
    const numbers = typeInfoOf('n', z.object({ n: z.number() }))
    const bytes = encode(
      numbers,
      Array.from({ length: 1000 }, (_, index) => ({ n: 1e12 + (index % 200) })),
    )
    expect(bytes.length).toBeLessThan(1030)
  })

  it('hold whole numbers, fractions and both zeros in one column', () => {
    const numbers = typeInfoOf('n', z.number())
    const columns = [
      [0, -0],
      [1, 2.5, Number.NaN],
      [Infinity, 1],
      [2 ** 53, 1],
      [2 ** 53 - 1, -(2 ** 53) + 1],
      [2 ** 31, 0],
    ]
    for (const values of columns) {
      expect(numbers.batch.decodeBatch(createReader(encode(numbers, values))).values).toStrictEqual(values)
    }
  })

  it('encode part of the values', () => {
    const writer = createWriter()
    const numbers = typeInfoOf('n', z.object({ n: z.int() }))
    numbers.batch.encodeBatch([{ n: 0 }, { n: 1 }, { n: 2 }, { n: 3 }], [10, 11, 12, 13], 1, 3, writer)
    expect(numbers.batch.decodeBatch(createReader(writer.take()))).toStrictEqual({
      values: [{ n: 1 }, { n: 2 }],
      timestamps: [11, 12],
    })
  })

  it('are empty when the reader is at its end', () => {
    expect(reading.batch.decodeBatch(createReader(new Uint8Array(0)))).toEqual({ values: [], timestamps: [] })
  })

  it('refuse values and timestamps that do not fit, naming the field', () => {
    const wrong = { sensor: 'a', celsius: '20', ok: true } as unknown as z.infer<typeof Reading>
    expect(() => encode(reading, [wrong])).toThrow(
      'MR-R04 A value does not fit its schema. Field celsius is a string, not a number.',
    )
    expect(() => encode(reading, [null as unknown as z.infer<typeof Reading>])).toThrow(
      'The value is null, not an object.',
    )
    expect(() => encode(reading, [{ sensor: 'a', celsius: 20, ok: true }], [1.5])).toThrow('MR-R04')
    const nested = typeInfoOf('nested', z.object({ list: z.array(z.int()) }))
    expect(() => encode(nested, [{ list: [0.5] }])).toThrow('Field list[] is a number')
  })

  it('refuse more records than a frame may hold, and a frame that says so', () => {
    const constant = typeInfoOf('constant', z.literal('x'))
    const values = Array.from({ length: BATCH_RECORDS_MAX + 1 }, () => 'x' as const)
    expect(() => encode(constant, values)).toThrow('MR-R06')
    const most = encode(constant, values.slice(1))
    expect(constant.batch.decodeBatch(createReader(most)).values).toHaveLength(BATCH_RECORDS_MAX)
    // The same bytes twice: a few bytes must not become records without end.
    expect(() => constant.batch.decodeBatch(createReader(Buffer.concat([most, most])))).toThrow('MR-R01')
  })

  it('refuse another version', () => {
    const bytes = encode(reading, [{ sensor: 'a', celsius: 1, ok: true }])
    bytes[0] = 2
    expect(() => reading.batch.decodeBatch(createReader(bytes))).toThrow('version 2')
  })
})
