// Faults that a plan which knows nothing of the job rarely hits: those that meet the moment for which a job's shape was made.

import type { SeededRandom } from '../random.ts'
import type { World } from '../world.ts'
import type { JobCluster } from './cluster.ts'
import type { JobShape } from './shape.ts'

export class AimedFaults {
  readonly counts: Record<string, number> = {}
  readonly #world: World
  readonly #cluster: JobCluster
  readonly #random: SeededRandom
  #calm = false

  constructor(world: World, shape: JobShape, cluster: JobCluster) {
    this.#world = world
    this.#cluster = cluster
    this.#random = world.random.split('aimed faults')
    // A source without a chance to emit, while others go on: called idle, its records would be late.
    if (shape.flow === 'idle windows')
      for (let stall = 0; stall < 3; stall++) this.#at(this.#random.between(500, 5_000), 'stall', () => this.#stall())
    // While the sources have ended, and what they sent is still being worked through.
    if (shape.sudden) {
      this.#at(this.#random.between(100, 600), 'kill in the drain', () => this.#kill())
      this.#killAfterCompleted(1 + this.#random.below(3))
    }
    // Between a savepoint and the next checkpoint: what it holds is neither committed by it nor what the job goes on from.
    if (shape.savepoints > 0 && this.#random.chance(0.6))
      this.#killAfterSavepoint(1 + this.#random.below(shape.savepoints))
    const moves = world.random.split('moves')
    if (moves.chance(0.2)) this.#at(moves.between(500, 8_000), 'move', () => this.#cluster.move())
    if (this.#random.chance(0.2))
      this.#at(this.#random.between(500, 8_000), 'second coordinator', () => this.#cluster.startAnother())
  }

  stop(): void {
    this.#calm = true
  }

  #at(delayMs: number, kind: string, strike: () => boolean): void {
    this.#world.after(delayMs, kind, () => {
      if (!this.#calm && strike()) this.counts[kind] = (this.counts[kind] ?? 0) + 1
    })
  }

  /** When so many checkpoints have completed: the newest one is what the job goes on from. */
  #killAfterCompleted(checkpoints: number): void {
    this.#world.after(10, 'looking for a checkpoint', () => {
      if (this.#calm) return
      if (this.#cluster.history.completed.size < checkpoints) this.#killAfterCompleted(checkpoints)
      else this.#at(this.#random.between(0, 100), 'kill in the drain', () => this.#kill())
    })
  }

  #killAfterSavepoint(savepoints: number): void {
    this.#world.after(10, 'looking for a savepoint', () => {
      if (this.#calm) return
      if (this.#cluster.savepoints.count < savepoints) this.#killAfterSavepoint(savepoints)
      else
        this.#at(this.#random.between(0, 150), 'kill after a savepoint', () => this.#kill('killed after a savepoint'))
    })
  }

  #stall(): boolean {
    const slots = this.#cluster.slots()
    if (slots.length === 0) return false
    this.#random.pick(slots).freeze(this.#random.between(300, 2_000))
    return true
  }

  #kill(why = 'killed in the drain'): boolean {
    const processes = this.#cluster.processes()
    if (processes.length === 0) return false
    this.#random.pick(processes).kill(why)
    return true
  }
}
