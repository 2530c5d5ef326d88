// Sees each record as it is read, and whether that was allowed: not before all subtasks of the job had restored, that is before a coordinator
// has said that all run while this slot was there.

import type { SimProcess } from '../process.ts'

export class BeginWatch {
  readonly #begun = new WeakSet<SimProcess>()
  readonly #early = new Set<SimProcess>()
  readonly #fail: (what: string) => void

  constructor(fail: (what: string) => void) {
    this.#fail = fail
  }

  /** A coordinator says that all subtasks run; these are the slots of now. */
  allRun(slots: Iterable<SimProcess>): void {
    for (const slot of slots) this.#begun.add(slot)
  }

  /** Called for each record that the slot reads. */
  handle(slot: SimProcess): () => void {
    return () => {
      if (this.#begun.has(slot) || this.#early.has(slot)) return
      this.#early.add(slot)
      this.#fail(`${slot.name} read a record before all subtasks had restored`)
    }
  }
}
