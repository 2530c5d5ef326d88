// What a scenario is: one run of something in a world of one seed, and a judgement.

import type { PlantedFault } from '../base/planted.ts'
import type { World } from './world.ts'

export interface ScenarioOptions {
  /** Faults planted on purpose; the same set as the world's, which processes get in their environment. */
  readonly planted: ReadonlySet<PlantedFault>
}

export interface ScenarioResult {
  /** What was wrong, a sentence each; none: the run passed. */
  readonly failures: readonly string[]
  /** Faults that really happened, by kind. A run in which nothing failed is red. */
  readonly faults: Readonly<Record<string, number>>
  /** What else is worth adding up over the seeds: records, checkpoints, restarts. */
  readonly figures?: Readonly<Record<string, number>>
}

/** First a phase with faults (safety), then faults stop and convergence is demanded within bounded virtual time (liveness). */
export type Scenario = (world: World, options: ScenarioOptions) => Promise<ScenarioResult>

/** A file in scenarios/ exports one. */
export interface ScenarioModule {
  readonly scenario: Scenario
}
