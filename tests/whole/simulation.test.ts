// Whole jobs under the seeded simulation: each seed draws a job, its processes and what befalls them, and the ledger judges. More
// seeds: `npm run sim -- --seeds N`.

import { describe, expect, it } from 'vitest'
import { plantedFaults } from '../../runtime/base/planted.ts'
import type { PlantedFault } from '../../runtime/base/planted.ts'
import { runSeeds } from '../../runtime/simulation/runner.ts'
import type { RunOptions } from '../../runtime/simulation/runner.ts'
import type { SeedReport } from '../../runtime/simulation/seed.ts'

const scenario = new URL('../../runtime/simulation/scenarios/job.ts', import.meta.url).href
const seedsOfEachRun = 20
/** A planted fault must be caught within so many seeds. */
const seedsToCatch = 200

/** Which have caught it last: tried first, since most runs end there. Any other may do it as well. */
const tellingSeeds: Readonly<Record<PlantedFault, readonly number[]>> = {
  'no-fence': [1],
  'alignment-skipped': [10],
  'commit-before-swap': [5],
  'frame-not-resent': [2],
  'ids-reused': [1],
  'finished-producer-counted-early': [23],
  'idle-by-backpressure': [62],
  'neighbour-key-group': [1],
  'async-element-lost': [3],
  'savepoint-subsumes': [11],
  'timer-lost-between-two': [37],
  'watermark-restored-too-high': [175],
  'stop-barrier-leaks': [26],
  'item-dealt-twice': [26],
  'reconcile-skipped': [19],
  'given-up-adopted': [78],
  'final-state-forgotten': [81],
  'complete-repeated-too-high': [52],
  'rescale-keeps-old-size': [18],
  'bound-readers-ignored': [23],
  'stale-coordinator-terminates': [19],
}

function run(options: Partial<RunOptions>): Promise<SeedReport[]> {
  const seeds = numbersTo(seedsOfEachRun)
  return runSeeds({
    scenario,
    seeds,
    planted: [],
    processes: 2,
    untilFirstFailure: false,
    onReport: () => undefined,
    ...options,
  })
}

function numbersTo(last: number): number[] {
  return Array.from({ length: last }, (_, index) => index + 1)
}

describe('a simulated job', () => {
  it(`is exact, and comes to its end, under each of ${seedsOfEachRun} seeds, whose traces are the same alone and after others`, async () => {
    const reports = await run({})
    expect(reports.flatMap(({ seed, failures }) => failures.map((failure) => `seed ${seed}: ${failure}`))).toEqual([])
    expect(reports.length).toBe(seedsOfEachRun)
    // The runner has compared the last of each batch; this one stood in the middle.
    const middle = reports[Math.floor(seedsOfEachRun / 4)]!
    const [alone] = await run({ seeds: [middle.seed] })
    expect(alone?.trace).toBe(middle.trace)
  })
})

describe('the simulation catches, within 200 seeds,', () => {
  it.each(plantedFaults)('the planted fault %s', async (fault) => {
    const first = tellingSeeds[fault]
    const seeds = [...first, ...numbersTo(seedsToCatch).filter((seed) => !first.includes(seed))].slice(0, seedsToCatch)
    const reports = await run({ seeds, planted: [fault], untilFirstFailure: true })
    expect(reports.filter(({ failures }) => failures.length > 0).length).toBeGreaterThan(0)
  })
})
