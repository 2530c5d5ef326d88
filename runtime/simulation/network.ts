// A simulated network with NATS's habits: fast and in order as a rule, no answer when a message is lost, everything in flight
// gone at a restart, nothing kept for who has not subscribed.

import { crc32 } from 'node:zlib'
import type { DatagramPort } from '../control/link.ts'
import type { PeerAddress, FrameTransport } from '../network/contract.ts'
import { Lane } from './pending.ts'
import type { SimProcess } from './process.ts'
import type { SeededRandom } from './random.ts'
import { Weather } from './weather.ts'
import type { World } from './world.ts'

/**
 * loss, repetition, reordering: the chance for a message. echo: the chance that it comes once more, long after. delay: the mean of what is
 * added, in milliseconds.
 */
export type NetworkTrouble = 'loss' | 'repetition' | 'echo' | 'reordering' | 'delay' | 'restart' | 'cut'

const latencyMsMean = 0.3
/** A subscription needs as long as this to reach the server. */
const subscribeMsMax = 1
/** An echo comes about so long after, ms: its sender may be dead by then, and its receiver another attempt's neighbour. */
const echoMsMean = 15_000
const echoMsMax = 60_000

export class SimNetwork {
  readonly world: World
  readonly weather: Weather<NetworkTrouble>
  readonly #random: SeededRandom
  readonly #subscriptions = new Map<string, Set<Inbox>>()
  readonly #cuts: { readonly from: SimProcess | undefined; readonly to: SimProcess | undefined; untilMs: number }[] = []
  /** Rises with each restart: what was sent before one never arrives after it. */
  #era = 0
  #downUntilMs = 0
  #ports = 0

  constructor(world: World) {
    this.world = world
    this.#random = world.random.split('network')
    this.weather = new Weather(world, 'network')
  }

  /** The connection of one process. */
  transport(process: SimProcess): FrameTransport {
    return {
      subscribe: (subject, onMessage) => {
        const inbox = this.#subscribe(process, subject, `frame to ${subject}`)
        inbox.onMessage = onMessage
        return { close: () => this.#unsubscribe(subject, inbox) }
      },
      send: (to: PeerAddress, bytes: Uint8Array) => {
        if (!process.alive) return
        // A copy at once: a sender may reuse its buffer, and who keeps a view of it must not be seen by the receiver.
        for (const inbox of this.#listening(to.subject))
          this.#carry(process, inbox, new Uint8Array(bytes), crc32(bytes), copyOfBytes)
      },
    }
  }

  /** Two connected ends for messages of structured-cloneable data (control). */
  pair(left: SimProcess, right: SimProcess): readonly [DatagramPort, DatagramPort] {
    const label = `message ${++this.#ports} between ${left.name} and ${right.name}`
    const [toLeft, toRight] = [new Inbox(left, label, 0), new Inbox(right, label, 0)]
    return [this.#port(left, toLeft, toRight), this.#port(right, toRight, toLeft)]
  }

  /** Messages of structured-cloneable data by subject: received on `own`, sent to whoever listens on `peer` then. */
  datagrams(process: SimProcess, { own, peer }: { readonly own: string; readonly peer: string }): DatagramPort {
    const inbox = this.#subscribe(process, own, `datagram to ${own}`)
    return {
      send: (message) => {
        if (!process.alive || !inbox.open) return
        for (const other of this.#listening(peer))
          this.#carry(process, other, structuredClone(message), 0, structuredClone)
      },
      onMessage: (callback) => void (inbox.onMessage = callback as (message: never) => void),
      close: () => this.#unsubscribe(own, inbox),
    }
  }

  /** Whether nothing goes from one to the other now. */
  isCut(from: SimProcess, to: SimProcess): boolean {
    const { nowMs } = this.world
    const cut = this.#cuts.some(
      (each) => each.untilMs > nowMs && (each.from ?? from) === from && (each.to ?? to) === to,
    )
    if (cut) this.weather.count('cut')
    return cut
  }

  /** The server goes, with all that is in flight, and is back after `downMs`. Nobody is told. */
  restart(downMs: number): void {
    this.world.tell(() => `network: restarts, down for ${downMs.toFixed(0)} ms`)
    this.weather.count('restart')
    this.#era++
    this.#downUntilMs = Math.max(this.#downUntilMs, this.world.nowMs + downMs)
  }

  /**
   * Messages go nowhere for `durationMs`: from one process to another (half-open: the way back works), from or to anybody
   * (its connection is dropped, or is half-open) where an end is left out.
   */
  cut(ends: { readonly from?: SimProcess; readonly to?: SimProcess }, durationMs: number): void {
    this.world.tell(
      () =>
        `network: nothing goes from ${ends.from?.name ?? 'anybody'} to ${ends.to?.name ?? 'anybody'} for ${durationMs.toFixed(0)} ms`,
    )
    this.#cuts.push({ from: ends.from, to: ends.to, untilMs: this.world.nowMs + durationMs })
  }

  /** Ends all trouble. */
  calm(): void {
    this.weather.calm()
    this.#cuts.length = 0
    this.#downUntilMs = 0
  }

  #subscribe(process: SimProcess, subject: string, label: string): Inbox {
    const activeFromMs = this.world.nowMs + this.#random.between(0, subscribeMsMax)
    const inbox = new Inbox(process, label, activeFromMs)
    const inboxes = this.#subscriptions.get(subject) ?? new Set()
    this.#subscriptions.set(subject, inboxes.add(inbox))
    return inbox
  }

  #unsubscribe(subject: string, inbox: Inbox): void {
    inbox.open = false
    this.#subscriptions.get(subject)?.delete(inbox)
  }

  #listening(subject: string): readonly Inbox[] {
    const inboxes = this.#subscriptions.get(subject)
    if (inboxes === undefined) return []
    for (const inbox of inboxes) if (!inbox.process.alive) this.#unsubscribe(subject, inbox)
    return [...inboxes]
  }

