// Writing and reading bytes: the ground under every codec. Integers are little-endian.
//
// A string is a varint header, byteLength * 4 + form, and its bytes. The form follows from the content alone:
// ASCII (0), UTF-8 (1) when it is well-formed, and UTF-16 (2) for lone surrogates, so that every string survives.

import { InvariantError } from '../base/errors.ts'
import type { ByteReader, ByteWriter } from './contract.ts'
import { recordError } from './errors.ts'
import { sliceText, textForms, type TextBuffer } from './text-form.ts'

/** Bounds one written value or batch: far above a frame, far below what allocation can stand. */
const WRITER_BYTES_MAX = 1 << 30

const TWO_32 = 4294967296
/** Up to this length a loop over char codes beats the call into native code (measured on Node 24: 24 characters break even). */
const LOOP_WRITE_LENGTH_MAX = 24
/** Below this length concatenating characters beats latin1Slice, and V8 keeps the result flat. */
const LOOP_READ_LENGTH_MAX = 9

const { ascii: ASCII, utf8: UTF8, utf16: UTF16 } = textForms

const scratch = new Uint8Array(8)
const scratchView = new DataView(scratch.buffer)

/** The one implementation of ByteWriter; codecs of this folder also write through `bytes` and `view` after `reserve`. */
export class BinaryWriter implements ByteWriter {
  bytes: TextBuffer
  view: DataView
  position = 0

  constructor(initialBytes: number) {
    // Not from Node's shared pool: the bytes may be transferred to another thread.
    this.bytes = Buffer.allocUnsafeSlow(Math.max(16, initialBytes)) as unknown as TextBuffer
    this.view = new DataView(this.bytes.buffer)
  }

  reserve(byteCount: number): void {
    if (this.position + byteCount > this.bytes.length) this.#grow(byteCount)
  }

  u8(value: number): void {
    if (this.position >= this.bytes.length) this.#grow(1)
    this.bytes[this.position++] = value
  }

  u16(value: number): void {
    if (this.position + 2 > this.bytes.length) this.#grow(2)
    this.view.setUint16(this.position, value, true)
    this.position += 2
  }

  u32(value: number): void {
    if (this.position + 4 > this.bytes.length) this.#grow(4)
    this.view.setUint32(this.position, value, true)
    this.position += 4
  }

  i53(value: number): void {
    // Not invariant(): its message would be built for every number.
    if (!Number.isSafeInteger(value)) throw new InvariantError(`i53 of ${value}`)
    if (this.position + 8 > this.bytes.length) this.#grow(8)
    this.view.setUint32(this.position, value >>> 0, true)
    this.view.setInt32(this.position + 4, Math.floor(value / TWO_32), true)
    this.position += 8
  }

  f64(value: number): void {
    if (this.position + 8 > this.bytes.length) this.#grow(8)
    this.view.setFloat64(this.position, value, true)
    this.position += 8
  }

  varint(value: number): void {
    if (this.position + 8 > this.bytes.length) this.#grow(8)
    if (value < 128 && value >= 0) {
      this.bytes[this.position++] = value
      return
    }
    if (!Number.isSafeInteger(value) || value < 0) throw new InvariantError(`varint of ${value}`)
    let rest = value
    while (rest >= 128) {
      this.bytes[this.position++] = (rest % 128) | 128
      rest = Math.floor(rest / 128)
    }
    this.bytes[this.position++] = rest
  }

  string(value: string): void {
    const length = value.length
    this.reserve(length * 3 + 10)
    const start = this.position
    const bytes = this.bytes
    if (length <= LOOP_WRITE_LENGTH_MAX) {
      this.varint(length * 4)
      let at = this.position
      let index = 0
      for (; index < length; index++) {
        const code = value.charCodeAt(index)
        if (code > 127) break
        bytes[at++] = code
      }
      if (index === length) {
        this.position = at
        return
      }
      this.position = start
    }
    const textAt = start + varintLength(length * 4)
    const written = bytes.utf8Write(value, textAt, length * 3)
    if (written === length) {
      this.varint(length * 4 + ASCII)
      this.position = textAt + length
    } else if (value.isWellFormed()) {
      // The header may be longer than that of an ASCII text: the text moves before the header is written over its beginning.
      const movedTo = start + varintLength(written * 4 + UTF8)
      if (movedTo !== textAt) bytes.copyWithin(movedTo, textAt, textAt + written)
      this.varint(written * 4 + UTF8)
      this.position = movedTo + written
    } else {
      this.varint(length * 8 + UTF16)
      bytes.ucs2Write(value, this.position, length * 2)
      this.position += length * 2
    }
  }

  blob(value: Uint8Array): void {
    this.varint(value.length)
    this.raw(value)
  }

