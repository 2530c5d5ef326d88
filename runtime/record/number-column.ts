// A column of numbers: a form byte, then what the form needs. Whole numbers are written as offsets from the smallest, in
// 0, 1, 2 or 4 bytes each; a column of one value, such as the timestamps of records without event time, takes 9 bytes in all.

import type { ByteReader } from './contract.ts'
import type { BinaryWriter } from './bytes.ts'
import { recordError } from './errors.ts'

const CONSTANT = 0
const OFFSET_8 = 1
const OFFSET_16 = 2
const OFFSET_32 = 4
const INTEGER = 8
const FLOAT = 9

const TWO_31 = 2147483648
const TWO_32 = 4294967296

export type NumberColumn = Int32Array | Float64Array

/** Space for one decoded column, kept between batches; grows to the largest batch. */
export interface ColumnSpace {
  integers: Int32Array
  floats: Float64Array
}

export function columnSpace(): ColumnSpace {
  return { integers: new Int32Array(0), floats: new Float64Array(0) }
}

/** Writes numbers[0, count). */
export function writeNumbers(writer: BinaryWriter, numbers: Float64Array, count: number): void {
  let smallest = count === 0 ? 0 : numbers[0]!
  let largest = smallest
  let whole = true
  for (let index = 0; index < count; index++) {
    const value = numbers[index]!
    // NaN, fractions and -0 need the float form; NaN differs from itself.
    if (value !== Math.trunc(value) || (value === 0 && 1 / value < 0)) {
      whole = false
      break
    }
    if (value < smallest) smallest = value
    else if (value > largest) largest = value
  }
  if (!whole || smallest < Number.MIN_SAFE_INTEGER || largest > Number.MAX_SAFE_INTEGER) {
    writeFloats(writer, numbers, count)
    return
  }
  const range = largest - smallest
  if (range >= TWO_32) {
    writeIntegers(writer, numbers, count)
    return
  }
  const form = range === 0 ? CONSTANT : range < 256 ? OFFSET_8 : range < 65536 ? OFFSET_16 : OFFSET_32
  writer.reserve(9 + count * form)
  writer.u8(form)
  writer.i53(smallest)
  const { bytes, view } = writer
  let at = writer.position
  if (form === OFFSET_8) {
    for (let index = 0; index < count; index++) bytes[at++] = numbers[index]! - smallest
  } else if (form === OFFSET_16) {
    for (let index = 0; index < count; index++, at += 2) view.setUint16(at, numbers[index]! - smallest, true)
  } else if (form === OFFSET_32) {
    for (let index = 0; index < count; index++, at += 4) view.setUint32(at, numbers[index]! - smallest, true)
  }
  writer.position = at
}

/** Reads a column into `space`, whose arrays the result is one of: valid until the space is used again. */
export function readNumbers(reader: ByteReader, view: DataView, count: number, space: ColumnSpace): NumberColumn {
  const form = reader.u8()
  if (form === FLOAT) {
    let at = advance(reader, count * 8)
    const floats = floatsOf(space, count)
    for (let index = 0; index < count; index++, at += 8) floats[index] = view.getFloat64(at, true)
    return floats
  }
  if (form === INTEGER) {
    let at = advance(reader, count * 8)
    const floats = floatsOf(space, count)
    for (let index = 0; index < count; index++, at += 8) {
      const value = view.getInt32(at + 4, true) * TWO_32 + view.getUint32(at, true)
      if (!Number.isSafeInteger(value)) throw recordError('MR-R01', 'A column holds an integer out of range.')
      floats[index] = value
    }
    return floats
  }
  if (form !== CONSTANT && form !== OFFSET_8 && form !== OFFSET_16 && form !== OFFSET_32) {
    throw recordError('MR-R01', `A column has the unknown form ${form}.`)
  }
  const smallest = reader.i53()
  let at = advance(reader, count * form)
  // Small integers from an Int32Array stay unboxed in the records; only columns that may leave 32 bits need floats.
  const largestOffset = form === OFFSET_32 ? TWO_32 - 1 : form === OFFSET_16 ? 65535 : form === OFFSET_8 ? 255 : 0
  const numbers =
    smallest >= -TWO_31 && smallest + largestOffset < TWO_31 ? integersOf(space, count) : floatsOf(space, count)
  if (form === CONSTANT) numbers.fill(smallest, 0, count)
  else if (form === OFFSET_8) {
    const bytes = reader.bytes
    for (let index = 0; index < count; index++) numbers[index] = smallest + bytes[at++]!
  } else if (form === OFFSET_16) {
    for (let index = 0; index < count; index++, at += 2) numbers[index] = smallest + view.getUint16(at, true)
  } else {
    for (let index = 0; index < count; index++, at += 4) numbers[index] = smallest + view.getUint32(at, true)
  }
  return numbers
}

/** Throws MR-R01 unless all are whole. */
export function assertWhole(numbers: NumberColumn, count: number): void {
  if (numbers instanceof Int32Array) return
  for (let index = 0; index < count; index++) {
    if (!Number.isSafeInteger(numbers[index]!))
      throw recordError('MR-R01', 'A column of integers holds another number.')
  }
}

/** Throws MR-R01 unless all are whole and 0 ≤ number < limit. */
export function assertIndexes(numbers: NumberColumn, count: number, limit: number): void {
  for (let index = 0; index < count; index++) {
    const value = numbers[index]!
    if (!(value >= 0 && value < limit && Number.isInteger(value)))
      throw recordError('MR-R01', 'A column holds an index out of range.')
  }
}

function writeFloats(writer: BinaryWriter, numbers: Float64Array, count: number): void {
  writer.reserve(1 + count * 8)
  writer.u8(FLOAT)
  const view = writer.view
  let at = writer.position
  for (let index = 0; index < count; index++, at += 8) view.setFloat64(at, numbers[index]!, true)
  writer.position = at
}

function writeIntegers(writer: BinaryWriter, numbers: Float64Array, count: number): void {
  writer.reserve(1 + count * 8)
  writer.u8(INTEGER)
  const view = writer.view
  let at = writer.position
  for (let index = 0; index < count; index++, at += 8) {
    const value = numbers[index]!
    view.setUint32(at, value >>> 0, true)
    view.setInt32(at + 4, Math.floor(value / TWO_32), true)
  }
  writer.position = at
}

function integersOf(space: ColumnSpace, count: number): Int32Array {
  if (space.integers.length < count) space.integers = new Int32Array(Math.max(256, count))
  return space.integers
}

function floatsOf(space: ColumnSpace, count: number): Float64Array {
  if (space.floats.length < count) space.floats = new Float64Array(Math.max(256, count))
  return space.floats
}

function advance(reader: ByteReader, byteCount: number): number {
  const at = reader.position
  if (byteCount > reader.end - at)
    throw recordError('MR-R01', `A column needs ${byteCount} bytes, but the data ends after ${reader.end - at}.`)
  reader.position = at + byteCount
  return at
}
