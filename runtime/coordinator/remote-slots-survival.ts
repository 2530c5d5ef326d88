// The wait for slots that outlived the coordinator before (rule 25): until enough have registered, or nobody is waited for any longer.

import type { SlotId } from '../base/ids.ts'
import type { SurvivingSlot, SurvivorsOptions } from '../control/contract.ts'

export class Survival {
  readonly result: Promise<readonly SurvivingSlot[]>
  readonly #resolve: (slots: readonly SurvivingSlot[]) => void
  readonly #options: Pick<SurvivorsOptions, 'enough' | 'slotsNeeded'>
  readonly #slots = new Map<SlotId, SurvivingSlot>()
  over = false
  /** Room for the whole job means from now on that nobody else is to be expected: who had a slot could be back. */
  roomIsEnough = false

  constructor(options: Pick<SurvivorsOptions, 'enough' | 'slotsNeeded'>) {
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<readonly SurvivingSlot[]>()
    this.result = promise
    this.#resolve = resolve
  }

  /** `pending`: slots that have yet to report. */
  isEnough({ slotsOffered, pending }: { readonly slotsOffered: number; readonly pending: boolean }): boolean {
    const { enough, slotsNeeded } = this.#options
    return enough([...this.#slots.values()]) || (this.roomIsEnough && slotsOffered >= slotsNeeded && !pending)
  }

  add(slot: SurvivingSlot): void {
    this.#slots.set(slot.slot, slot)
  }

  lost(slot: SlotId): void {
    this.#slots.delete(slot)
  }

  end(): void {
    this.over = true
    this.#resolve([...this.#slots.values()])
  }
}
