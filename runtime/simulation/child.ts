// A process of its own that runs a batch of seeds with the guard on: started by runner.ts, told what to do by one message.

import type { PlantedFault } from '../base/planted.ts'
import { installGuard } from './guard.ts'
import type { ScenarioModule } from './scenario.ts'
import { runSeed } from './seed.ts'
import type { SeedReport } from './seed.ts'

export interface Batch {
  /** URL of the scenario's module. */
  readonly scenario: string
  readonly seeds: readonly number[]
  readonly planted: readonly PlantedFault[]
  /** Prints the story of each run. */
  readonly story: boolean
}

/** `line`: of the story. The parent prints it: writing to a file is refused here. */
export type FromChild = { readonly report: SeedReport } | { readonly line: string } | { readonly done: true }

process.once('message', (batch) => void runBatch(batch as Batch))

async function runBatch(batch: Batch): Promise<void> {
  // The scenario and all that it imports come before the guard, since loading a module reads files.
  const { scenario } = (await import(batch.scenario)) as ScenarioModule
  const refusals: string[] = []
  installGuard((refusal) => refusals.push(refusal))
  const planted = new Set(batch.planted)
  for (const seed of batch.seeds) {
    const story = batch.story ? { story: (line: string) => tell({ line }) } : {}
    tell({ report: await runSeed(scenario, seed, { planted, refusals, ...story }) })
  }
  tell({ done: true })
  process.disconnect()
}

function tell(message: FromChild): void {
  process.send?.(message)
}
