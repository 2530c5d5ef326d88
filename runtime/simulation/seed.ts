// Runs a scenario with one seed and judges the run.

import { InvariantError } from '../base/errors.ts'
import type { PlantedFault } from '../base/planted.ts'
import { GuardError } from './guard.ts'
import type { Scenario, ScenarioResult } from './scenario.ts'
import { World } from './world.ts'

/** Plain data: goes from a child process to its parent. */
export interface SeedReport {
  readonly seed: number
  /** None: passed. */
  readonly failures: readonly string[]
  /** Of the events' hash. */
  readonly trace: string
  readonly steps: number
  readonly virtualMs: number
  readonly faults: Readonly<Record<string, number>>
  readonly figures: Readonly<Record<string, number>>
}

export interface SeedOptions {
  readonly planted: ReadonlySet<PlantedFault>
  readonly story?: (line: string) => void
  /** What the guard refused so far; whatever is added during the run is a failure, even if the code under test caught it. */
  readonly refusals?: readonly string[]
}

export async function runSeed(scenario: Scenario, seed: number, options: SeedOptions): Promise<SeedReport> {
  const world = new World(seed, options)
  const refusals = options.refusals ?? []
  const refusedBefore = refusals.length
  let result: ScenarioResult | undefined
  const failures: string[] = []
  try {
    result = await scenario(world, { planted: options.planted })
    failures.push(...result.failures)
    if (sum(result.faults) === 0) failures.push('Nothing failed in this run, so it shows nothing.')
  } catch (error) {
    failures.push(`The scenario threw: ${textOf(error)}`)
  }
  for (const { process, error } of world.crashes)
    if (error instanceof InvariantError || error instanceof GuardError)
      failures.push(`${process.name} broke an invariant: ${textOf(error)}`)
  for (const stray of world.strays) failures.push(`A rejection that nobody handled: ${textOf(stray)}`)
  failures.push(...refusals.slice(refusedBefore))
  return {
    seed,
    failures,
    trace: world.trace,
    steps: world.steps,
    virtualMs: world.nowMs,
    faults: result?.faults ?? {},
    figures: result?.figures ?? {},
  }
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

function textOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error)
}
