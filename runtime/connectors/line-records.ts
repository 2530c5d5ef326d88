// Text files as runs of whole records: chunks are read ahead, a record that spans two is put together.

import type { FileSystem } from '../storage/contract.ts'
import { connectorError } from './errors.ts'
import { readExactly, type FileSplit } from './file-format.ts'

/** Read at once: large enough that a disk is not asked per record, small enough that two of them wait in memory. */
const CHUNK_BYTES = 256 * 1024
/** The engine's limit of one record; without an end before it, a quote or a line end is missing. */
export const RECORD_BYTES_MAX = 8 * 1024 * 1024

/** The index of the line end that ends the record beginning at `start`, or -1 if there is none before `end`. */
export type FindRecordEnd = (bytes: Uint8Array, start: number, end: number) => number

/** Whole records of one chunk. Record i is bytes [starts[i], ends[i]), without its line end. */
export interface ChunkOfRecords {
  readonly bytes: Uint8Array
  readonly starts: readonly number[]
  readonly ends: readonly number[]
  /** Byte of the file after record i and its line end. */
  readonly offsetsAfter: readonly number[]
}

export class LineRecords {
  readonly #files: FileSystem
  readonly #split: FileSplit
  readonly #findEnd: FindRecordEnd
  /** Byte of the file at which `carry` begins. */
  #offset: number
  #carry = new Uint8Array(0)

  constructor(files: FileSystem, split: FileSplit, offset: number, findEnd: FindRecordEnd) {
    this.#files = files
    this.#split = split
    this.#offset = offset
    this.#findEnd = findEnd
  }

  /** Records from the next on, at least one; undefined at the end of the file. The last may lack its line end. */
  async next(): Promise<ChunkOfRecords | undefined> {
    const { path, fileBytes } = this.#split
    for (;;) {
      const readFrom = this.#offset + this.#carry.byteLength
      const length = Math.min(CHUNK_BYTES, fileBytes - readFrom)
      if (length > 0) this.#carry = joined(this.#carry, await readExactly(this.#files, path, readFrom, length))
      const atEnd = readFrom + length === fileBytes
      if (atEnd && this.#carry.byteLength === 0) return undefined
      const chunk = this.#cut(atEnd)
      if (chunk !== undefined) return chunk
      if (this.#carry.byteLength > RECORD_BYTES_MAX)
        throw connectorError('MR-N07', `${path}, at byte ${this.#offset} (limit ${RECORD_BYTES_MAX} bytes).`)
    }
  }

  #cut(atEnd: boolean): ChunkOfRecords | undefined {
    const bytes = this.#carry
    const base = this.#offset
    const starts: number[] = []
    const ends: number[] = []
    const offsetsAfter: number[] = []
    let start = 0
    while (start < bytes.byteLength) {
      const lineEnd = this.#findEnd(bytes, start, bytes.byteLength)
      if (lineEnd < 0 && !atEnd) break
      const end = lineEnd < 0 ? bytes.byteLength : lineEnd
      const after = lineEnd < 0 ? end : lineEnd + 1
      starts.push(start)
      ends.push(end > start && bytes[end - 1] === CARRIAGE_RETURN ? end - 1 : end)
      offsetsAfter.push(base + after)
      start = after
    }
    if (starts.length === 0) return undefined
    this.#carry = bytes.slice(start)
    this.#offset = base + start
    return { bytes, starts, ends, offsetsAfter }
  }
}

export const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d

const byteOrderMark = [0xef, 0xbb, 0xbf]

/** Where the text begins: behind a UTF-8 byte order mark. */
export async function textStart(files: FileSystem, split: FileSplit): Promise<number> {
  if (split.fileBytes < byteOrderMark.length) return 0
  const first = await readExactly(files, split.path, 0, byteOrderMark.length)
  return byteOrderMark.every((byte, index) => first[index] === byte) ? byteOrderMark.length : 0
}

function joined(left: Uint8Array, right: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  if (left.byteLength === 0) return right
  const both = new Uint8Array(left.byteLength + right.byteLength)
  both.set(left)
  both.set(right, left.byteLength)
  return both
}
