// Slots as simulated processes, for one coordinator: started on machines of the seed's choice, linked over the network, ended on the
// coordinator's word or, where nobody can reach them, not at all. They end with their coordinator; for those that outlive it see workers.ts.

import type { SlotId } from '../../base/ids.ts'
import type { ControlLink, FromSlot, SlotProvider, SlotStart, ToSlot } from '../../control/contract.ts'
import type { SimProcess } from '../process.ts'
import type { SeededRandom } from '../random.ts'

export interface SimSlotsOptions {
  readonly coordinator: SimProcess
  readonly random: SeededRandom
  /** The chance that a slot which is to be ended cannot be reached: it goes on until its control link is lost. */
  readonly zombies: number
  /** How long the end of a slot's process stays unknown to the coordinator, ms: a reset connection, or missed heartbeats. */
  readonly lossNoticeMs: () => number
  /** A process for a slot; it begins to run in a later step. */
  readonly spawn: (slot: SlotId, start: SlotStart) => SpawnedSlot
}

export interface SpawnedSlot {
  readonly process: SimProcess
  /** The coordinator's end. */
  readonly link: ControlLink<ToSlot, FromSlot>
}

export class SimSlots implements SlotProvider {
  readonly #options: SimSlotsOptions
  readonly #running = new Map<SlotId, SimProcess>()

  constructor(options: SimSlotsOptions) {
    this.#options = options
  }

  start(slot: SlotId, start: SlotStart): ControlLink<ToSlot, FromSlot> {
    const { coordinator, spawn, lossNoticeMs } = this.#options
    const { process, link } = spawn(slot, start)
    this.#running.set(slot, process)
    let over = false
    let onLost: ((reason: string) => void) | undefined
    const lose = (reason: string): void => {
      if (over) return
      over = true
      link.close()
      onLost?.(reason)
    }
    process.onExit(undefined, (reason) => {
      coordinator.world.after(lossNoticeMs(), `loss of ${process.name}`, () => lose(`it is gone: ${reason}`), {
        owner: coordinator,
      })
    })
    link.onLost(lose)
    return {
      send: (message) => link.send(message),
      onMessage: (callback) => link.onMessage(callback),
      onLost: (callback) => void (onLost = callback),
      close: () => {
        over = true
        link.close()
      },
    }
  }

  async terminate(slot: SlotId): Promise<void> {
    const { coordinator, random, zombies } = this.#options
    const process = this.#running.get(slot)
    if (process === undefined || !process.alive) return
    const done = coordinator.completion<void>(`the end of ${process.name}`)
    done.settle(random.exponential(2), () => undefined)
    if (random.chance(zombies)) coordinator.world.tell(() => `${process.name} cannot be reached and goes on`)
    else process.kill('ended by its coordinator')
    await done.promise
  }
}
