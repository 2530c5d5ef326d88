// The consumer's end of a channel as a pure machine: messages and ticks go in, elements and credit come out. Protocol rules 8-11.
//
// The caller's order: after each call, send what `outbox` holds and empty it, look at `failure`, and see to it that tick is
// called at `wakeAtMs`. While `assembling` is true after take, call assemble in a later turn.

import type { AssemblyBudget } from './assembly-budget.ts'
import type { CreditAccount } from './credit-budget.ts'
import type { ChannelFailure } from './errors.ts'
import { Fifo } from './fifo.ts'
import { FRAME_HEADER_BYTES } from './frame.ts'
import type { CreditMessage, DataMessage, RepeatMessage } from './frame.ts'
import { FRAGMENT_BYTES, OPENING_REPEAT_MS, REPEAT_MS } from './limits.ts'
import { ELEMENT_LENGTH_BYTES } from './producer-machine.ts'

export interface ConsumerMachineOptions {
  readonly credit: CreditAccount
  readonly assembly: AssemblyBudget
  /** Silence of the producer, ms, after which an unanswered opening fails the channel. */
  readonly deadlineMs: number
  /** There is room to go on assembling: call assemble in a later turn. */
  readonly onRoom: () => void
}

interface Assembly {
  readonly bytes: Uint8Array
  filled: number
}

export class ConsumerMachine {
  readonly outbox: CreditMessage[] = []
  failure: ChannelFailure | undefined
  readonly #options: ConsumerMachineOptions
  readonly #credit: CreditAccount
  /** Received in order and not consumed. */
  readonly #frames = new Fifo<DataMessage>()
  /** Where in the first frame the next whole element stands. */
  #position = FRAME_HEADER_BYTES
  #assembly: Assembly | undefined
  #blocked = false
  #received = 0
  #receivedBytes = 0
  /** The limit in the newest message sent. */
  #toldLimit = 0
  /** The frame that was asked for; it is asked for once, and again in answer to repeats. */
  #askedFor = 0
  #opening: { readonly sinceMs: number; repeatAtMs: number; pauseMs: number } | undefined
  #opened = false

  constructor(options: ConsumerMachineOptions) {
    this.#options = options
    this.#credit = options.credit
  }

  /** Number of the last frame received in order. */
  get received(): number {
    return this.#received
  }

  get receivedBytes(): number {
    return this.#receivedBytes
  }

  /** Given to the producer and not consumed. */
  get creditHeldBytes(): number {
    return this.#credit.heldBytes
  }

