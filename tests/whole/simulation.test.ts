// Whole jobs under the seeded simulation: each seed draws a job, its processes and what befalls them, and the ledger judges. More
// seeds: `npm run sim -- --seeds N`.

import { describe, expect, it } from 'vitest'
import { numbersTo, runJobSeeds } from '../support/job-seeds.ts'

const seedsOfEachRun = 20

describe('a simulated job', () => {
  it(`is exact, and comes to its end, under each of ${seedsOfEachRun} seeds, whose traces are the same alone and after others`, async () => {
    const reports = await runJobSeeds({ seeds: numbersTo(seedsOfEachRun) })
    expect(reports.flatMap(({ seed, failures }) => failures.map((failure) => `seed ${seed}: ${failure}`))).toEqual([])
    expect(reports.length).toBe(seedsOfEachRun)
    // The runner has compared the last of each batch; this one stood in the middle.
    const middle = reports[Math.floor(seedsOfEachRun / 4)]!
    const [alone] = await runJobSeeds({ seeds: [middle.seed] })
    expect(alone?.trace).toBe(middle.trace)
  })
})
