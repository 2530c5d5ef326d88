// The bytes of a key. They depend on the key's value alone, on no schema and no codec version: a tag, then
//
//   1 number        8 bytes, IEEE 754 little-endian; -0 is written as 0, NaN is refused
//   2 false, 3 true
//   4 string        varint byte length, UTF-8
//   5 string that is not well-formed (lone surrogates)    varint byte length, UTF-16 little-endian
//   6 bigint ≥ 0, 7 bigint < 0    varint byte length, the absolute value big-endian without leading zeros
//   8 array         varint count, the elements' bytes
//
// Every form says where it ends, so no key's bytes are the beginning of another's. These bytes decide the key group and name
// the key in stored state; testdata/key-groups.txt pins them.

import type { ByteReader, ByteWriter, Codec, CodecDescription, Key } from './contract.ts'
import { bigintMagnitude, bigintOf } from './bigint-bytes.ts'
import { BinaryWriter } from './bytes.ts'
import { describeValue, recordError } from './errors.ts'

const NUMBER = 1
const FALSE = 2
const TRUE = 3
const STRING = 4
const ILL_FORMED_STRING = 5
const BIGINT = 6
const NEGATIVE_BIGINT = 7
const TUPLE = 8

/** Bounds the nesting of tuples: stops a cycle on the way out and hostile bytes on the way in. */
const TUPLE_DEPTH_MAX = 16

/** Throws MR-R03 for NaN and for values that cannot be keys. */
export function encodeKey(key: Key, writer: ByteWriter): void {
  writeKey(key, writer, 0)
}

/** Throws MR-R01 when the bytes are no key's. */
export function decodeKey(reader: ByteReader): Key {
  return readKey(reader, 0)
}

/** The key under which a JavaScript Map holds `key`, with one entry per distinct key: the primitive itself (-0 as 0), and for
 * a tuple a text that begins with U+0000 and a letter. A string key that begins with U+0000 gets a second U+0000 in front, so
 * it never equals a tuple's text. Throws MR-R03 as encodeKey does. */
export function mapKeyOf(key: Key): string | number | bigint | boolean {
  switch (typeof key) {
    case 'string':
      return key.charCodeAt(0) === 0 ? `\u0000${key}` : key
    case 'number':
      if (Number.isNaN(key)) throw notAKey(key)
      return key === 0 ? 0 : key
    case 'bigint':
    case 'boolean':
      return key
    default:
      return `\u0000${tupleText(key, 1)}`
  }
}

const description: CodecDescription = { version: 1, kind: 'key', fingerprint: 'key', layout: null }

/** Keys as a codec; reads what any version of it wrote, and nothing else. */
export const keyCodec: Codec<Key> = {
  description,
  encode: encodeKey,
  decode: decodeKey,
  readerOf: (stored) =>
    stored.kind === 'key' ? { codec: keyCodec } : { refused: `the data was written as ${stored.kind}, not as keys` },
}

function writeKey(key: Key, writer: ByteWriter, depth: number): void {
  switch (typeof key) {
    case 'number':
      if (Number.isNaN(key)) throw notAKey(key)
      writer.u8(NUMBER)
      writer.f64(key === 0 ? 0 : key)
      return
    case 'string':
      writeText(key, writer)
      return
    case 'boolean':
      writer.u8(key ? TRUE : FALSE)
      return
    case 'bigint':
      writer.u8(key < 0n ? NEGATIVE_BIGINT : BIGINT)
      writer.blob(bigintMagnitude(key))
      return
    default:
      if (!Array.isArray(key)) throw notAKey(key)
      if (depth >= TUPLE_DEPTH_MAX) throw recordError('MR-R03', `It nests arrays more than ${TUPLE_DEPTH_MAX} deep.`)
      writer.u8(TUPLE)
      writer.varint(key.length)
      for (const element of key as readonly Key[]) writeKey(element, writer, depth + 1)
  }
}

function readKey(reader: ByteReader, depth: number): Key {
  const tag = reader.u8()
  switch (tag) {
    case NUMBER: {
      const value = reader.f64()
      if (Number.isNaN(value) || Object.is(value, -0)) throw malformed('a number that no key has')
      return value
    }
    case FALSE:
      return false
    case TRUE:
      return true
    case STRING: {
      const bytes = reader.blob()
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8')
    }
    case ILL_FORMED_STRING: {
      const bytes = reader.blob()
      return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf16le')
    }
    case BIGINT:
      return bigintOf(reader.blob())
    case NEGATIVE_BIGINT:
      return -bigintOf(reader.blob())
    case TUPLE: {
      if (depth >= TUPLE_DEPTH_MAX) throw malformed('arrays nested too deep')
      const count = reader.varint()
      // Each element takes a byte or more: a damaged count must not allocate.
      if (count > reader.end - reader.position) throw malformed('an array longer than the data')
      const elements: Key[] = []
      for (let index = 0; index < count; index++) elements.push(readKey(reader, depth + 1))
      return elements
    }
    default:
      throw malformed(`the unknown tag ${tag}`)
  }
}

/** Short ASCII keys are the common case: no allocation and no native call. */
function writeText(text: string, writer: ByteWriter): void {
  const length = text.length
  if (length <= 24 && writer instanceof BinaryWriter) {
    writer.reserve(length + 2)
    const start = writer.position
    const bytes = writer.bytes
    bytes[start] = STRING
    bytes[start + 1] = length
    let index = 0
    for (; index < length; index++) {
      const code = text.charCodeAt(index)
      if (code > 127) break
      bytes[start + 2 + index] = code
    }
    if (index === length) {
      writer.position = start + 2 + length
      return
    }
  }
  const wellFormed = text.isWellFormed()
  writer.u8(wellFormed ? STRING : ILL_FORMED_STRING)
  writer.blob(Buffer.from(text, wellFormed ? 'utf8' : 'utf16le'))
}

/** One text per tuple: each element says its type and its end. */
function tupleText(key: Key, depth: number): string {
  switch (typeof key) {
    case 'string':
      return `s${key.length}:${key}`
    case 'number':
      if (Number.isNaN(key)) throw notAKey(key)
      return `n${key};`
    case 'bigint':
      return `i${key};`
    case 'boolean':
      return key ? 't' : 'f'
    default: {
      if (!Array.isArray(key)) throw notAKey(key)
      if (depth > TUPLE_DEPTH_MAX) throw recordError('MR-R03', `It nests arrays more than ${TUPLE_DEPTH_MAX} deep.`)
      let text = `a${key.length}:`
      for (const element of key as readonly Key[]) text += tupleText(element, depth + 1)
      return text
    }
  }
}

function notAKey(value: unknown): Error {
  return recordError('MR-R03', `It is ${describeValue(value)}.`)
}

function malformed(what: string): Error {
  return recordError('MR-R01', `A key holds ${what}.`)
}
