// Datagrams in pieces that a server takes. Version 1. A header of 28 bytes, little-endian, then the piece:
//    0 u16 magic   2 u8 version   3 zero   4 u32 and 8 u32 sender   12 u32 index   16 u32 pieces in all   20 f64 number
// A sender is one life of a port; its datagrams have rising numbers. A sender's datagrams are delivered with rising numbers
// too: one that is overtaken by a newer one is lost, and so none comes twice.

import { DATAGRAM_BYTES_MAX, INCOMPLETE_BYTES_MAX, INCOMPLETE_DATAGRAMS_MAX, SENDERS_MAX } from './limits.ts'

const PIECE_VERSION = 1
export const PIECE_HEADER_BYTES = 28

const magic = 0x644d
/** A piece of a larger datagram has at least this much, or a header would be half of it. */
const contentBytesMin = 1024
const piecesMax = Math.ceil(DATAGRAM_BYTES_MAX / contentBytesMin)

export interface Sender {
  readonly high: number
  readonly low: number
}

export interface Datagram {
  readonly sender: Sender
  /** 1, 2, … */
  readonly number: number
  readonly bytes: Uint8Array
}

/** How many pieces of up to `pieceBytes`, header included, a datagram of `byteCount` needs. */
export function pieceCount(byteCount: number, pieceBytes: number): number {
  return Math.max(1, Math.ceil(byteCount / contentBytes(pieceBytes)))
}

/** Piece `index` of a datagram, in bytes of its own. */
export function pieceOf(datagram: Datagram, index: number, pieceBytes: number): Uint8Array {
  const { sender, number, bytes } = datagram
  const step = contentBytes(pieceBytes)
  const content = bytes.subarray(index * step, (index + 1) * step)
  const piece = Buffer.allocUnsafeSlow(PIECE_HEADER_BYTES + content.length)
  const view = new DataView(piece.buffer, piece.byteOffset, piece.length)
  view.setUint16(0, magic, true)
  view.setUint8(2, PIECE_VERSION)
  view.setUint8(3, 0)
  view.setUint32(4, sender.high, true)
  view.setUint32(8, sender.low, true)
  view.setUint32(12, index, true)
  view.setUint32(16, pieceCount(bytes.length, pieceBytes), true)
  view.setFloat64(20, number, true)
  piece.set(content, PIECE_HEADER_BYTES)
  return piece
}

function contentBytes(pieceBytes: number): number {
  return Math.max(contentBytesMin, pieceBytes - PIECE_HEADER_BYTES)
}

interface Incomplete {
  readonly sender: string
  readonly number: number
  readonly count: number
  readonly pieces: Map<number, Uint8Array>
  byteCount: number
}

export type Arrival =
  | { readonly kind: 'complete'; readonly bytes: Uint8Array }
  | { readonly kind: 'kept' }
  /** A repetition, or overtaken by a newer one. */
  | { readonly kind: 'late' }
  | { readonly kind: 'malformed'; readonly reason: string }

/** Puts the pieces of all senders on one subject together. Keeps the pieces that it is given, so they must not change. */
export class Reassembly {
  /** The newest delivered number; in the order in which the senders were last heard. */
  readonly #delivered = new Map<string, number>()
  /** By sender and number, the oldest first. */
  readonly #incomplete = new Map<string, Incomplete>()
  #keptBytes = 0

  /** Bytes of datagrams that are not complete. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  get incomplete(): number {
    return this.#incomplete.size
  }

  piece(bytes: Uint8Array): Arrival {
    const header = readHeader(bytes)
    if (typeof header === 'string') return { kind: 'malformed', reason: header }
    const { sender, number, index, count } = header
    if (number <= (this.#delivered.get(sender) ?? 0)) return { kind: 'late' }
    const content = bytes.subarray(PIECE_HEADER_BYTES)
    if (count === 1) return this.#complete(sender, number, content)
    const key = `${sender} ${number}`
    const known = this.#incomplete.get(key) ?? { sender, number, count, pieces: new Map(), byteCount: 0 }
    if (known.count !== count) return { kind: 'malformed', reason: `${count} pieces, not ${known.count}` }
    if (known.pieces.has(index)) return { kind: 'late' }
    if (known.byteCount + content.length > DATAGRAM_BYTES_MAX) {
      this.#drop(key)
      return { kind: 'malformed', reason: `it has more than ${DATAGRAM_BYTES_MAX} bytes` }
    }
    known.pieces.set(index, content)
    known.byteCount += content.length
    this.#keptBytes += content.length
    this.#incomplete.set(key, known)
    if (known.pieces.size === count) return this.#complete(sender, number, joined(known))
    this.#makeRoom(key)
    return { kind: 'kept' }
  }

  #complete(sender: string, number: number, bytes: Uint8Array): Arrival {
    for (const [key, { sender: other, number: older }] of this.#incomplete)
      if (other === sender && older <= number) this.#drop(key)
    this.#delivered.delete(sender)
    this.#delivered.set(sender, number)
    if (this.#delivered.size > SENDERS_MAX) this.#delivered.delete(this.#delivered.keys().next().value!)
    return { kind: 'complete', bytes }
  }

  /** The oldest go first, but not the one that just grew. */
  #makeRoom(grown: string): void {
    for (const key of this.#incomplete.keys()) {
      if (this.#incomplete.size <= INCOMPLETE_DATAGRAMS_MAX && this.#keptBytes <= INCOMPLETE_BYTES_MAX) return
      if (key !== grown) this.#drop(key)
    }
  }

  #drop(key: string): void {
    const incomplete = this.#incomplete.get(key)
    if (incomplete === undefined) return
    this.#incomplete.delete(key)
    this.#keptBytes -= incomplete.byteCount
  }
}

interface Header {
  readonly sender: string
  readonly number: number
  readonly index: number
  readonly count: number
}

/** Bytes from the network may be anything: what is no piece comes back as the reason. */
function readHeader(bytes: Uint8Array): Header | string {
  if (bytes.length < PIECE_HEADER_BYTES) return `${bytes.length} bytes are no header`
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  if (view.getUint16(0, true) !== magic) return 'it does not begin like a piece'
  if (view.getUint8(2) !== PIECE_VERSION) return `version ${view.getUint8(2)} is not ${PIECE_VERSION}`
  const index = view.getUint32(12, true)
  const count = view.getUint32(16, true)
  const number = view.getFloat64(20, true)
  if (count < 1 || count > piecesMax || index >= count) return `piece ${index} of ${count}`
  if (!Number.isSafeInteger(number) || number < 1) return `its number is ${number}`
  if (bytes.length === PIECE_HEADER_BYTES && count > 1) return 'it is empty'
  return { sender: `${view.getUint32(4, true)}-${view.getUint32(8, true)}`, number, index, count }
}

function joined({ pieces, byteCount, count }: Incomplete): Uint8Array {
  const bytes = Buffer.allocUnsafeSlow(byteCount)
  let at = 0
  for (let index = 0; index < count; index++) {
    const piece = pieces.get(index)!
    bytes.set(piece, at)
    at += piece.length
  }
  return bytes
}
