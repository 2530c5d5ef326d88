// For tests of channels: a codec that needs no schema, and a transport in one thread that loses, holds and cuts as told.

import { bytesCodec } from '../../runtime/record/plain-codecs.ts'
import type { BatchCodec, TypeInfo } from '../../runtime/record/contract.ts'
import type { FrameTransport, PeerAddress } from '../../runtime/network/contract.ts'

const batch: BatchCodec<unknown> = {
  encodeBatch: (values, timestamps, from, to, writer) => {
    for (let index = from; index < to; index++) {
      writer.i53(timestamps[index]!)
      writer.string(JSON.stringify(values[index]))
    }
  },
  decodeBatch: (reader) => {
    const values: unknown[] = []
    const timestamps: number[] = []
    while (reader.position < reader.end) {
      timestamps.push(reader.i53())
      values.push(JSON.parse(reader.string()))
    }
    return { values, timestamps }
  },
}

/** Values that JSON carries. */
export const plainType: TypeInfo<unknown> = { name: 'plain', row: bytesCodec, batch }

interface Message {
  readonly to: PeerAddress
  readonly bytes: Uint8Array
}

/** Keeps what is sent until `deliver`. */
export class WireTransport implements FrameTransport {
  readonly wire: Message[] = []
  /** Whether a message is lost when it is sent. */
  loses: (message: Message) => boolean = () => false
  readonly #subscriptions = new Map<string, Set<(bytes: Uint8Array) => void>>()

  get subjects(): readonly string[] {
    return [...this.#subscriptions.keys()]
  }

  subscribe(subject: string, onMessage: (bytes: Uint8Array) => void): { close(): void } {
    const listeners = this.#subscriptions.get(subject) ?? new Set()
    this.#subscriptions.set(subject, listeners.add(onMessage))
    return {
      close: () => {
        listeners.delete(onMessage)
        if (listeners.size === 0) this.#subscriptions.delete(subject)
      },
    }
  }

  send(to: PeerAddress, bytes: Uint8Array): void {
    const message = { to, bytes: new Uint8Array(bytes) }
    if (!this.loses(message)) this.wire.push(message)
  }

  /** Everything on the wire now; answers stay on it. Returns how many there were. */
  deliver(): number {
    const messages = this.wire.splice(0)
    for (const { to, bytes } of messages)
      for (const listener of this.#subscriptions.get(to.subject) ?? []) listener(bytes)
    return messages.length
  }
}
