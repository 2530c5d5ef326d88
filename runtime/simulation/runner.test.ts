import { describe, expect, it } from 'vitest'
import { runSeeds } from './runner.ts'
import type { RunOptions } from './runner.ts'
import { scenario as counter } from './scenarios/counter.ts'
import { runSeed } from './seed.ts'
import type { SeedReport } from './seed.ts'

const none = { planted: new Set<never>() }

async function run(file: string, options: Partial<RunOptions>): Promise<SeedReport[]> {
  return runSeeds({
    scenario: new URL(file, import.meta.url).href,
    seeds: [1, 2, 3],
    planted: [],
    processes: 2,
    untilFirstFailure: false,
    onReport: () => undefined,
    ...options,
  })
}

describe('the same seed', () => {
  it('gives the same trace alone and after others, and another seed gives another', async () => {
    const alone = await runSeed(counter, 5, none)
    const traces = new Set<string>()
    for (let seed = 1; seed <= 5; seed++) traces.add((await runSeed(counter, seed, none)).trace)
    expect(traces.size).toBe(5)
    expect([...traces].at(-1)).toBe(alone.trace)
  })

  it('gives the same trace whether its story is told or not', async () => {
    const lines: string[] = []
    const told = await runSeed(counter, 6, { ...none, story: (line) => lines.push(line) })
    expect(told.trace).toBe((await runSeed(counter, 6, none)).trace)
    expect(lines.join('\n')).toMatch(/faults stop/)
  })
})

describe('runner', () => {
  it('passes honest seeds in processes of their own, with the guard on', async () => {
    const reports = await run('scenarios/counter.ts', { seeds: [1, 2, 3, 4, 5, 6] })
    expect(reports.map(({ seed, failures }) => ({ seed, failures }))).toEqual(
      [1, 2, 3, 4, 5, 6].map((seed) => ({ seed, failures: [] })),
    )
    expect(reports[3]?.trace).toBe((await runSeed(counter, 4, none)).trace)
  })

  it('stops a planted fault at its first catch', async () => {
    const seeds = Array.from({ length: 60 }, (_, index) => index + 1)
    const reports = await run('scenarios/counter.ts', {
      seeds,
      planted: ['commit-before-swap'],
      untilFirstFailure: true,
    })
    const failed = reports.filter(({ failures }) => failures.length > 0)
    expect(failed.length).toBe(1)
    expect(reports.length).toBeLessThan(60)
  })

  it('reports a seed that never ends, one whose process dies, one that throws and one that reaches around, and goes on with the rest', async () => {
    const reports = await run('testdata/broken-scenario.ts', { seeds: [1, 2, 3, 4, 5], seedDeadlineMs: 4_000 })
    expect(reports.map(({ failures }) => failures.join(' ').split('\n')[0])).toEqual([
      expect.stringContaining('did not end within 4000 ms of real time'),
      expect.stringContaining('its process ended with 7'),
      expect.stringContaining('The scenario threw: Error: on purpose'),
      expect.stringContaining('Date.now reaches around the simulation'),
      'Nothing failed in this run, so it shows nothing.',
    ])
  })

  it('notices what leaks from one world into the next', async () => {
    const reports = await run('testdata/leaking-scenario.ts', { seeds: [1, 2, 3], processes: 1 })
    expect(reports.map(({ failures }) => failures.length)).toEqual([0, 0, 1])
    expect(reports[2]?.failures[0]).toMatch(/Alone in a fresh process its trace is/)
  })
})
