// Carries out what WorkerAgent decides: the connection, the slots, the end.

import { within } from '../base/deadline.ts'
import type { Environment, Timer } from '../base/environment.ts'
import { MillraceError } from '../base/errors.ts'
import type { Incarnation, SlotId } from '../base/ids.ts'
import type { SlotStart } from '../control/contract.ts'
import type { MessageConnection } from '../control/worker-contract.ts'
import { readToWorker } from '../control/worker-wire.ts'
import { WorkerAgent } from '../worker/agent.ts'
import { agentError } from '../worker/agent-errors.ts'
import type { AgentEffect, AgentOptions } from '../worker/agent.ts'

/** At the end of the process, ms: what has not ended by then does not, and the process can be killed alone. */
const closeMsMax = 5_000

/** Where a worker's slots run. */
export interface SlotHost {
  start(slot: SlotId, start: SlotStart): void
  /** A new link to this incarnation. */
  attach(slot: SlotId, incarnation: Incarnation): void
  /** Its coordinator is lost, and its link with it. */
  detach(slot: SlotId, reason: string): void
  /** Ends its thread; onEnded tells. Code that blocks in a native call is not interrupted: then nothing tells. */
  terminate(slot: SlotId): void
  /** Once for each slot that was started, whatever ended it. */
  onEnded(callback: (slot: SlotId, reason: string) => void): void
  /**
   * A slot's present link was lost, and not by detach() or terminate(): the slot has found its peer gone, or has to say what the link cannot carry.
   * One that dies by itself may close its link first.
   */
  onLinkLost(callback: (slot: SlotId, reason: string) => void): void
  /** Ends them all. */
  close(): Promise<void>
}

export interface WorkerShellOptions {
  readonly agent: Omit<AgentOptions, 'random' | 'nowMs' | 'planted'>
  readonly environment: Environment
  readonly dial: (handlers: {
    readonly onOpen: (connection: MessageConnection) => void
    readonly onFailed: (reason: string) => void
  }) => { giveUp(): void }
  readonly slots: SlotHost
}

export interface WorkerEnd {
  readonly reason: string
  /** undefined: it ended well. */
  readonly error: MillraceError | undefined
  /** Another try would end in the same way. */
  readonly final: boolean
  /** A thread does not end. Only killing ends this process then: its own exit would wait for the thread. */
  readonly hangs?: true
}

export class WorkerShell {
  readonly ended: Promise<WorkerEnd>
  readonly #options: WorkerShellOptions
  readonly #agent: WorkerAgent
  readonly #resolve: (end: WorkerEnd) => void
  #attempt: { giveUp(): void } | undefined
  #connection: MessageConnection | undefined
  #timer: Timer | undefined
  #carryingOut = false

  constructor(options: WorkerShellOptions) {
    this.#options = options
    const { environment, slots } = options
    const { promise, resolve } = Promise.withResolvers<WorkerEnd>()
    this.ended = promise
    this.#resolve = resolve
    const nowMs = environment.clock.nowMs()
    const { random, planted } = environment
    this.#agent = new WorkerAgent({ ...options.agent, random, planted, nowMs })
    slots.onEnded((slot, reason) => this.#happen(() => this.#agent.slotEnded(slot, reason)))
    slots.onLinkLost((slot, reason) => this.#happen(() => this.#agent.linkLost(slot, reason)))
    this.#happen(() => undefined)
  }

  /** It lets the coordinator in, and the coordinator it. */
  get isRegistered(): boolean {
    return this.#agent.isRegistered
  }

  get running(): readonly SlotId[] {
    return this.#agent.running
  }

  leave(graceMs: number): void {
    this.#happen((nowMs) => this.#agent.leave(graceMs, nowMs))
  }

  #happen(what: (nowMs: number) => void): void {
    what(this.#options.environment.clock.nowMs())
    if (this.#carryingOut) return
    this.#carryingOut = true
    try {
      for (let effect = this.#agent.effects.shift(); effect !== undefined; effect = this.#agent.effects.shift())
        this.#carryOut(effect)
    } finally {
      this.#carryingOut = false
    }
    this.#arm()
  }

  #arm(): void {
    this.#timer?.cancel()
    const { clock } = this.#options.environment
    const { wakeAtMs } = this.#agent
    if (wakeAtMs === undefined) return
    const delayMs = Math.max(0, wakeAtMs - clock.nowMs())
    this.#timer = clock.timer(delayMs, () => this.#happen((nowMs) => this.#agent.tick(nowMs)))
  }

  #carryOut(effect: AgentEffect): void {
    const { slots, environment } = this.#options
    switch (effect.type) {
      case 'connect':
        return this.#connect()
      case 'send':
        return this.#connection?.send(effect.message)
      case 'disconnect':
        return this.#disconnect()
      case 'startSlot':
        return slots.start(effect.slot, effect.start)
      case 'attachSlot':
        return slots.attach(effect.slot, effect.incarnation)
      case 'detachSlot':
        return slots.detach(effect.slot, effect.reason)
      case 'terminateSlot':
        return slots.terminate(effect.slot)
      case 'exit':
        return this.#end(effect)
      case 'log':
        return environment.log(effect.level, effect.message, effect.fields)
      default:
        return effect satisfies never
    }
  }

  #connect(): void {
    this.#attempt = this.#options.dial({
      onOpen: (connection) => this.#opened(connection),
      onFailed: (reason) => this.#happen((nowMs) => this.#agent.closed(reason, nowMs)),
    })
  }

  #opened(connection: MessageConnection): void {
    this.#attempt = undefined
    this.#connection = connection
    const isOurs = (): boolean => this.#connection === connection
    connection.onMessage((message) => {
      if (isOurs()) this.#happen((nowMs) => this.#receive(message, nowMs))
    })
    connection.onClosed((reason) => {
      if (!isOurs()) return
      this.#connection = undefined
      this.#happen((nowMs) => this.#agent.closed(reason, nowMs))
    })
    this.#happen((nowMs) => this.#agent.connected(nowMs))
  }

  #receive(value: unknown, nowMs: number): void {
    try {
      this.#agent.received(readToWorker(value), { nowMs, wallMs: this.#options.environment.clock.wallMs() })
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      this.#disconnect()
      this.#agent.closed(error.message, nowMs)
    }
  }

  #disconnect(): void {
    this.#attempt?.giveUp()
    this.#attempt = undefined
    const connection = this.#connection
    this.#connection = undefined
    connection?.close()
  }

  #end({ reason, error, final }: WorkerEnd): void {
    this.#disconnect()
    // Its threads are about to be gone with the process; whatever still fails there has nobody to tell.
    const { slots, environment } = this.#options
    const late = (): MillraceError => agentError('MR-D23', `The process ends ${closeMsMax / 1000} s after it was to.`)
    within(environment.clock, closeMsMax, slots.close(), late).then(
      () => this.#resolve({ reason, error, final }),
      (cause: unknown) => {
        environment.log('warn', 'a slot could not be ended', { error: String(cause) })
        this.#resolve({ reason, error, final, hangs: true })
      },
    )
  }
}
