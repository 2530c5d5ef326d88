// Seeds of the simulated job, for tests.

import { runSeeds } from '../../runtime/simulation/runner.ts'
import type { RunOptions } from '../../runtime/simulation/runner.ts'
import type { SeedReport } from '../../runtime/simulation/seed.ts'

const scenario = new URL('../../runtime/simulation/scenarios/job.ts', import.meta.url).href

export function runJobSeeds(options: Pick<RunOptions, 'seeds'> & Partial<RunOptions>): Promise<SeedReport[]> {
  return runSeeds({
    scenario,
    planted: [],
    processes: 2,
    untilFirstFailure: false,
    onReport: () => undefined,
    ...options,
  })
}

export function numbersTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1)
}
