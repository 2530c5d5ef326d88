// The network's servers are away for a long time, and nothing else happens to the job.

import type { World } from '../world.ts'
import type { JobCluster } from './cluster.ts'

/** Below every deadline of links and channels, and above all of them. Virtual ms. */
const shortMs = 30_000
const longMs = 600_000
/** The job must not end before it is seen what became of it, virtual ms. */
const aftermathMs = 5_000
const lookMs = 50

export class Outage {
  readonly durationMs: number
  #over = false

  /** Begins once the job runs. */
  constructor(world: World, cluster: JobCluster) {
    this.durationMs = cluster.shape.trial === 'long outage' ? longMs : shortMs
    const inMs = world.random.split('outage').between(500, 4_000)
    const begin = (): void => {
      if (!cluster.runs) return void world.after(lookMs, 'looking whether the job runs', begin)
      cluster.network.restart(this.durationMs)
      world.after(this.durationMs + aftermathMs, 'the outage is over', () => void (this.#over = true))
    }
    world.after(inMs, 'looking whether the job runs', begin)
  }

  get exhausted(): boolean {
    return this.#over
  }
}
