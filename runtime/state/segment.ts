// The segment format: how keyed state lies in checkpoints and savepoints, whichever backend wrote it. One block per key group, each
// readable alone, so that a restore at another parallelism reads only its own groups by range.
//
//   header          magic u32, version u8, flags u8, key group u16, watermark i53, block length u32, section count u16
//   section table   per section: index into the snapshot's states u16, entry count u32, byte length u32, CRC32 of its bytes u32
//   table CRC32     u32, over header and section table
//   sections        one after the other; per entry: operation u8, then what the kind of state writes
//
// Little-endian. Each bit is covered by one CRC, and the one that fails tells which state it hit. Entries of kind value, reducing and
// aggregating: key, value. list: key, item count varint, items. map: key, map key, value: one entry per map key, so that an increment
// can hold single ones. timers: key, domain u8 (0 event, 1 processing), timestamp i53, tag string. `put` is the only operation of a
// complete block; `remove` (key, and map key) is room for increments.
//
// Since version 2: where the state's description has `ttlMs`, the wall time of its last refresh, i53 ms, stands before each value, of
// a list before each item. Version 1 is read as it was; a reader of version 1 refuses what it would take for values.

import { crc32 } from 'node:zlib'
import { invariant } from '../base/errors.ts'
import type { KeyGroup } from '../base/ids.ts'
import type { KeyedStateDescription } from '../checkpoint/contract.ts'
import { createReader } from '../record/bytes.ts'
import type { BinaryWriter } from '../record/bytes.ts'
import type { ByteWriter } from '../record/contract.ts'
import { PIECE_BYTES } from './block-memory.ts'
import type { BlockMemory } from './block-memory.ts'
import { stateError } from './errors.ts'

/** The number in KeyedSnapshot.format. */
export const SEGMENT_VERSION = 2
/** Blocks since this one are read. */
export const SEGMENT_VERSION_OLDEST = 1
export const entryOperation = { put: 1, remove: 2 } as const

/** 'MRSG', read as a little-endian number. */
const MAGIC = 0x4753524d
/** The block holds its group's whole state: nothing lies beneath it. */
const COMPLETE = 1
const HEADER_BYTES = 22
const SECTION_BYTES = 14
const CRC_BYTES = 4
/** Copied in one turn, whatever the budget has left: it looks at the clock only when it was asked some times. */
const COPIED_AT_ONCE = 1024 * 1024

/** Lets a long write give up its turn between two pieces. */
export interface Pace {
  shouldYield(): boolean
  pause(): Promise<void>
}

interface WrittenSection {
  readonly stateIndex: number
  count: number
  byteLength: number
  crc: number
}

interface Piece {
  readonly bytes: Uint8Array
  /** Whose bytes they are; undefined: of the one who gave them. */
  readonly writer: BinaryWriter | undefined
}

/** Writes one block. Per state: `beginSection`, then per entry write to `entries` and call `endEntry`, then `endSection`. */
export class BlockWriter {
  /** Asked for anew with each entry. */
  entries: ByteWriter
  readonly #header: { readonly keyGroup: KeyGroup; readonly watermark: number }
  readonly #sections: WrittenSection[] = []
  readonly #pieces: Piece[] = []
  readonly #memory: BlockMemory
  #current: BinaryWriter
  #open: WrittenSection | undefined

  /** `memory` is used again from block to block. */
  constructor(header: { readonly keyGroup: KeyGroup; readonly watermark: number }, memory: BlockMemory) {
    this.#header = header
    this.#memory = memory
    this.#current = memory.takeWriter()
    this.entries = this.#current
  }

  beginSection(stateIndex: number): void {
    this.#open = { stateIndex, count: 0, byteLength: 0, crc: 0 }
  }

  endEntry(): void {
    this.#open!.count++
    if (this.entries.position >= PIECE_BYTES) this.#cutPiece()
  }

  /** Adds `count` entries that were written into a writer of the caller's, which is this block's from now on. */
  addWriter(count: number, writer: BinaryWriter): void {
    this.#cutPiece()
    this.#addPiece({ bytes: writer.bytes.subarray(0, writer.position), writer })
    this.#open!.count += count
  }

  /** Adds `count` entries that were written elsewhere. */
  addWritten(count: number, bytes: Uint8Array): void {
    this.#cutPiece()
    this.#addPiece({ bytes, writer: undefined })
    this.#open!.count += count
  }

  endSection(): void {
    this.#cutPiece()
    const section = this.#open!
    this.#open = undefined
    if (section.count > 0) this.#sections.push(section)
  }

