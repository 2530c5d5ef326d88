// Memory that one block after the other is written in.

import { COPIED_BYTES_MAX } from '../checkpoint/contract.ts'
import { createWriter, releaseBytes } from '../record/bytes.ts'
import type { BinaryWriter } from '../record/bytes.ts'

/** Entries are collected in pieces of this size: growing one large buffer would copy all of it in one go, longer than a slice. */
export const PIECE_BYTES = 256 * 1024
/** Of a new writer: most blocks are small. */
const WRITER_BYTES_FIRST = 4096
/** Writers kept for the next pieces. */
const WRITERS_KEPT = 16
/** One that grew beyond this for a single entry is not kept. */
const WRITER_KEPT_BYTES_MAX = 4 * PIECE_BYTES

/**
 * Writers for the pieces of a block, and room for the whole of it. What is asked for and given back with each one counts as pressure,
 * for which V8 marks the whole heap; what is used again does not.
 */
export class BlockMemory {
  /** The longest last. */
  readonly #free: BinaryWriter[] = []
  #whole = new Uint8Array(0)

  takeWriter(): BinaryWriter {
    return this.#free.pop() ?? createWriter(WRITER_BYTES_FIRST)
  }

  /** Nobody looks at its bytes any more. Beyond what is kept the shortest goes: it would have to grow again. */
  giveBack(writer: BinaryWriter): void {
    if (writer.bytes.length > WRITER_KEPT_BYTES_MAX) return releaseBytes(writer.bytes)
    writer.reset()
    const longer = this.#free.findIndex(({ bytes }) => bytes.length > writer.bytes.length)
    this.#free.splice(longer < 0 ? this.#free.length : longer, 0, writer)
    if (this.#free.length > WRITERS_KEPT) releaseBytes(this.#free.shift()!.bytes)
  }

  /** Room for one block, until the next is asked for or this is closed; for one larger than COPIED_BYTES_MAX, of its own. */
  roomFor(byteCount: number): Uint8Array {
    if (byteCount > COPIED_BYTES_MAX) return new Uint8Array(byteCount)
    if (byteCount > this.#whole.length) {
      const length = Math.min(COPIED_BYTES_MAX, byteCount + (byteCount >> 1))
      releaseBytes(this.#whole)
      this.#whole = new Uint8Array(length)
    }
    return this.#whole.subarray(0, byteCount)
  }

  /** None of it is used any more. */
  close(): void {
    for (const writer of this.#free.splice(0)) releaseBytes(writer.bytes)
    releaseBytes(this.#whole)
    this.#whole = new Uint8Array(0)
  }
}
