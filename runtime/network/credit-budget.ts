// The credit that one receiving connection gives to all its channels (rule 9).
//
// Half of the budget is given away at most: so no set of channels, blocked ones included, ever holds more than half, whatever
// becomes blocked after its credit was given (credit cannot be taken back). The other half is for what is on the wire beside
// it: frames sent again after a loss. Each channel always has its reserve; what goes beyond comes from the pool, as far
// as the channel's fair share goes.

import { invariant } from '../base/errors.ts'
import { networkError } from './errors.ts'
import { CREDIT_BYTES_MAX, FRAGMENT_BYTES, WINDOW_BYTES_MAX } from './limits.ts'

export class CreditBudget {
  readonly #grantableBytes: number
  #channels = 0
  /** Bytes that channels hold beyond their reserves. */
  #extraBytes = 0

  constructor(totalBytes = CREDIT_BYTES_MAX) {
    this.#grantableBytes = Math.floor(totalBytes / 2)
  }

  /** Throws MR-W05 when not even the reserves of all channels fit. */
  open(): CreditAccount {
    if ((this.#channels + 1) * FRAGMENT_BYTES > this.#grantableBytes)
      throw networkError('MR-W05', `${this.#channels} channels share ${this.#grantableBytes} bytes.`)
    this.#channels++
    return new CreditAccount(this)
  }

  /** Bytes one channel should be able to have outstanding now. */
  get windowBytes(): number {
    const share = Math.floor(this.#grantableBytes / Math.max(1, this.#channels))
    return Math.max(FRAGMENT_BYTES, Math.min(WINDOW_BYTES_MAX, share))
  }

  /** For an account that holds `heldBytes`: how much it may hold from now on. */
  take(heldBytes: number): number {
    const own = extra(heldBytes)
    const free = this.#grantableBytes - this.#channels * FRAGMENT_BYTES - this.#extraBytes + own
    const granted = Math.max(heldBytes, FRAGMENT_BYTES + Math.min(this.windowBytes - FRAGMENT_BYTES, Math.max(0, free)))
    this.#extraBytes += extra(granted) - own
    return granted
  }

  give(heldBefore: number, heldAfter: number): void {
    this.#extraBytes -= extra(heldBefore) - extra(heldAfter)
    invariant(this.#extraBytes >= 0, `${this.#extraBytes} bytes of credit are held`)
  }

  leave(heldBytes: number): void {
    this.give(heldBytes, 0)
    this.#channels--
  }
}

/** One channel's part. Bytes count whole frames, from the channel's beginning. */
export class CreditAccount {
  /** The producer may have sent this many bytes. */
  limit = 0
  #consumed = 0
  #open = true
  readonly #budget: CreditBudget

  constructor(budget: CreditBudget) {
    this.#budget = budget
  }

  get windowBytes(): number {
    return this.#budget.windowBytes
  }

  /** Given and not yet consumed. */
  get heldBytes(): number {
    return this.limit - this.#consumed
  }

  consume(byteCount: number): void {
    if (!this.#open) return
    const held = this.heldBytes
    invariant(byteCount <= held, `consumed ${byteCount} bytes of ${held}`)
    this.#consumed += byteCount
    this.#budget.give(held, held - byteCount)
  }

  /** Raises the limit as far as the budget allows; it never falls. */
  extend(): void {
    if (this.#open) this.limit = this.#consumed + this.#budget.take(this.heldBytes)
  }

  close(): void {
    if (!this.#open) return
    this.#open = false
    this.#budget.leave(this.heldBytes)
  }
}

function extra(heldBytes: number): number {
  return Math.max(0, heldBytes - FRAGMENT_BYTES)
}
