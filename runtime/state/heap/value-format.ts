// How what a cell holds becomes bytes: one value, or a whole list.

import type { ByteReader, ByteWriter, Codec, CodecDescription } from '../../record/contract.ts'

export interface ValueFormat {
  /** Of the value, or of a list's items. */
  readonly codec: CodecDescription
  encode(value: unknown, writer: ByteWriter): void
  readonly decode: (reader: ByteReader) => unknown
  readerOf(
    stored: CodecDescription | undefined,
  ): { readonly decode: (reader: ByteReader) => unknown } | { readonly refused: string }
}

export function singleFormat(codec: Codec<unknown>): ValueFormat {
  return {
    codec: codec.description,
    encode: (value, writer) => codec.encode(value, writer),
    decode: (reader) => codec.decode(reader),
    readerOf: (stored) => {
      const answer = readerOf(codec, stored)
      return 'refused' in answer ? answer : { decode: (reader) => answer.codec.decode(reader) }
    },
  }
}

export function listFormat(codec: Codec<unknown>): ValueFormat {
  return {
    codec: codec.description,
    encode: (value, writer) => {
      const items = value as readonly unknown[]
      writer.varint(items.length)
      for (let index = 0; index < items.length; index++) codec.encode(items[index], writer)
    },
    decode: (reader) => decodeItems(codec, reader),
    readerOf: (stored) => {
      const answer = readerOf(codec, stored)
      return 'refused' in answer ? answer : { decode: (reader) => decodeItems(answer.codec, reader) }
    },
  }
}

function decodeItems(codec: Codec<unknown>, reader: ByteReader): unknown[] {
  const count = reader.varint()
  const items: unknown[] = []
  for (let index = 0; index < count; index++) items.push(codec.decode(reader))
  return items
}

function readerOf(codec: Codec<unknown>, stored: CodecDescription | undefined) {
  return stored === undefined
    ? { refused: 'It was stored without the description of its values.' }
    : codec.readerOf(stored)
}
