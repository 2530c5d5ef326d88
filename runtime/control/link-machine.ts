// One side of a control link as a pure machine: numbered per pair, acknowledged, repeated with back-off until acknowledged,
// delivered once and in order, or the peer is lost. Protocol rule 12.
//
// Every packet says from which session it comes and, once known, for which it is. A session is one life of one side: what a
// former life sent, or was sent, is not mixed with this one's, however late it arrives. A peer's session counts as known only
// when a packet from it names ours, for only then does that life hear us.
//
// The caller's order: after each call, send `outbox` and deliver `inbox`, emptying both, look at `lost`, and see to it that
// tick is called at `wakeAtMs`.

import { invariant } from '../base/errors.ts'

export const LINK_VERSION = 1

/** `open` asks for an answer, `acknowledge` for none; all of them say how many messages were received in order. */
export interface LinkPacket {
  readonly version: number
  readonly kind: 'open' | 'message' | 'acknowledge'
  readonly from: string
  /** undefined: the sender does not know the other side's session. */
  readonly to: string | undefined
  /** Messages received in order so far. */
  readonly received: number
  /** 1, 2, … for a message; 0 else. */
  readonly number: number
  readonly payload: unknown
}

/** Whether it has the shape of a packet, of whatever version. */
export function isPacket(value: unknown): value is LinkPacket {
  if (typeof value !== 'object' || value === null) return false
  const { version, kind, from, to, received, number } = value as Partial<Record<keyof LinkPacket, unknown>>
  return (
    typeof version === 'number' &&
    (kind === 'open' || kind === 'message' || kind === 'acknowledge') &&
    typeof from === 'string' &&
    (to === undefined || typeof to === 'string') &&
    Number.isSafeInteger(received) &&
    Number.isSafeInteger(number)
  )
}

export interface LinkMachineOptions {
  /** A name that no life of either side had before. */
  readonly session: string
  /** Silence of the peer, ms, after which it is lost while something waits for it. */
  readonly deadlineMs: number
  readonly nowMs: number
}

/** Between the first two repeats; doubles up to the maximum until something is acknowledged. */
const repeatMsMin = 50
const repeatMsMax = 2000
/** Messages repeated at once: enough to go on with, few enough not to drown a peer that is slow. */
const repeatedMessagesMax = 64
/** Messages that wait for a peer. One that does not acknowledge so many is as good as lost. */
const unacknowledgedMax = 100_000

export class LinkMachine {
  readonly outbox: LinkPacket[] = []
  readonly inbox: unknown[] = []
  /** Why the peer is lost; nothing is sent or delivered afterwards. */
  lost: string | undefined
  readonly #session: string
  readonly #deadlineMs: number
  #peer: string | undefined
  #waiting: { readonly number: number; readonly payload: unknown }[] = []
  #sent = 0
  #received = 0
  #repeatMs = repeatMsMin
  #repeatAtMs: number | undefined
  /** When the peer was last heard, or when waiting for it began. */
  #aliveAtMs: number

  constructor(options: LinkMachineOptions) {
    invariant(options.session !== '', 'a link session without a name')
    this.#session = options.session
    this.#deadlineMs = options.deadlineMs
    this.#aliveAtMs = options.nowMs
    this.#repeatAtMs = options.nowMs + repeatMsMin
    this.#put('open', undefined)
  }

  get wakeAtMs(): number | undefined {
    return this.lost === undefined ? this.#repeatAtMs : undefined
  }

  send(payload: unknown, nowMs: number): void {
    if (this.lost !== undefined) return
    if (this.#waiting.length === unacknowledgedMax) {
      this.#lose(`it did not acknowledge ${unacknowledgedMax} messages`)
      return
    }
    const message = { number: ++this.#sent, payload }
    this.#waiting.push(message)
    if (this.#peer !== undefined) this.#putMessage(message, this.#peer)
    this.#watch(nowMs)
  }

  packet(packet: LinkPacket, nowMs: number): void {
    if (this.lost !== undefined) return
    if (packet.version !== LINK_VERSION) {
      this.#lose(`it speaks version ${packet.version} of the link, not ${LINK_VERSION}`)
      return
    }
    if (packet.to !== this.#session) {
      this.#answerStranger(packet)
      return
    }
    if (this.#peer === undefined) this.#meet(packet.from)
    if (packet.from !== this.#peer) {
      this.#lose('it was started again')
      return
    }
    this.#aliveAtMs = nowMs
    this.#acknowledged(packet.received)
    if (packet.kind === 'open') this.#put('acknowledge', this.#peer)
    else if (packet.kind === 'message') this.#message(packet)
    this.#watch(nowMs)
  }

  tick(nowMs: number): void {
    if (this.#repeatAtMs === undefined || nowMs < this.#repeatAtMs || this.lost !== undefined) return
    const silentMs = nowMs - this.#aliveAtMs
    if (silentMs >= this.#deadlineMs) {
      this.#lose(`it was silent for ${Math.round(silentMs)} ms`)
      return
    }
    if (this.#peer === undefined) this.#put('open', undefined)
    else for (const message of this.#waiting.slice(0, repeatedMessagesMax)) this.#putMessage(message, this.#peer)
    this.#repeatMs = Math.min(repeatMsMax, this.#repeatMs * 2)
    this.#repeatAtMs = nowMs + this.#repeatMs
  }

  /**
   * The sender does not know this life of ours: it has just begun, or it takes us for a former one. Our answer names its
   * session; if it knows another of ours it learns from that that we were started again. Answers are not answered.
   */
  #answerStranger(packet: LinkPacket): void {
    if (packet.kind === 'acknowledge') return
    if (packet.kind === 'open' && packet.to !== undefined) return
    this.#put('open', packet.from)
  }

  #meet(session: string): void {
    this.#peer = session
    for (const message of this.#waiting.slice(0, repeatedMessagesMax)) this.#putMessage(message, session)
  }

  #message(packet: LinkPacket): void {
    if (packet.number === this.#received + 1) {
      this.#received++
      this.inbox.push(packet.payload)
    }
    // Repeated and early ones are answered too: the answer says what is expected.
    this.#put('acknowledge', this.#peer)
  }

  #acknowledged(received: number): void {
    const before = this.#waiting.length
    this.#waiting = this.#waiting.filter(({ number }) => number > received)
    if (this.#waiting.length === before) return
    this.#repeatMs = repeatMsMin
    this.#repeatAtMs = undefined
  }

  /** Repeats go on until the peer is known and everything is acknowledged. */
  #watch(nowMs: number): void {
    if (this.#peer !== undefined && this.#waiting.length === 0) this.#repeatAtMs = undefined
    else if (this.#repeatAtMs === undefined) {
      this.#repeatAtMs = nowMs + this.#repeatMs
      this.#aliveAtMs = nowMs
    }
  }

  #lose(reason: string): void {
    this.lost = reason
    this.#waiting = []
  }

  #put(kind: 'open' | 'acknowledge', to: string | undefined): void {
    this.outbox.push({
      version: LINK_VERSION,
      kind,
      from: this.#session,
      to,
      received: this.#received,
      number: 0,
      payload: undefined,
    })
  }

  #putMessage({ number, payload }: { readonly number: number; readonly payload: unknown }, to: string): void {
    this.outbox.push({
      version: LINK_VERSION,
      kind: 'message',
      from: this.#session,
      to,
      received: this.#received,
      number,
      payload,
    })
  }
}