  /**
   * The finished block; undefined when nothing was written. To be called once, and then nothing else. Up to COPIED_BYTES_MAX its bytes are
   * the memory's, and stay as they are until the next block begins to finish, or the memory is closed.
   */
  async finish(pace: Pace): Promise<Uint8Array | undefined> {
    try {
      if (this.#sections.length === 0) return undefined
      const table = this.#writeTable()
      let length = table.length
      for (const { bytes } of this.#pieces) length += bytes.length
      const block = this.#memory.roomFor(length)
      block.set(table)
      let offset = table.length
      let pausedAt = 0
      for (const { bytes, writer } of this.#pieces) {
        block.set(bytes, offset)
        offset += bytes.length
        if (writer !== undefined) this.#memory.giveBack(writer)
        if (offset - pausedAt < COPIED_AT_ONCE && !pace.shouldYield()) continue
        await pace.pause()
        pausedAt = offset
      }
      return block
    } finally {
      this.#memory.giveBack(this.#current)
    }
  }

  #cutPiece(): void {
    const writer = this.#current
    if (writer.position === 0) return
    this.#addPiece({ bytes: writer.bytes.subarray(0, writer.position), writer })
    this.#current = this.#memory.takeWriter()
    this.entries = this.#current
  }

  #addPiece(piece: Piece): void {
    const section = this.#open!
    section.crc = crc32(piece.bytes, section.crc)
    section.byteLength += piece.bytes.length
    this.#pieces.push(piece)
  }

  #writeTable(): Uint8Array {
    const writer = this.#current
    writer.reset()
    writer.u32(MAGIC)
    writer.u8(SEGMENT_VERSION)
    writer.u8(COMPLETE)
    writer.u16(this.#header.keyGroup)
    writer.i53(this.#header.watermark)
    let length = HEADER_BYTES + this.#sections.length * SECTION_BYTES + CRC_BYTES
    for (const section of this.#sections) length += section.byteLength
    invariant(length < 2 ** 32, `key group ${this.#header.keyGroup} is larger than a block can be`)
    writer.u32(length)
    writer.u16(this.#sections.length)
    for (const section of this.#sections) {
      writer.u16(section.stateIndex)
      writer.u32(section.count)
      writer.u32(section.byteLength)
      writer.u32(section.crc)
    }
    writer.u32(crc32(writer.take()))
    return writer.take()
  }
}

export interface BlockSection {
  readonly description: KeyedStateDescription
  readonly count: number
  /** A view into the block. */
  readonly bytes: Uint8Array
}

export interface BlockPlace {
  readonly uid: string
  readonly keyGroup: KeyGroup
  readonly watermark: number
  /** Names the object for messages. */
  readonly object: string
  /** The snapshot's format. */
  readonly format: number
  /** The snapshot's states, which the block's section table points into. */
  readonly states: readonly KeyedStateDescription[]
}

/** Checks all of a block before any of it is used. Throws MR-T03 naming state, key group and object, or MR-T05. */
export function openBlock(bytes: Uint8Array, place: BlockPlace): BlockSection[] {
  const damaged = (what: string): Error => stateError('MR-T03', `${what} (${describePlace(place)}).`)
  if (bytes.length < HEADER_BYTES + CRC_BYTES) throw damaged('The block is shorter than its header')
  const reader = createReader(bytes)
  if (reader.u32() !== MAGIC) throw damaged('The block does not begin as one')
  // The snapshot's own format number was checked before: another version here is damage.
  if (reader.u8() !== place.format) throw damaged('The block has another version than its snapshot')
  reader.position = HEADER_BYTES - 2
  const sectionCount = reader.u16()
  const tableEnd = HEADER_BYTES + sectionCount * SECTION_BYTES
  if (tableEnd + CRC_BYTES > bytes.length) throw damaged('The section table is longer than the block')
  reader.position = tableEnd
  if (reader.u32() !== crc32(bytes.subarray(0, tableEnd)))
    throw damaged("The block's header or section table has a wrong CRC")

  reader.position = 5
  const flags = reader.u8()
  const keyGroup = reader.u16()
  const watermark = reader.i53()
  const length = reader.u32()
  if (flags !== COMPLETE) throw stateError('MR-T05', `The block is an increment (${describePlace(place)}).`)
  if (keyGroup !== place.keyGroup) throw damaged(`The block is that of key group ${keyGroup}`)
  if (watermark !== place.watermark)
    throw damaged(`The block's watermark ${watermark} is not the manifest's ${place.watermark}`)
  if (bytes.length !== length) throw damaged(`The block should have ${length} bytes and has ${bytes.length}`)

  const sections: BlockSection[] = []
  let offset = tableEnd + CRC_BYTES
  for (let index = 0; index < sectionCount; index++) {
    reader.position = HEADER_BYTES + index * SECTION_BYTES
    const description = place.states[reader.u16()]
    const count = reader.u32()
    const byteLength = reader.u32()
    const crc = reader.u32()
    if (description === undefined) throw damaged('A section belongs to no state of the manifest')
    const section = bytes.subarray(offset, offset + byteLength)
    if (section.length !== byteLength) throw damaged(`The section of state '${description.name}' is cut short`)
    if (crc32(section) !== crc) throw damaged(`The section of state '${description.name}' has a wrong CRC`)
    sections.push({ description, count, bytes: section })
    offset += byteLength
  }
  if (offset !== length) throw damaged('The block goes on after its last section')
  return sections
}

export function describePlace(place: {
  readonly uid: string
  readonly keyGroup: KeyGroup
  readonly object: string
}): string {
  return `operator '${place.uid}', key group ${place.keyGroup}, ${place.object}`
}
