import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createReader, createWriter } from './bytes.ts'
import { detachString } from './detach.ts'

const anyText = fc.oneof(
  fc.string({ maxLength: 200 }),
  fc.string({ unit: 'binary', maxLength: 200 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 100 }).map((codes) => String.fromCharCode(...codes)),
)

describe('bytes', () => {
  it('gives back every kind of value that was written, growing as needed', () => {
    const writer = createWriter(1)
    writer.u8(255)
    writer.u16(65535)
    writer.u32(4294967295)
    for (const value of [0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) writer.i53(value)
    for (const value of [-0, Number.NaN, Infinity, 0.1]) writer.f64(value)
    for (const value of [0, 127, 128, 16_383, 16_384, 2 ** 32, Number.MAX_SAFE_INTEGER]) writer.varint(value)
    writer.blob(Uint8Array.of(1, 2, 3))
    writer.raw(Uint8Array.of(9))

    const reader = createReader(writer.take())
    expect(reader.u8()).toBe(255)
    expect(reader.u16()).toBe(65535)
    expect(reader.u32()).toBe(4294967295)
    for (const value of [0, 1, -1, Number.MAX_SAFE_INTEGER, Number.MIN_SAFE_INTEGER]) expect(reader.i53()).toBe(value)
    for (const value of [-0, Number.NaN, Infinity, 0.1]) expect(reader.f64()).toBe(value)
    for (const value of [0, 127, 128, 16_383, 16_384, 2 ** 32, Number.MAX_SAFE_INTEGER])
      expect(reader.varint()).toBe(value)
    expect(reader.blob()).toEqual(Uint8Array.of(1, 2, 3))
    expect(reader.raw(1)).toEqual(Uint8Array.of(9))
    expect(reader.position).toBe(reader.end)
  })

  it('gives back every string, with lone surrogates and of any length', () => {
    fc.assert(
      fc.property(fc.array(anyText, { maxLength: 5 }), (texts) => {
        const writer = createWriter(4)
        for (const text of texts) writer.string(text)
        const reader = createReader(writer.take())
        for (const text of texts) expect(reader.string()).toBe(text)
        expect(reader.position).toBe(reader.end)
      }),
      { numRuns: 300 },
    )
    for (const length of [23, 24, 25, 31, 32, 33, 5461, 5462, 100_000]) {
      for (const unit of ['a', 'é', '€', '\ud800']) {
        const writer = createWriter(4)
        writer.string(unit.repeat(length))
        expect(createReader(writer.take()).string() === unit.repeat(length)).toBe(true)
      }
    }
  })

  it('refuses to read past the end, whatever is read', () => {
    const short = (): ReturnType<typeof createReader> =>
      createReader(Uint8Array.of(0, 200, 1, 1, 1, 1, 1, 1, 1, 1), 1, 2)
    for (const read of ['u16', 'u32', 'i53', 'f64', 'varint', 'string', 'blob'] as const) {
      expect(() => short()[read](), read).toThrow('MR-R01')
    }
    expect(() => short().raw(2)).toThrow('MR-R01')
    expect(() => createReader(new Uint8Array(0)).u8()).toThrow('MR-R01')
  })

  it('refuses a length that is larger than any data, without allocating', () => {
    const huge = Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 15)
    expect(() => createReader(huge).string()).toThrow('MR-R01')
    expect(() => createReader(huge).blob()).toThrow('MR-R01')
    expect(() => createReader(new Uint8Array(20).fill(255)).varint()).toThrow('MR-R01')
  })

  it('takes a copy, so that the writer may be used again', () => {
    const writer = createWriter()
    writer.string('first')
    const taken = writer.take()
    writer.reset()
    writer.string('other')
    expect(createReader(taken).string()).toBe('first')
    expect(taken.buffer.byteLength).toBe(taken.length)
  })

  it('refuses integers that are not exact', () => {
    expect(() => createWriter().i53(2 ** 53)).toThrow('i53')
    expect(() => createWriter().varint(-1)).toThrow('varint')
  })
})

describe('detaching', () => {
  it('gives an equal string', () => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(detachString(text)).toBe(text)
      }),
    )
    expect(detachString('é'.repeat(5000))).toBe('é'.repeat(5000))
  })
})