  /** Whether take would give an element. */
  get available(): boolean {
    if (this.#blocked || this.failure !== undefined) return false
    if (this.#assembly !== undefined) return this.#assembly.filled === this.#assembly.bytes.length
    return this.#frames.first?.elementBytes === 0
  }

  /** The next element is a fragmented one that is not complete. */
  get assembling(): boolean {
    return !this.#blocked && !this.available && (this.#assembly !== undefined || this.#frames.length > 0)
  }

  get wakeAtMs(): number | undefined {
    return this.failure === undefined ? this.#opening?.repeatAtMs : undefined
  }

  /** Gives the first grant, and repeats it until the producer answers (rules 9, 10). */
  open(nowMs: number): void {
    if (this.#opened) return
    this.#opened = true
    this.#opening = { sinceMs: nowMs, repeatAtMs: nowMs + OPENING_REPEAT_MS, pauseMs: OPENING_REPEAT_MS }
    this.#credit.extend()
    this.#tell({})
  }

  data(message: DataMessage): void {
    if (!this.#opened || this.failure !== undefined) return
    this.#opening = undefined
    if (message.sequence === this.#received + 1) this.#accept(message)
    else if (message.sequence > this.#received + 1 && this.#askedFor <= this.#received) {
      // Loss seen early; the frame itself is dropped and comes again with those before it.
      this.#askedFor = this.#received + 1
      this.#tell({ gap: true })
    }
    if (message.acknowledge && message.sequence <= this.#received) this.#tell({})
    this.assemble()
  }

  /** Every repeat is answered: its sender waits for credit, or for the word that its frames arrived (rule 10). */
  repeat(message: RepeatMessage): void {
    if (!this.#opened || this.failure !== undefined) return
    this.#opening = undefined
    if (!this.#blocked) this.#credit.extend()
    this.#tell({ answered: message.highest })
    this.assemble()
  }

  tick(nowMs: number): void {
    const opening = this.#opening
    if (opening === undefined || nowMs < opening.repeatAtMs || this.failure !== undefined) return
    const silentMs = nowMs - opening.sinceMs
    if (silentMs >= this.#options.deadlineMs) {
      this.failure = {
        code: 'MR-W02',
        detail: `The producer did not answer the first grant for ${Math.round(silentMs)} ms.`,
      }
      return
    }
    opening.pauseMs = Math.min(REPEAT_MS, opening.pauseMs * 2)
    opening.repeatAtMs = nowMs + opening.pauseMs
    this.#tell({})
  }

  /** The next element's bytes, or undefined when none is complete or the channel is blocked. It counts as consumed at once. */
  take(): Uint8Array | undefined {
    if (this.#blocked || this.failure !== undefined) return undefined
    this.assemble()
    if (this.#assembly !== undefined) return this.#takeAssembled(this.#assembly)
    const frame = this.#frames.first
    if (frame === undefined || frame.elementBytes !== 0) return undefined
    return this.#takeWhole(frame.frame)
  }

  /** Nothing is given or assembled until unblock, so that a blocked channel holds nothing but frames (rule 9). */
  block(): void {
    this.#blocked = true
    this.#options.assembly.withdraw(this)
  }

  unblock(): void {
    this.#blocked = false
    this.assemble()
  }

  close(): void {
    this.#options.assembly.withdraw(this)
    if (this.#assembly !== undefined) this.#options.assembly.finish(this.#assembly.bytes.length)
    this.#assembly = undefined
    this.#frames.clear()
    this.#credit.close()
  }

  /**
   * Copies fragments of the next element together; each counts as consumed with that (rule 9), else a record above the
   * window would never arrive. Never called within take's turn after an element was given: that may have been the barrier
   * that blocks this channel, and a blocked channel must hold no room.
   */
  assemble(): void {
    let copied = false
    for (let next = this.#frames.first; next !== undefined && next.elementBytes > 0; next = this.#frames.first) {
      if (this.#blocked || this.failure !== undefined) break
      if (this.#assembly !== undefined && this.#assembly.filled === this.#assembly.bytes.length) break
      this.#assembly ??= this.#startAssembly(next)
      if (this.#assembly === undefined) break
      if (!this.#fits(next, this.#assembly)) break
      const payload = next.frame.subarray(FRAME_HEADER_BYTES)
      this.#assembly.bytes.set(payload, this.#assembly.filled)
      this.#assembly.filled += payload.length
      this.#consumeFrame()
      copied = true
    }
    if (copied) this.#tellIfWorthIt()
  }

  #accept(message: DataMessage): void {
    this.#receivedBytes += message.frame.length
    if (this.#receivedBytes > this.#credit.limit) {
      this.failure = { code: 'MR-W04', detail: `${this.#receivedBytes} bytes of ${this.#credit.limit} allowed.` }
      return
    }
    this.#received = message.sequence
    this.#frames.push(message)
    // A frame without elements has nothing to be taken.
    if (message.frame.length === FRAME_HEADER_BYTES && this.#frames.length === 1) this.#consumeFrame()
  }

  #takeWhole(frame: Uint8Array): Uint8Array | undefined {
    const at = this.#position + ELEMENT_LENGTH_BYTES
    const end = at <= frame.length ? at + readLength(frame, this.#position) : Number.POSITIVE_INFINITY
    if (end > frame.length) {
      this.failure = { code: 'MR-W03', detail: `An element reaches beyond its frame of ${frame.length} bytes.` }
      return undefined
    }
    this.#position = end
    if (end === frame.length) {
      this.#consumeFrame()
      this.#tellIfWorthIt()
    }
    return frame.subarray(at, end)
  }

  #takeAssembled(assembly: Assembly): Uint8Array | undefined {
    if (assembly.filled < assembly.bytes.length) return undefined
    this.#assembly = undefined
    this.#options.assembly.finish(assembly.bytes.length)
    return assembly.bytes
  }

  #startAssembly(first: DataMessage): Assembly | undefined {
    // All of it or nothing: two half assembled records could wait for each other's room for ever.
    if (!this.#options.assembly.start(this, first.elementBytes, this.#options.onRoom)) return undefined
    return { bytes: Buffer.allocUnsafeSlow(first.elementBytes), filled: 0 }
  }

  #fits(next: DataMessage, assembly: Assembly): boolean {
    if (next.elementBytes === assembly.bytes.length && next.elementOffset === assembly.filled) return true
    const expected = `${assembly.filled} of ${assembly.bytes.length}`
    this.failure = {
      code: 'MR-W03',
      detail: `A fragment at ${next.elementOffset} of ${next.elementBytes} came, not at ${expected}.`,
    }
    return false
  }

  /** The first frame goes, its credit with it; so do frames without elements behind it. */
  #consumeFrame(): void {
    do {
      this.#credit.consume(this.#frames.shift()!.frame.length)
      this.#position = FRAME_HEADER_BYTES
    } while (this.#frames.first?.frame.length === FRAME_HEADER_BYTES)
    this.#credit.extend()
  }

  /** Each half window; and when nothing is left here and the producer's credit no longer suffices for a fragment. */
  #tellIfWorthIt(): void {
    const gained = this.#credit.limit - this.#toldLimit
    const starving = this.#frames.length === 0 && this.#toldLimit - this.#receivedBytes < FRAGMENT_BYTES
    if (gained >= this.#credit.windowBytes / 2 || (starving && gained > 0)) this.#tell({})
  }

  #tell(about: { readonly answered?: number; readonly gap?: boolean }): void {
    this.#toldLimit = this.#credit.limit
    this.outbox.push({
      kind: 'credit',
      received: this.#received,
      limit: this.#credit.limit,
      answered: about.answered ?? 0,
      opening: this.#opening !== undefined,
      gap: about.gap ?? false,
    })
  }
}

function readLength(bytes: Uint8Array, at: number): number {
  return (bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)) >>> 0
}
