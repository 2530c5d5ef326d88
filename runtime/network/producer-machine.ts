// The producer's end of a channel as a pure machine: elements, credit and ticks go in, messages come out. Protocol rules 8-11.
//
// The caller's order: after each call of offer, send, credit or tick, send what `outbox` holds and empty it, look at `failure`,
// and see to it that tick is called at `wakeAtMs`.

import { invariant } from '../base/errors.ts'
import type { PlantedFault } from '../base/planted.ts'
import type { ChannelFailure } from './errors.ts'
import { Fifo } from './fifo.ts'
import { FRAME_HEADER_BYTES } from './frame.ts'
import type { ChannelMessage, CreditMessage, DataMessage } from './frame.ts'
import { FRAGMENT_BYTES, FRAME_BYTES_MAX, RECORD_BYTES_MAX, REPEAT_MS } from './limits.ts'

/** What stands before each element in a frame of whole elements. */
export const ELEMENT_LENGTH_BYTES = 4

export interface ProducerMachineOptions {
  /** Silence of the consumer, ms, after which a waiting channel fails. */
  readonly deadlineMs: number
  readonly planted: ReadonlySet<PlantedFault>
}

export class ProducerMachine {
  readonly outbox: ChannelMessage[] = []
  failure: ChannelFailure | undefined
  resentFrames = 0
  readonly #options: ProducerMachineOptions
  readonly #queue = new Fifo<Uint8Array>()
  #queuedBytes = 0
  /** Of the queue's first element, sent already as fragments. */
  #fragmentedBytes = 0
  #offered = 0
  #place = 1
  /** The last element was offered; the frame that ends it asks for an answer at once. */
  #lastOffered = false
  #lastSequence: number | undefined
  /** Sent and not acknowledged, by sequence number. */
  readonly #unacknowledged = new Fifo<DataMessage>()
  #highest = 0
  #received = 0
  #sentBytes = 0
  /** undefined until the first grant: nothing is sent before it (rule 9). */
  #limit: number | undefined
  #repeatAtMs: number | undefined
  /** When the consumer was last heard, or when waiting for it began. */
  #aliveAtMs = 0
  #resent = { from: 0, atMs: Number.NEGATIVE_INFINITY }

  constructor(options: ProducerMachineOptions) {
    this.#options = options
  }

  /** Bytes of elements that wait for credit. */
  get queuedBytes(): number {
    return this.#queuedBytes
  }

  get unacknowledgedFrames(): number {
    return this.#unacknowledged.length
  }

  /** The consumer has received everything up to the element offered as the last one. */
  get lastReceived(): boolean {
    return this.#lastSequence !== undefined && this.#received >= this.#lastSequence
  }

  /** When tick must be called; undefined while there is nothing to wait for. */
  get wakeAtMs(): number | undefined {
    return this.failure === undefined ? this.#repeatAtMs : undefined
  }

