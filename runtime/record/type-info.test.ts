import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { createReader, createWriter } from './bytes.ts'
import { bytesCodec } from './plain-codecs.ts'
import { typeInfoOf, validate } from './type-info.ts'
import { untypedCodec } from './untyped.ts'

describe('type infos', () => {
  it('validate at the edge: defaults are filled in, unknown fields dropped, problems said with their field', () => {
    const type = typeInfoOf('flight', z.object({ from: z.string(), delay: z.int().default(0) }))
    expect(validate(type, { from: 'JFK', more: 1 })).toEqual({ value: { from: 'JFK', delay: 0 } })
    const answer = validate(type, { delay: 'late' })
    expect('problem' in answer && answer.problem).toMatch(/^field from: .+; field delay: .+/)
    expect(validate(typeInfoOf('list', z.array(z.int())), [1, 'x'])).toHaveProperty(
      'problem',
      expect.stringContaining('field 1: '),
    )
  })

  it('let everything pass without a schema', () => {
    const type = typeInfoOf('anything')
    expect(type.row).toBe(untypedCodec)
    expect(validate(type, 5)).toEqual({ value: 5 })
  })

  it('refuse a schema that validates asynchronously', () => {
    const type = typeInfoOf(
      'slow',
      z.string().refine(async () => true),
    )
    expect(() => validate(type, 'x')).toThrow('MR-R08')
  })
})

describe('the bytes codec', () => {
  it('carries bytes as they are, and reads nothing else', () => {
    const writer = createWriter()
    bytesCodec.encode(Uint8Array.of(7), writer)
    expect(bytesCodec.decode(createReader(writer.take()))).toEqual(Uint8Array.of(7))
    expect(bytesCodec.readerOf(bytesCodec.description)).toEqual({ codec: bytesCodec })
    expect(bytesCodec.readerOf(untypedCodec.description)).toHaveProperty('refused')
  })
})
