import { describe, expect, it } from 'vitest'
import { createReader, createWriter } from './bytes.ts'
import { bytesCodec } from './plain-codecs.ts'
import { typeInfoOf } from './type-info.ts'
import { untypedCodec } from './untyped.ts'

describe('type infos', () => {
  it('without a schema describe themselves', () => {
    expect(typeInfoOf('anything').row).toBe(untypedCodec)
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
