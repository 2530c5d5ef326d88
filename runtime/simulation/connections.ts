// Direct connections between processes, with TCP's habits: whole messages in order, or a closed connection. The end of a process resets
// its connections, unless its host has lost power or nothing goes there: then nobody hears of it.

import type { MessageConnection } from '../control/worker-contract.ts'
import { Lane } from './pending.ts'
import type { SimNetwork } from './network.ts'
import type { SimProcess } from './process.ts'
import type { SeededRandom } from './random.ts'

const latencyMsMean = 0.2
/** What meets a cut is sent again so long after, ms. */
const resendMs = 200
/** A word that asks for a connection is repeated so long after, ms. */
const redialMs = 1_000

export interface DialHandlers {
  readonly onOpen: (connection: MessageConnection) => void
  readonly onFailed: (reason: string) => void
}

/** One address: whoever listens there, one of them when there are more. */
export class SimConnections {
  readonly #network: SimNetwork
  readonly #random: SeededRandom
  readonly #listeners = new Map<SimProcess, (connection: MessageConnection) => void>()
  readonly #open = new Set<Wire>()

  constructor(network: SimNetwork, random: SeededRandom) {
    this.#network = network
    this.#random = random
  }

  listen(process: SimProcess, accept: (connection: MessageConnection) => void): void {
    this.#listeners.set(process, accept)
    process.onExit(undefined, () => this.#listeners.delete(process))
  }

  /** One that is frozen is reached, and does not answer; one behind a cut is not reached. */
  dial(process: SimProcess, { onOpen, onFailed }: DialHandlers): { giveUp(): void } {
    const { world } = this.#network
    let givenUp = false
    const later = (delayMs: number, label: string, act: () => void): void => {
      world.after(process.wakesInMs + delayMs, label, () => !givenUp && act(), { owner: process })
    }
    const attempt = (): void => {
      const there = [...this.#listeners.keys()].filter(({ alive }) => alive)
      const latencyMs = this.#random.exponential(latencyMsMean)
      if (there.length === 0)
        return later(latencyMs, `${process.name} finds nobody`, () => onFailed('nobody listens there'))
      const listener = this.#random.pick(there)
      if (this.#network.isCut(process, listener) || this.#network.isCut(listener, process))
        return later(redialMs, `${process.name} dials again`, attempt)
      return later(latencyMs, `${process.name} connects`, () => {
        if (!listener.alive) return onFailed('nobody listens there')
        const wire = new Wire(this.#network, this.#random, [process, listener])
        this.#open.add(wire)
        const accept = this.#listeners.get(listener)!
        world.after(0, `${listener.name} accepts`, () => accept(wire.ends[1]), { owner: listener })
        return onOpen(wire.ends[0])
      })
    }
    attempt()
    return { giveUp: () => void (givenUp = true) }
  }

  /** The connections of these processes, or all, are reset. Answers how many. */
  reset(of: (process: SimProcess) => boolean = () => true): number {
    let count = 0
    for (const wire of this.#open) {
      if (wire.over) this.#open.delete(wire)
      else if (wire.processes.some(of)) {
        wire.reset()
        count++
      }
    }
    return count
  }
}

type Pair<T> = readonly [T, T]

/** One connection: two ends, and what is on its way to each. */
class Wire {
  readonly processes: Pair<SimProcess>
  readonly ends: Pair<End>
  readonly #network: SimNetwork

  constructor(network: SimNetwork, random: SeededRandom, processes: Pair<SimProcess>) {
    this.#network = network
    this.processes = processes
    const [dialer, listener] = processes
    const ends: Pair<End> = [
      new End(network, random, { at: dialer, peer: listener }),
      new End(network, random, { at: listener, peer: dialer }),
    ]
    ends[0].other = ends[1]
    ends[1].other = ends[0]
    this.ends = ends
    for (const [index, process] of processes.entries())
      process.onExit(undefined, () => {
        if (!process.lostPower) ends[index]!.die()
      })
  }

  get over(): boolean {
    return this.ends.every((end) => end.over)
  }

  reset(): void {
    const [dialer, listener] = this.processes
    this.#network.world.tell(() => `the connection of ${dialer.name} and ${listener.name} is reset`)
    for (const end of this.ends) end.finish('the connection was reset')
  }
}

class End implements MessageConnection {
  readonly address: string
  other!: End
  readonly #network: SimNetwork
  readonly #random: SeededRandom
  readonly #at: SimProcess
  readonly #peer: SimProcess
  /** On their way to the other end; the last one may be the end of it. */
  readonly #sent: ({ readonly message: unknown } | { readonly ended: string })[] = []
  readonly #received: unknown[] = []
  readonly #lane = new Lane()
  #moving = false
  /** This side sends nothing more. */
  #finished = false
  /** Its user closed it. */
  #closed = false
  #ended: string | undefined
  #onMessage: ((message: unknown) => void) | undefined
  #onClosed: ((reason: string) => void) | undefined

  constructor(network: SimNetwork, random: SeededRandom, { at, peer }: { at: SimProcess; peer: SimProcess }) {
    this.#network = network
    this.#random = random
    this.#at = at
    this.#peer = peer
    this.address = peer.machine.name
  }

  get over(): boolean {
    return this.#closed || this.#ended !== undefined || !this.#at.alive
  }

  send(message: unknown): void {
    if (this.#finished || this.over) return
    this.#sent.push({ message: structuredClone(message) })
    this.#move()
  }

  onMessage(callback: (message: unknown) => void): void {
    this.#onMessage = callback
    while (this.#received.length > 0 && !this.over) callback(this.#received.shift())
  }

  onClosed(callback: (reason: string) => void): void {
    this.#onClosed = callback
    if (this.#ended !== undefined && !this.#closed) callback(this.#ended)
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    this.finish('the other side closed the connection')
  }

  /** The other end hears of it behind what was sent before. */
  finish(reason: string): void {
    if (this.#finished) return
    this.#finished = true
    this.#sent.push({ ended: reason })
    this.#move()
  }

  /** Its process is gone: the kernel says so at once, also for one that was frozen with words on its way. */
  die(): void {
    if (this.#at.frozenUntilMs > this.#network.world.nowMs) {
      this.#sent.length = 0
      this.#moving = false
    }
    this.finish('the connection was reset')
    this.#move()
  }

  #move(): void {
    if (this.#moving || this.#sent.length === 0) return
    this.#moving = true
    const { world } = this.#network
    const delayMs = (this.#at.alive ? this.#at.wakesInMs : 0) + this.#random.exponential(latencyMsMean)
    world.after(delayMs, `words of ${this.#at.name}`, () => this.#arrive())
  }

  #arrive(): void {
    const { world } = this.#network
    if (this.#network.isCut(this.#at, this.#peer))
      return void world.after(resendMs, `words of ${this.#at.name}`, () => this.#arrive())
    // Whoever is frozen reads it when it wakes.
    for (const item of this.#sent.splice(0))
      world.after(0, `${this.#peer.name} reads`, () => this.other.#hear(item), {
        owner: this.#peer,
        lane: this.other.#lane,
      })
    this.#moving = false
  }

  #hear(item: { readonly message: unknown } | { readonly ended: string }): void {
    if (this.over) return
    if ('message' in item) {
      if (this.#onMessage === undefined) this.#received.push(item.message)
      else this.#onMessage(item.message)
      return
    }
    this.#ended = item.ended
    this.finish('the connection was closed')
    this.#onClosed?.(item.ended)
  }
}
