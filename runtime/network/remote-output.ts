// A producer's channel to a consumer in another slot: batches records into elements, and carries out its machine.

import type { ChannelId } from '../base/ids.ts'
import { formatChannel } from '../base/ids.ts'
import { createWriter } from '../record/bytes.ts'
import type { StreamEvent } from '../record/element.ts'
import { ChannelEnd } from './channel-end.ts'
import type { ChannelEndOptions } from './channel-end.ts'
import type { OutputChannel } from './contract.ts'
import { writeEvent, writeRecords } from './element-codec.ts'
import { networkError } from './errors.ts'
import { FRAME_HEADER_BYTES } from './frame.ts'
import type { ChannelMessage } from './frame.ts'
import { BATCH_RECORDS_MAX, FRAME_BYTES_MAX, QUEUED_BYTES_MAX, RECORD_BYTES_MAX } from './limits.ts'
import { ELEMENT_LENGTH_BYTES, ProducerMachine } from './producer-machine.ts'
import { TurnSignal } from './turn-signal.ts'

/** The largest element that travels whole. */
const elementBytesMax = FRAME_BYTES_MAX - FRAME_HEADER_BYTES - ELEMENT_LENGTH_BYTES
/** What a batch should come to: records differ in size, and one byte too many means two frames. */
const batchBytesAim = Math.floor(elementBytesMax * 0.85)
/** Records in the first batch, before their size is known. */
const firstBatchRecords = 32

// Encoding is synchronous and its bytes are copied at once, so one writer serves all channels of the thread.
const writer = createWriter(FRAME_BYTES_MAX)

export class RemoteOutput implements OutputChannel {
  readonly id: ChannelId
  readonly #end: ChannelEnd
  readonly #machine: ProducerMachine
  readonly #changed: TurnSignal
  readonly #received: TurnSignal
  readonly #pending: { readonly values: unknown[]; readonly timestamps: number[] } = { values: [], timestamps: [] }
  /**
   * Records of `#pending` that wait. Its arrays stay as long as the last full batch was: growing anew for each took a fifteenth of all that a
   * keyed update takes. What they still hold is let go of with the next event.
   */
  #count = 0
  #batchRecords = firstBatchRecords
  #bytesPerRecord = 0
  #countedResends = 0

  constructor(options: ChannelEndOptions) {
    this.id = options.route.channel
    const { deadlineMs, environment } = options
    this.#machine = new ProducerMachine({ deadlineMs, planted: environment.planted })
    this.#end = new ChannelEnd(options, this.#machine, () => this.#signal())
    this.#changed = new TurnSignal(environment.executor, true)
    this.#received = new TurnSignal(environment.executor, false)
  }

  get ready(): boolean {
    return this.#machine.queuedBytes < QUEUED_BYTES_MAX
  }

  get endReceived(): boolean {
    return this.#machine.lastReceived
  }

  /** Throws MR-W01 for a record above 8 MiB, and what the codec throws. */
  emit(value: unknown, timestamp: number): void {
    const { values, timestamps } = this.#pending
    const count = this.#count
    values[count] = value
    timestamps[count] = timestamp
    this.#count = count + 1
    if (count + 1 < this.#batchRecords) return
    this.#offerPending()
    this.#send()
  }

  event(event: StreamEvent): void {
    this.#offerPending()
    this.#letGo()
    writer.reset()
    writeEvent(event, writer)
    this.#offer(event.kind === 'end')
    this.#send()
  }

  flush(): void {
    this.#offerPending()
    this.#send()
  }

  onChange(callback: () => void): void {
    this.#changed.callback = callback
    this.#received.callback = callback
  }

  /** A message of the consumer; the hub has checked that it is for these attempts. */
  receive(message: ChannelMessage): void {
    if (message.kind !== 'credit' || this.#end.closed) return
    this.#machine.credit(message, this.#end.nowMs)
    this.#carryOut()
  }

  close(): void {
    this.#end.close()
    this.#changed.close()
    this.#received.close()
    this.#count = 0
    this.#letGo()
  }

  #send(): void {
    if (this.#end.closed) return
    this.#machine.send(this.#end.nowMs)
    this.#carryOut()
  }

  #carryOut(): void {
    this.#end.carryOut()
    this.#signal()
  }

  #signal(): void {
    this.#changed.update(this.ready)
    this.#received.update(this.endReceived)
    const resent = this.#machine.resentFrames - this.#countedResends
    if (resent === 0) return
    this.#countedResends += resent
    this.#end.options.metrics?.add('frames_resent_total', resent)
  }

  #offerPending(): void {
    if (this.#count === 0 || this.#end.closed) return
    this.#offerRecords(0, this.#count)
    this.#count = 0
  }

  #letGo(): void {
    const { values, timestamps } = this.#pending
    values.length = this.#count
    timestamps.length = this.#count
  }

  /** One element of records [from, to), or several where they are larger than was thought. */
  #offerRecords(from: number, to: number): void {
    writer.reset()
    writeRecords(this.#end.options.type.batch, this.#pending, from, to, writer)
    const count = to - from
    this.#learn(writer.position / count)
    if (count > 1 && writer.position > elementBytesMax) {
      const middle = from + (count >> 1)
      this.#offerRecords(from, middle)
      this.#offerRecords(middle, to)
      return
    }
    if (writer.position > RECORD_BYTES_MAX) {
      const what = `A ${this.#end.options.type.name} of ${writer.position} bytes on channel ${formatChannel(this.id)}`
      throw networkError('MR-W01', `${what}; at most ${RECORD_BYTES_MAX} are allowed.`)
    }
    this.#offer(false)
  }

  /** Follows the size of records, half way at each batch. */
  #learn(bytesPerRecord: number): void {
    this.#bytesPerRecord = this.#bytesPerRecord === 0 ? bytesPerRecord : (this.#bytesPerRecord + bytesPerRecord) / 2
    this.#batchRecords = Math.max(1, Math.min(BATCH_RECORDS_MAX, Math.floor(batchBytesAim / this.#bytesPerRecord)))
  }

  #offer(last: boolean): void {
    if (this.#end.closed) return
    this.#end.options.metrics?.add('bytes_out_total', writer.position)
    this.#machine.offer(writer.take(), last)
  }
}