  /** Queues an element; its bytes belong to the machine from now on. `last`: none follows it. */
  offer(element: Uint8Array, last = false): void {
    invariant(
      element.length > 0 && element.length <= RECORD_BYTES_MAX,
      `an element of ${element.length} bytes was offered`,
    )
    invariant(!this.#lastOffered, 'an element was offered behind the last one')
    this.#queue.push(element)
    this.#queuedBytes += element.length
    this.#offered++
    this.#lastOffered = last
  }

  /** Sends what is queued, as far as credit allows. */
  send(nowMs: number): void {
    if (this.#limit === undefined || this.failure !== undefined) return
    while (this.#queue.length > 0) {
      const message = this.#nextFrame(this.#limit - this.#sentBytes)
      if (message === undefined) break
      this.#highest = message.sequence
      this.#sentBytes += message.frame.length
      this.#unacknowledged.push(message)
      this.outbox.push(message)
    }
    this.#watch(nowMs)
  }

  /** The consumer's message. Old and repeated ones change nothing: all numbers are cumulative. */
  credit(message: CreditMessage, nowMs: number): void {
    if (this.failure !== undefined) return
    if (message.received > this.#highest) {
      this.failure = { code: 'MR-W03', detail: `Received up to ${message.received} of ${this.#highest} frames.` }
      return
    }
    this.#aliveAtMs = nowMs
    this.#received = Math.max(this.#received, message.received)
    while ((this.#unacknowledged.first?.sequence ?? Number.POSITIVE_INFINITY) <= this.#received)
      this.#unacknowledged.shift()
    this.#limit = Math.max(this.#limit ?? 0, message.limit)
    // An opening grant that nobody answers is repeated for ever; this also tells a consumer that nothing is lost yet.
    if (message.opening) this.outbox.push({ kind: 'repeat', highest: this.#highest })
    // Frames sent before the repeat that is answered, or before one that arrived, are lost (rule 10): loss is found here.
    if ((message.gap || message.answered > message.received) && message.received === this.#received) this.#resend(nowMs)
    this.send(nowMs)
  }

  tick(nowMs: number): void {
    if (this.#repeatAtMs === undefined || nowMs < this.#repeatAtMs || this.failure !== undefined) return
    const silentMs = nowMs - this.#aliveAtMs
    if (silentMs >= this.#options.deadlineMs) {
      this.failure = { code: 'MR-W02', detail: `The consumer was silent for ${Math.round(silentMs)} ms.` }
      return
    }
    this.outbox.push({ kind: 'repeat', highest: this.#highest })
    this.#repeatAtMs = nowMs + REPEAT_MS
  }

  /** Repeats go on while frames are unacknowledged or wait for credit, and begin REPEAT_MS after that began (rule 10). */
  #watch(nowMs: number): void {
    if (this.#unacknowledged.length === 0 && this.#queue.length === 0) this.#repeatAtMs = undefined
    else if (this.#repeatAtMs === undefined) {
      this.#repeatAtMs = nowMs + REPEAT_MS
      this.#aliveAtMs = nowMs
    }
  }

  /** Everything from what the consumer expects; once in half a repeat, lest each late answer sends the whole window again. */
  #resend(nowMs: number): void {
    const first = this.#unacknowledged.first
    if (first === undefined) return
    if (first.sequence === this.#resent.from && nowMs - this.#resent.atMs < REPEAT_MS / 2) return
    this.#resent = { from: first.sequence, atMs: nowMs }
    if (this.#options.planted.has('frame-not-resent') && first.elementBytes === 0) this.#emptyFirst(first)
    for (const message of this.#unacknowledged) {
      this.outbox.push(message)
      this.resentFrames++
    }
  }

  /** The planted fault: the lost frame's number comes again, but not what was in it. */
  #emptyFirst(first: DataMessage): void {
    this.#unacknowledged.replaceFirst({ ...first, frame: new Uint8Array(FRAME_HEADER_BYTES) })
    this.#sentBytes -= first.frame.length - FRAME_HEADER_BYTES
  }

  /** Whole elements as many as fit, else a fragment as large as allowed, else nothing: then credit must come first. */
  #nextFrame(creditBytes: number): DataMessage | undefined {
    const payloadMax = Math.min(FRAME_BYTES_MAX, creditBytes) - FRAME_HEADER_BYTES
    const first = this.#queue.first!
    if (this.#fragmentedBytes === 0 && first.length + ELEMENT_LENGTH_BYTES <= payloadMax)
      return this.#wholeElements(payloadMax)
    const left = first.length - this.#fragmentedBytes
    if (left <= payloadMax || creditBytes >= FRAGMENT_BYTES) return this.#fragment(first, Math.min(left, payloadMax))
    return undefined
  }

  #wholeElements(payloadMax: number): DataMessage {
    const elements: Uint8Array[] = []
    let payloadBytes = 0
    for (let next = this.#queue.first; next !== undefined; next = this.#queue.first) {
      if (payloadBytes + ELEMENT_LENGTH_BYTES + next.length > payloadMax) break
      payloadBytes += ELEMENT_LENGTH_BYTES + next.length
      elements.push(next)
      this.#queue.shift()
    }
    const frame = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES + payloadBytes)
    let at = FRAME_HEADER_BYTES
    for (const element of elements) {
      frame.writeUInt32LE(element.length, at)
      frame.set(element, at + ELEMENT_LENGTH_BYTES)
      at += ELEMENT_LENGTH_BYTES + element.length
      this.#queuedBytes -= element.length
    }
    const place = this.#place
    this.#place += elements.length
    return this.#data(frame, place, 0, 0)
  }

  #fragment(element: Uint8Array, payloadBytes: number): DataMessage {
    const offset = this.#fragmentedBytes
    const frame = Buffer.allocUnsafeSlow(FRAME_HEADER_BYTES + payloadBytes)
    frame.set(element.subarray(offset, offset + payloadBytes), FRAME_HEADER_BYTES)
    this.#queuedBytes -= payloadBytes
    this.#fragmentedBytes += payloadBytes
    const place = this.#place
    if (this.#fragmentedBytes === element.length) {
      this.#queue.shift()
      this.#fragmentedBytes = 0
      this.#place++
    }
    return this.#data(frame, place, element.length, offset)
  }

  #data(frame: Uint8Array, place: number, elementBytes: number, elementOffset: number): DataMessage {
    const sequence = this.#highest + 1
    const acknowledge = this.#lastOffered && this.#place > this.#offered
    if (acknowledge) this.#lastSequence = sequence
    return { kind: 'data', sequence, place, elementBytes, elementOffset, acknowledge, frame }
  }
}
