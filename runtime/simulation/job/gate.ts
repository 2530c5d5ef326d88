// When splits of a bounded source end: they hold no more records for a while, as a log to which nobody writes, until the scenario says
// that nothing will be written any more. So a job never finishes before enough has happened to it.

import type { SimProcess } from '../process.ts'
import type { World } from '../world.ts'

/** As one process sees it. */
export interface GateHandle {
  isOpen(split: number): boolean
  /** In a step of the process, once the gate is open. */
  onOpen(split: number, callback: () => void): void
}

export class Gate {
  readonly #world: World
  readonly #open = new Set<number>()
  #waiting: { readonly split: number; readonly process: SimProcess; readonly callback: () => void }[] = []

  constructor(world: World) {
    this.#world = world
  }

  open(split: number): void {
    this.#open.add(split)
    this.#world.tell(() => `split ${split} ends`)
    const waiting = this.#waiting
    this.#waiting = waiting.filter((one) => one.split !== split)
    for (const one of waiting) if (one.split === split) this.#tell(one.process, one.callback)
  }

  handle(process: SimProcess): GateHandle {
    return {
      isOpen: (split) => this.#open.has(split),
      onOpen: (split, callback) => {
        if (this.#open.has(split)) this.#tell(process, callback)
        else this.#waiting.push({ split, process, callback })
      },
    }
  }

  #tell(process: SimProcess, callback: () => void): void {
    this.#world.after(0, `end of a split for ${process.name}`, callback, { owner: process })
  }
}
