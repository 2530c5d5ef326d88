// What compiled codecs call: the parts of a value that are the same for every layout.

import { bigintMagnitude, bigintOf } from './bigint-bytes.ts'
import type { ByteReader, ByteWriter } from './contract.ts'
import { describeValue, recordError } from './errors.ts'

// A number begins with a byte: itself when it is a small whole number, else the form of what follows.
const SMALL_LIMIT = 240
const FLOAT = 252
const INTEGER_16 = 253
const INTEGER_32 = 254
const INTEGER_53 = 255

const INTEGER_64_MIN = -(2n ** 63n)
const INTEGER_64_MAX = 2n ** 63n - 1n

// A bigint begins with its form: 64 bits cover almost all.
const BIGINT_64 = 0
const BIGINT_LARGE = 1
const BIGINT_LARGE_NEGATIVE = 2

const scratch = new Uint8Array(8)
const scratchView = new DataView(scratch.buffer)

/** 1, 3, 5 or 9 bytes; every number survives, -0 and NaN too. */
export function writeNumber(writer: ByteWriter, value: number): void {
  const small = value | 0
  if (small === value && (small !== 0 || 1 / value > 0)) {
    if (small >= 0 && small < SMALL_LIMIT) writer.u8(small)
    else if (small >= -32768 && small <= 32767) {
      writer.u8(INTEGER_16)
      writer.u16(small & 0xffff)
    } else {
      writer.u8(INTEGER_32)
      writer.u32(small >>> 0)
    }
  } else if (value !== 0 && Number.isSafeInteger(value)) {
    writer.u8(INTEGER_53)
    writer.i53(value)
  } else {
    writer.u8(FLOAT)
    writer.f64(value)
  }
}

export function readNumber(reader: ByteReader): number {
  const form = reader.u8()
  if (form < SMALL_LIMIT) return form
  if (form === INTEGER_53) return reader.i53()
  if (form === INTEGER_32) return reader.u32() | 0
  if (form === INTEGER_16) return (reader.u16() << 16) >> 16
  if (form === FLOAT) return reader.f64()
  throw recordError('MR-R01', `A number has the unknown form ${form}.`)
}

/** -0 becomes 0: a whole number has one zero. */
export function writeInteger(writer: ByteWriter, value: number): void {
  writeNumber(writer, value === 0 ? 0 : value)
}

export function readInteger(reader: ByteReader): number {
  const value = readNumber(reader)
  if (!Number.isSafeInteger(value)) throw recordError('MR-R01', 'An integer is stored as another number.')
  return value
}

export function writeBigint(writer: ByteWriter, value: bigint): void {
  if (value >= INTEGER_64_MIN && value <= INTEGER_64_MAX) {
    writer.u8(BIGINT_64)
    scratchView.setBigInt64(0, value, true)
    writer.raw(scratch)
  } else {
    writer.u8(value < 0n ? BIGINT_LARGE_NEGATIVE : BIGINT_LARGE)
    writer.blob(bigintMagnitude(value))
  }
}

export function readBigint(reader: ByteReader): bigint {
  const form = reader.u8()
  if (form === BIGINT_64) {
    scratch.set(reader.raw(8))
    return scratchView.getBigInt64(0, true)
  }
  if (form === BIGINT_LARGE) return bigintOf(reader.blob())
  if (form === BIGINT_LARGE_NEGATIVE) return -bigintOf(reader.blob())
  throw recordError('MR-R01', `A bigint has the unknown form ${form}.`)
}

/** A copy: the value may outlive the bytes it is read from. */
export function readBytes(reader: ByteReader): Uint8Array {
  return new Uint8Array(reader.blob())
}

/** The number of elements that follow. Each takes a byte or more, so a damaged count cannot allocate beyond the data. */
export function readCount(reader: ByteReader, path: string): number {
  const count = reader.varint()
  if (count > reader.end - reader.position) throw malformed(path, `says that it has ${count} elements`)
  return count
}

/** Assigns an own field, also one named __proto__. */
export function setField(object: Record<string, unknown>, name: string, value: unknown): void {
  if (name === '__proto__') {
    Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true })
  } else object[name] = value
}

export function misfit(path: string, expected: string, found: unknown): Error {
  return recordError('MR-R04', `${placeOf(path)} is ${describeValue(found)}, not ${expected}.`)
}

export function malformed(path: string, what: string): Error {
  return recordError('MR-R01', `${placeOf(path)} ${what}.`)
}

export function placeOf(path: string): string {
  return path === '' ? 'The value' : `Field ${path}`
}
