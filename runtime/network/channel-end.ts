// What both ends of a remote channel need: who they are, how they send, and their timer.

import type { Environment, Timer } from '../base/environment.ts'
import type { MetricGroup } from '../base/metrics.ts'
import { formatAttempt, formatChannel } from '../base/ids.ts'
import type { MillraceError } from '../base/errors.ts'
import type { TypeInfo } from '../record/contract.ts'
import type { FrameTransport, PeerAddress } from './contract.ts'
import { networkError } from './errors.ts'
import type { ChannelFailure } from './errors.ts'
import { encodeFrame } from './frame.ts'
import type { ChannelMessage, FrameRoute } from './frame.ts'

export interface ChannelEndOptions {
  readonly route: FrameRoute
  readonly peer: PeerAddress
  readonly type: TypeInfo<unknown>
  readonly transport: FrameTransport
  readonly environment: Environment
  readonly deadlineMs: number
  readonly metrics: MetricGroup | undefined
  /** The channel is broken for good: the subtask must restart. Called once. */
  readonly fail: (error: MillraceError) => void
}

/** A machine as its shell sees it. */
interface Machine {
  readonly outbox: ChannelMessage[]
  readonly failure: ChannelFailure | undefined
  readonly wakeAtMs: number | undefined
  tick(nowMs: number): void
}

/** Carries out what a machine wants: its messages, its failure, its next tick. */
export class ChannelEnd {
  readonly options: ChannelEndOptions
  readonly #machine: Machine
  readonly #afterTick: () => void
  #timer: Timer | undefined
  #closed = false
  #failed = false

  constructor(options: ChannelEndOptions, machine: Machine, afterTick: () => void) {
    this.options = options
    this.#machine = machine
    this.#afterTick = afterTick
  }

  get closed(): boolean {
    return this.#closed
  }

  get nowMs(): number {
    return this.options.environment.clock.nowMs()
  }

  /** To be called after every call of the machine. */
  carryOut(): void {
    const { outbox } = this.#machine
    if (this.#closed) outbox.length = 0
    for (const message of outbox) this.#send(message)
    outbox.length = 0
    if (this.#machine.failure !== undefined) this.#fail(this.#machine.failure)
    this.#arm()
  }

  close(): void {
    this.#closed = true
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #send(message: ChannelMessage): void {
    const { transport, peer, route } = this.options
    transport.send(peer, encodeFrame(route, message))
  }

  #fail(failure: ChannelFailure): void {
    if (this.#failed || this.#closed) return
    this.#failed = true
    const { route, fail } = this.options
    const attempts = `${formatAttempt(route.producerAttempt)} to ${formatAttempt(route.consumerAttempt)}`
    fail(networkError(failure.code, `${failure.detail} Channel ${formatChannel(route.channel)}, attempts ${attempts}.`))
  }

  /** One timer at a time: one that comes too early only looks and is set again. */
  #arm(): void {
    const wakeAtMs = this.#machine.wakeAtMs
    if (wakeAtMs === undefined || this.#timer !== undefined || this.#closed) return
    this.#timer = this.options.environment.clock.timer(Math.max(0, wakeAtMs - this.nowMs), () => {
      this.#timer = undefined
      if (this.#closed) return
      this.#machine.tick(this.nowMs)
      this.carryOut()
      this.#afterTick()
    })
  }
}
