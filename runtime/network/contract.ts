// Channels as the task sees them, and the transports beneath.

import type { Attempt, ChannelId, SlotId } from '../base/ids.ts'
import type { ChannelItem, StreamEvent } from '../record/element.ts'

/** One consumer subtask's end of an edge, held by the producer. */
export interface OutputChannel {
  readonly id: ChannelId
  /** Buffers a record. Never blocks and never refuses; `ready` says when to stop. */
  emit(value: unknown, timestamp: number): void
  /** Puts an event after everything emitted so far and sends both. */
  event(event: StreamEvent): void
  /** Sends what is buffered, as far as credit allows. */
  flush(): void
  /** Whether there is room (credit and buffer) for more. A task that finds one output not ready stops reading. */
  readonly ready: boolean
  /** The consumer has received the end of data; only then may the producer leave (rule 19). */
  readonly endReceived: boolean
  /** Called in a later turn whenever `ready` or `endReceived` turned true. */
  onChange(callback: () => void): void
  close(): void
}

/** One producer subtask's end of an edge, held by the consumer. */
export interface InputChannel {
  readonly id: ChannelId
  /** The next item in order, or undefined when none is there or the channel is blocked. Taking an item counts the one before as consumed. */
  next(): ChannelItem | undefined
  /** Whether next() would give an item. */
  readonly available: boolean
  /** A blocked channel (alignment) gives nothing and holds at most its share of the budget (rule 9). */
  block(): void
  unblock(): void
  /** Called in a later turn whenever `available` turned true. */
  onAvailable(callback: () => void): void
  /** Opens the channel: repeats the first grant until a frame or its acknowledgement arrives (rule 9, 10). */
  open(): void
  close(): void
}

/** Where a subtask's frames go: its slot, and the subject on which it listens. */
export interface PeerAddress {
  readonly slot: SlotId
  readonly subject: string
}

/** A channel of a deployment: who is at the other end. */
export interface ChannelPeer {
  readonly channel: ChannelId
  readonly attempt: Attempt
  readonly address: PeerAddress
}

/**
 * Carries frames between slots, at most once, in order per pair as far as it carries them at all; may lose, repeat and reorder.
 * `send` takes a copy: the caller may keep and reuse `bytes`. Messages are ≤ the frame limit.
 */
export interface FrameTransport {
  subscribe(subject: string, onMessage: (bytes: Uint8Array) => void): { close(): void }
  send(to: PeerAddress, bytes: Uint8Array): void
}
