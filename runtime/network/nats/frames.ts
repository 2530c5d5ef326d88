// Frames of channels over a connection to NATS.

import type { FrameTransport, PeerAddress } from '../contract.ts'
import { WRITE_BYTES_MAX } from './limits.ts'

/** The part of a connection that carries messages. */
export interface Carrier {
  publish(subject: string, bytes: Uint8Array): boolean
  subscribe(subject: string, onMessage: (bytes: Uint8Array) => void): { close(): void }
}

interface Subject {
  readonly listeners: Set<(bytes: Uint8Array) => void>
  readonly subscription: { close(): void }
}

/** What is received may be a part of a chunk read from the socket; a smaller part of it is copied, lest a small frame keep it. */
const keptShareMin = 1 / 4

/** As much as goes to the socket in two writes, so that a slab is free soon after it is full. */
const slabBytes = 2 * WRITE_BYTES_MAX

export class NatsFrames implements FrameTransport {
  readonly #carrier: Carrier
  #slab = Buffer.allocUnsafeSlow(0)
  #slabUsed = 0
  readonly #subjects = new Map<string, Subject>()

  constructor(carrier: Carrier) {
    this.#carrier = carrier
  }

  /** One subscription at the server, however many listen here (rule 8). */
  subscribe(subject: string, onMessage: (bytes: Uint8Array) => void): { close(): void } {
    const known = this.#subjects.get(subject) ?? this.#listen(subject)
    // A function of its own: the same callback may subscribe twice.
    const listener = (bytes: Uint8Array): void => onMessage(bytes)
    known.listeners.add(listener)
    return {
      close: () => {
        if (!known.listeners.delete(listener) || known.listeners.size > 0) return
        this.#subjects.delete(subject)
        known.subscription.close()
      },
    }
  }

  /** The client keeps what it is given until the next turn, so it gets a copy. What cannot be sent now is dropped (rule 10). */
  send(to: PeerAddress, bytes: Uint8Array): void {
    this.#carrier.publish(to.subject, this.#copied(bytes))
  }

  /** Never the same place twice. Cut from one slab after the other: a buffer for each frame costs more to collect than to fill. */
  #copied(bytes: Uint8Array): Uint8Array {
    if (this.#slabUsed + bytes.length > this.#slab.length) {
      this.#slab = Buffer.allocUnsafeSlow(Math.max(slabBytes, bytes.length))
      this.#slabUsed = 0
    }
    const from = this.#slabUsed
    this.#slabUsed += bytes.length
    const copy = this.#slab.subarray(from, this.#slabUsed)
    copy.set(bytes)
    return copy
  }

  #listen(subject: string): Subject {
    const listeners: Subject['listeners'] = new Set()
    const subscription = this.#carrier.subscribe(subject, (bytes) => {
      const frame = detached(bytes)
      for (const listener of listeners) listener(frame)
    })
    const known = { listeners, subscription }
    this.#subjects.set(subject, known)
    return known
  }
}

/** Nobody writes into a received chunk again, so a view of it will do. Never a Buffer, whose slice is no copy. */
function detached(bytes: Uint8Array): Uint8Array {
  if (bytes.length < bytes.buffer.byteLength * keptShareMin) return new Uint8Array(bytes)
  return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length)
}
