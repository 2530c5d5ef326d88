// The port of a control link over NATS: packs messages, cuts them, and sends the pieces no faster than the server takes them.

import { Packr } from 'msgpackr'
import type { Environment } from '../../base/environment.ts'
import { networkError } from '../errors.ts'
import type { Carrier } from './frames.ts'
import {
  DATAGRAM_BYTES_MAX,
  DATAGRAMS_QUEUED_BYTES_MAX,
  PIECE_BYTES_MAX,
  PIECES_OUTSTANDING_BYTES_MAX,
} from './limits.ts'
import { pieceCount, pieceOf, Reassembly } from './pieces.ts'
import type { Datagram, Sender } from './pieces.ts'

/** The part of a connection that a port needs. */
export interface DatagramCarrier extends Carrier {
  readonly connected: boolean
  readonly maxPayload: number
  readonly outstandingBytes: number
  onRoom(callback: () => void): { close(): void }
}

export interface DatagramSubjects {
  readonly own: string
  readonly peer: string
}

/** Fields that are undefined stay fields; bytes come out as a Uint8Array of their own. */
const packr = new Packr({ useRecords: false, copyBuffers: true, useBigIntExtension: true })

interface Sending {
  readonly datagram: Datagram
  readonly pieceBytes: number
  next: number
}

/** At most once, in order as far as at all (control/link.ts says what it needs). */
export class DatagramPort {
  /** Messages that were no datagrams. */
  refused = 0
  readonly #carrier: DatagramCarrier
  readonly #subjects: DatagramSubjects
  readonly #log: Environment['log']
  readonly #sender: Sender
  readonly #reassembly = new Reassembly()
  readonly #subscription: { close(): void }
  readonly #room: { close(): void }
  #sendings: Sending[] = []
  #queuedBytes = 0
  #number = 0
  #callback: ((message: unknown) => void) | undefined

  constructor(
    carrier: DatagramCarrier,
    subjects: DatagramSubjects,
    environment: Pick<Environment, 'random'>,
    log: Environment['log'],
  ) {
    this.#carrier = carrier
    this.#subjects = subjects
    this.#log = log
    const id = environment.random.id()
    this.#sender = { high: Number.parseInt(id.slice(0, 8), 16), low: Number.parseInt(id.slice(8, 16), 16) }
    this.#subscription = carrier.subscribe(subjects.own, (bytes) => this.#arrive(bytes))
    this.#room = carrier.onRoom(() => this.#send())
  }

  /** Throws MR-W36 above 64 MiB. While the server is away, and where too much waits, the message is dropped. */
  send(message: unknown): void {
    const bytes = packr.pack(message)
    if (bytes.length > DATAGRAM_BYTES_MAX)
      throw networkError('MR-W36', `${bytes.length} bytes to ${this.#subjects.peer}; at most ${DATAGRAM_BYTES_MAX}.`)
    if (!this.#carrier.connected || this.#queuedBytes + bytes.length > DATAGRAMS_QUEUED_BYTES_MAX) return
    const pieceBytes = Math.min(PIECE_BYTES_MAX, this.#carrier.maxPayload)
    this.#sendings.push({ datagram: { sender: this.#sender, number: ++this.#number, bytes }, pieceBytes, next: 0 })
    this.#queuedBytes += bytes.length
    this.#send()
  }

  onMessage(callback: (message: unknown) => void): void {
    this.#callback = callback
  }

  close(): void {
    this.#callback = undefined
    this.#subscription.close()
    this.#room.close()
    this.#forget()
  }

  #send(): void {
    if (!this.#carrier.connected) this.#forget()
    for (let sending = this.#sendings[0]; sending !== undefined; sending = this.#sendings[0]) {
      const { datagram, pieceBytes } = sending
      const count = pieceCount(datagram.bytes.length, pieceBytes)
      while (sending.next < count) {
        if (this.#carrier.outstandingBytes >= PIECES_OUTSTANDING_BYTES_MAX) return
        this.#carrier.publish(this.#subjects.peer, pieceOf(datagram, sending.next++, pieceBytes))
      }
      this.#sendings.shift()
      this.#queuedBytes -= datagram.bytes.length
    }
  }

  /** A datagram of which a piece is lost is of no use, and what waits would be old when the server is back. */
  #forget(): void {
    this.#sendings = []
    this.#queuedBytes = 0
  }

  #arrive(bytes: Uint8Array): void {
    const arrival = this.#reassembly.piece(bytes)
    if (arrival.kind === 'malformed') this.#refuse(arrival.reason)
    if (arrival.kind !== 'complete') return
    let message: unknown
    try {
      // A Buffer's parts would be Buffers.
      message = packr.unpack(new Uint8Array(arrival.bytes.buffer, arrival.bytes.byteOffset, arrival.bytes.length))
    } catch (error) {
      this.#refuse(error instanceof Error ? error.message : String(error))
      return
    }
    this.#callback?.(message)
  }

  #refuse(reason: string): void {
    this.refused++
    this.#log('debug', 'A datagram was refused.', { subject: this.#subjects.own, reason, refused: this.refused })
  }
}