  raw(value: Uint8Array): void {
    if (this.position + value.length > this.bytes.length) this.#grow(value.length)
    this.bytes.set(value, this.position)
    this.position += value.length
  }

  take(): Uint8Array {
    // Without the pool the bytes own their memory, and unlike new Uint8Array they are not zeroed first.
    const copy = new Uint8Array(Buffer.allocUnsafeSlow(this.position).buffer)
    copy.set(this.bytes.subarray(0, this.position))
    return copy
  }

  reset(): void {
    this.position = 0
  }

  #grow(byteCount: number): void {
    const needed = this.position + byteCount
    if (needed > WRITER_BYTES_MAX)
      throw recordError('MR-R06', `${needed} bytes, at most ${WRITER_BYTES_MAX} are allowed.`)
    const larger = Buffer.allocUnsafeSlow(Math.min(WRITER_BYTES_MAX, Math.max(needed, this.bytes.length * 2)))
    larger.set(this.bytes.subarray(0, this.position))
    this.bytes = larger as unknown as TextBuffer
    this.view = new DataView(larger.buffer)
  }
}

/** `bytes` of the writer stay valid until it grows; `take` copies. */
export function createWriter(initialBytes = 256): BinaryWriter {
  return new BinaryWriter(initialBytes)
}

/**
 * Gives up memory that nobody will look at again, at once instead of with the next collection: what a snapshot copies counts as
 * pressure, and set off a marking of the whole heap for every 64 MiB. `bytes` must have a buffer of their own; they are empty afterwards.
 */
export function releaseBytes(bytes: Uint8Array): void {
  ;(bytes.buffer as ArrayBuffer).transfer(0)
}

class BinaryReader implements ByteReader {
  readonly bytes: Uint8Array
  position: number
  readonly end: number

  constructor(bytes: Uint8Array, from: number, to: number) {
    this.bytes = bytes
    this.position = from
    this.end = to
  }

  u8(): number {
    if (this.position >= this.end) throw this.#short(1)
    return this.bytes[this.position++]!
  }

  u16(): number {
    const at = this.#advance(2)
    return this.bytes[at]! | (this.bytes[at + 1]! << 8)
  }

  u32(): number {
    const at = this.#advance(4)
    const bytes = this.bytes
    return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
  }

  i53(): number {
    const low = this.u32()
    const value = (this.u32() | 0) * TWO_32 + low
    if (!Number.isSafeInteger(value))
      throw recordError('MR-R01', `An integer at byte ${this.position - 8} is out of range.`)
    return value
  }

  f64(): number {
    const at = this.#advance(8)
    for (let index = 0; index < 8; index++) scratch[index] = this.bytes[at + index]!
    return scratchView.getFloat64(0, true)
  }

  varint(): number {
    let byte = this.u8()
    if (byte < 128) return byte
    let value = byte & 127
    for (let scale = 128; scale <= 2 ** 49; scale *= 128) {
      byte = this.u8()
      value += (byte & 127) * scale
      if (byte < 128 && value <= Number.MAX_SAFE_INTEGER) return value
    }
    throw recordError('MR-R01', `A variable-length integer at byte ${this.position} is too long.`)
  }

  string(): string {
    const header = this.varint()
    const form = header & 3
    const length = header < 128 ? header >>> 2 : Math.floor(header / 4)
    const at = this.#advance(length)
    if (form !== ASCII || length >= LOOP_READ_LENGTH_MAX) return sliceText(this.bytes, form, at, at + length)
    const bytes = this.bytes
    let text = ''
    for (let index = at; index < at + length; index++) text += String.fromCharCode(bytes[index]!)
    return text
  }

  blob(): Uint8Array {
    return this.raw(this.varint())
  }

  raw(byteCount: number): Uint8Array {
    const at = this.#advance(byteCount)
    return this.bytes.subarray(at, at + byteCount)
  }

  #advance(byteCount: number): number {
    const at = this.position
    if (byteCount > this.end - at) throw this.#short(byteCount)
    this.position = at + byteCount
    return at
  }

  #short(byteCount: number): Error {
    return recordError(
      'MR-R01',
      `Needed ${byteCount} more bytes at byte ${this.position}, but the data ends at byte ${this.end}.`,
    )
  }
}

/** Reads bytes[from, to). `blob` and `raw` give views, not copies. */
export function createReader(bytes: Uint8Array, from = 0, to = bytes.length): ByteReader {
  if (!(from >= 0 && from <= to && to <= bytes.length)) {
    throw new InvariantError(`reader of [${from}, ${to}) over ${bytes.length} bytes`)
  }
  return new BinaryReader(bytes, from, to)
}

function varintLength(value: number): number {
  let length = 1
  for (let rest = value; rest >= 128; rest = Math.floor(rest / 128)) length++
  return length
}
