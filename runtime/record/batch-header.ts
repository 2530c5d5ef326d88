// How every batch begins: a version byte, the number of records, their timestamps. A frame may hold several batches in a row.

import { invariant } from '../base/errors.ts'
import { BinaryWriter } from './bytes.ts'
import type { ByteReader, ByteWriter } from './contract.ts'
import { recordError } from './errors.ts'
import { columnSpace, readNumbers, writeNumbers } from './number-column.ts'

const BATCH_VERSION = 1

/**
 * Most records in one frame. Records of constants take no bytes, so bytes alone do not bound the count, and a damaged count
 * must not allocate without end.
 */
export const BATCH_RECORDS_MAX = 65_536

/** Numbers on their way into a column. Encoding is synchronous, so one for all codecs is enough. */
let gathered = new Float64Array(1024)
const space = columnSpace()

/** Room for `count` numbers; valid until the next call. */
export function gatherSpace(count: number): Float64Array {
  if (gathered.length < count) gathered = new Float64Array(count)
  return gathered
}

/** Throws MR-R06 for too many records, MR-R04 for a timestamp that is no integer. */
export function writeBatchHeader(
  timestamps: readonly number[],
  from: number,
  to: number,
  writer: ByteWriter,
): BinaryWriter {
  const output = binaryWriter(writer)
  const count = to - from
  if (count > BATCH_RECORDS_MAX)
    throw recordError('MR-R06', `${count} records, at most ${BATCH_RECORDS_MAX} are allowed.`)
  invariant(count >= 0 && from >= 0 && to <= timestamps.length, `batch of [${from}, ${to}) of ${timestamps.length}`)
  output.u8(BATCH_VERSION)
  output.varint(count)
  const numbers = gatherSpace(count)
  for (let index = 0; index < count; index++) {
    const timestamp = timestamps[from + index]!
    if (!Number.isSafeInteger(timestamp))
      throw recordError('MR-R04', `Its timestamp is ${timestamp}, not a whole number of milliseconds.`)
    numbers[index] = timestamp
  }
  writeNumbers(output, numbers, count)
  return output
}

/** The number of records of the batch that begins here; `before` were read from this frame already. */
export function takeBatchCount(reader: ByteReader, before: number): number {
  const version = reader.u8()
  if (version !== BATCH_VERSION)
    throw recordError('MR-R01', `A batch has version ${version}, this reader knows ${BATCH_VERSION}.`)
  const count = reader.varint()
  if (before + count > BATCH_RECORDS_MAX)
    throw recordError('MR-R01', `A frame says that it holds ${before + count} records.`)
  return count
}

/** Appends the batch's timestamps. */
export function readBatchHeader(reader: ByteReader, count: number, timestamps: number[], view = viewOf(reader)): void {
  const numbers = readNumbers(reader, view, count, space)
  for (let index = 0; index < count; index++) {
    const timestamp = numbers[index]!
    if (!Number.isSafeInteger(timestamp)) throw recordError('MR-R01', 'A batch holds a timestamp that is no integer.')
    timestamps.push(timestamp)
  }
}

/** A view whose offsets are the reader's positions. */
export function viewOf(reader: ByteReader): DataView {
  const { bytes } = reader
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function binaryWriter(writer: ByteWriter): BinaryWriter {
  invariant(writer instanceof BinaryWriter, 'batches are written to a writer of createWriter()')
  return writer
}
