// The codec of streams without a schema: self-describing, by msgpackr. Each blob stands alone: names of fields are defined
// inside it, and no structure is shared between messages, so that any blob can be read by anybody in any order.
// A decoded string may be cut from the text of its blob, which is no more than the value itself for the row codec.
// -0 becomes 0. Strings with lone surrogates are refused: msgpackr would change them.

import { Packr } from 'msgpackr'
import { readBatchHeader, takeBatchCount, writeBatchHeader } from './batch-header.ts'
import type { BatchCodec, ByteReader, ByteWriter, Codec, CodecDescription } from './contract.ts'
import { describeValue, recordError } from './errors.ts'

/** Bounds nesting; a value that contains itself meets it. */
const DEPTH_MAX = 64

const packr = new Packr({
  useRecords: true,
  moreTypes: true,
  copyBuffers: true,
  useBigIntExtension: true,
})

const description: CodecDescription = { version: 1, kind: 'untyped', fingerprint: 'untyped', layout: null }

export const untypedCodec: Codec<unknown> = {
  description,
  encode: writeUntyped,
  decode: readUntyped,
  readerOf: (stored) =>
    stored.kind === 'untyped' && stored.version === description.version
      ? { codec: untypedCodec }
      : {
          refused: `the data was written as ${stored.kind}, version ${stored.version}; today it has no schema (untyped, version ${description.version})`,
        },
}

export const untypedBatchCodec: BatchCodec<unknown> = {
  encodeBatch: (values, timestamps, from, to, writer) => {
    writeBatchHeader(timestamps, from, to, writer)
    const slice = from === 0 && to === values.length ? values : values.slice(from, to)
    writeUntyped(slice, writer)
  },
  decodeBatch: (reader) => {
    let values: unknown[] = []
    const timestamps: number[] = []
    while (reader.position < reader.end) {
      const count = takeBatchCount(reader, timestamps.length)
      readBatchHeader(reader, count, timestamps)
      const slice = readUntyped(reader)
      if (!Array.isArray(slice) || slice.length !== count)
        throw recordError('MR-R01', 'A batch holds another number of records than it says.')
      values = values.length === 0 ? slice : values.concat(slice)
    }
    return { values, timestamps }
  },
}

/** Throws MR-R07, saying where, for what has no form. */
export function writeUntyped(value: unknown, writer: ByteWriter): void {
  assertCarriable(value, '', 0)
  writer.blob(packr.pack(value))
}

export function readUntyped(reader: ByteReader): unknown {
  const blob = reader.blob()
  try {
    return packr.unpack(blob)
  } catch (cause) {
    throw recordError('MR-R01', 'A self-describing value cannot be read.', cause)
  }
}

function assertCarriable(value: unknown, path: string, depth: number): void {
  switch (typeof value) {
    case 'string':
      if (!value.isWellFormed()) throw uncarriable(path, 'a string with lone surrogates')
      return
    case 'number':
    case 'boolean':
    case 'bigint':
    case 'undefined':
      return
    case 'function':
    case 'symbol':
      throw uncarriable(path, `a ${typeof value}`)
    case 'object':
      if (value !== null) assertObject(value, path, depth)
  }
}

function assertObject(value: object, path: string, depth: number): void {
  if (depth > DEPTH_MAX) throw uncarriable(path, `nested more than ${DEPTH_MAX} deep, or contains itself`)
  if (Array.isArray(value)) {
    const inside = `${path}[]`
    for (let index = 0; index < value.length; index++) assertCarriable(value[index], inside, depth + 1)
    return
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype === Object.prototype || prototype === null) {
    for (const name of Object.keys(value)) {
      if (name === '__proto__' || !name.isWellFormed())
        throw uncarriable(path, 'an object with a field name that no form keeps')
      const held = (value as Record<string, unknown>)[name]
      // Most fields are plain numbers and strings: no path is built for them.
      if (typeof held === 'number') continue
      if (typeof held === 'string' && held.isWellFormed()) continue
      assertCarriable(held, path === '' ? name : `${path}.${name}`, depth + 1)
    }
  } else if (prototype === Map.prototype) {
    for (const [name, held] of value as Map<unknown, unknown>) {
      assertCarriable(name, `${path}{key}`, depth + 1)
      assertCarriable(held, `${path}{}`, depth + 1)
    }
  } else if (prototype === Set.prototype) {
    for (const held of value as Set<unknown>) assertCarriable(held, `${path}[]`, depth + 1)
  } else if (prototype !== Date.prototype && prototype !== Uint8Array.prototype && prototype !== Buffer.prototype) {
    throw uncarriable(path, describeValue(value))
  }
}

function uncarriable(path: string, what: string): Error {
  return recordError('MR-R07', `${path === '' ? 'The value' : `Field ${path}`} is ${what}.`)
}