  #port(process: SimProcess, own: Inbox, other: Inbox): DatagramPort {
    return {
      send: (message) => {
        if (process.alive && own.open) this.#carry(process, other, structuredClone(message), 0, structuredClone)
      },
      onMessage: (callback) => void (own.onMessage = callback as (message: never) => void),
      close: () => void (own.open = false),
    }
  }

  /** `message` belongs to the network already; each further delivery gets a copy of its own. */
  #carry<T>(from: SimProcess, inbox: Inbox, message: T, content: number, copy: (message: T) => T): void {
    this.world.note(inbox.label, content)
    if (this.#loses(from, inbox)) return
    if (this.#random.chance(this.weather.level('repetition'))) {
      this.weather.count('repetition')
      this.#deliver(from, inbox, copy(message))
    }
    if (this.#random.chance(this.weather.level('echo'))) {
      this.weather.count('echo')
      const echo = copy(message)
      const inMs = from.wakesInMs + Math.min(echoMsMax, this.#random.exponential(echoMsMean))
      const arrive = (): void => {
        if (inbox.open) inbox.onMessage(echo as never)
      }
      this.world.after(inMs, `echo: ${inbox.label}`, arrive, { owner: inbox.process })
    }
    this.#deliver(from, inbox, message)
  }

  #loses(from: SimProcess, inbox: Inbox): boolean {
    const nowMs = this.world.nowMs
    if (inbox.activeFromMs > nowMs || nowMs < this.#downUntilMs) return true
    for (let index = this.#cuts.length - 1; index >= 0; index--) {
      const cut = this.#cuts[index]!
      if (cut.untilMs <= nowMs) this.#cuts.splice(index, 1)
      else if ((cut.from ?? from) === from && (cut.to ?? inbox.process) === inbox.process) {
        this.weather.count('cut')
        return true
      }
    }
    if (!this.#random.chance(this.weather.level('loss'))) return false
    this.weather.count('loss')
    return true
  }

  #deliver(from: SimProcess, inbox: Inbox, message: unknown): void {
    let delayMs = from.wakesInMs + this.#random.exponential(latencyMsMean)
    const delayMeanMs = this.weather.level('delay')
    if (delayMeanMs > 0) {
      this.weather.count('delay')
      delayMs += this.#random.exponential(delayMeanMs)
    }
    const era = this.#era
    const arrive = (): void => {
      if (inbox.open && era === this.#era) inbox.onMessage(message as never)
    }
    const place = { owner: inbox.process, lane: inbox.laneFrom(from) }
    if (this.#random.chance(this.weather.level('reordering'))) {
      this.weather.count('reordering')
      this.world.after(delayMs, inbox.label, arrive, { owner: inbox.process })
    } else this.world.after(delayMs, inbox.label, arrive, place)
  }
}

/** Where messages of one subscription or port arrive. */
class Inbox {
  readonly process: SimProcess
  readonly label: string
  readonly activeFromMs: number
  open = true
  onMessage: (message: never) => void = () => undefined
  /** One publisher's messages to one subscriber keep their order. */
  readonly #lanes = new Map<SimProcess, Lane>()

  constructor(process: SimProcess, label: string, activeFromMs: number) {
    this.process = process
    this.label = label
    this.activeFromMs = activeFromMs
  }

  laneFrom(sender: SimProcess): Lane {
    let lane = this.#lanes.get(sender)
    if (lane === undefined) {
      lane = new Lane()
      this.#lanes.set(sender, lane)
    }
    return lane
  }
}

const copyOfBytes = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes)
