// Fires timers in slices, and forwards a watermark behind its last timer (design: Time; protocol rule 27).

import type { Clock, Timer } from '../base/environment.ts'
import type { PlantedFault } from '../base/planted.ts'
import { MIN_WATERMARK } from '../record/element.ts'
import type { DueTimer, KeyedStateBackend } from '../state/contract.ts'
import type { OperatorChain } from './operator-chain.ts'

export interface TimerFiringOptions {
  readonly keyed: KeyedStateBackend | undefined
  readonly chain: OperatorChain
  readonly clock: Clock
  /** Between two timers: firing stops for the budget and without credit, like reading. */
  readonly mayGoOn: () => boolean
  readonly wake: () => void
  readonly planted?: ReadonlySet<PlantedFault>
}

export class TimerFiring {
  readonly #options: TimerFiringOptions
  #watermark = MIN_WATERMARK
  /** Timers up to #watermark are still to fire, and it is still to be forwarded. */
  #advancing = false
  /** Rule 27: timers that were due in a block's own time before the snapshot. */
  #overdue = false
  /** The input turned idle while timers were still to fire. */
  #idleBehind = false
  #armed: { readonly timer: Timer; readonly atMs: number } | undefined

  constructor(options: TimerFiringOptions) {
    this.#options = options
  }

  /** Nothing may be read until these have fired. */
  get busy(): boolean {
    return this.#advancing || this.#overdue
  }

  get processingDue(): boolean {
    const next = this.#options.keyed?.nextTimer('processing')
    return next !== undefined && next <= this.#options.clock.wallMs()
  }

  /** After a restore: each block's timers up to its own watermark come first, then the smallest watermark is forwarded. */
  restored(): void {
    const { keyed } = this.#options
    if (keyed === undefined) return
    // Also when the smallest is none at all: after a rescale another block of the range may have been further.
    this.#overdue = true
    this.#watermark = keyed.restoredWatermark
    this.#options.chain.setHeadWatermark(this.#watermark)
  }

  advanceTo(watermark: number): void {
    // What was forwarded stays: after a restore the inputs begin again from nothing.
    if (watermark <= this.#watermark) return
    this.#watermark = watermark
    this.#advancing = true
    this.#options.keyed?.setWatermark(watermark)
    this.#options.chain.setHeadWatermark(watermark)
  }

  /** What was in flight when the input turned idle has arrived by now, perhaps. */
  settleIdleness(): void {
    if (this.#idleBehind && !this.busy) this.idleness(true)
  }

  /**
   * Idle goes out behind the last timer and its watermark, and behind what is in flight: a record that came behind it would meet a watermark that no longer waits
   * for this channel, and be late. Active goes out at once, before any record.
   */
  idleness(idle: boolean): void {
    if (idle && (this.busy || this.#options.chain.pending)) this.#idleBehind = true
    else {
      this.#idleBehind = false
      this.#options.chain.forwardStatus(idle)
    }
  }

  fire(): void {
    const { keyed, chain, mayGoOn } = this.#options
    if (keyed === undefined) return this.#passOn()
    // Each call gets on by something, also in a slice that is over before it began.
    const first = !this.busy
    if (this.#overdue) {
      if (this.#options.planted?.has('timer-lost-between-two')) while (keyed.takeOverdueOfRestore() !== undefined);
      if (!this.#drain(() => keyed.takeOverdueOfRestore())) return
      this.#overdue = false
      keyed.setWatermark(this.#watermark)
      if (this.#watermark > MIN_WATERMARK) chain.forwardWatermark(this.#watermark)
    }
    if (this.#advancing) {
      if (!this.#drain(() => keyed.takeDue('event', this.#watermark))) return
      this.#passOn()
    }
    if (first || mayGoOn()) this.#drain(() => keyed.takeDue('processing', this.#options.clock.wallMs()))
  }

  /** Wakes the task when the next processing-time timer is due. */
  arm(): void {
    const { keyed, clock, wake } = this.#options
    const next = keyed?.nextTimer('processing')
    if (next === this.#armed?.atMs) return
    this.#armed?.timer.cancel()
    this.#armed = undefined
    if (next === undefined) return
    const timer = clock.timer(Math.max(0, next - clock.wallMs()), () => {
      this.#armed = undefined
      wake()
    })
    this.#armed = { timer, atMs: next }
  }

  close(): void {
    this.#armed?.timer.cancel()
  }

  #passOn(): void {
    this.#advancing = false
    this.#options.chain.forwardWatermark(this.#watermark)
    if (this.#idleBehind) this.idleness(true)
  }

  /** True when none is left. */
  #drain(take: () => DueTimer | undefined): boolean {
    const { chain, mayGoOn } = this.#options
    for (;;) {
      const timer = take()
      if (timer === undefined) return true
      chain.head!.onTimer!(timer)
      if (!mayGoOn()) return false
    }
  }
}
