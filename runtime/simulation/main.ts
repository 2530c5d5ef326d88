// `npm run sim`: seeds of a scenario, a replay, or planted faults that must be caught.

import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { plantedFaults } from '../base/planted.ts'
import type { PlantedFault } from '../base/planted.ts'
import { kindsMissing } from './floor.ts'
import { replaySeed, runSeeds } from './runner.ts'
import type { RunOptions } from './runner.ts'
import type { SeedReport } from './seed.ts'

const usage = `npm run sim -- --seeds N [--from S]        runs N seeds (200), from S (1) on
npm run sim -- --seed S                     runs one and prints its story
npm run sim -- --planted NAME [--seeds N]   runs until the planted fault is caught; fails if it is not within N seeds
npm run sim -- --planted-all [--seeds N]    each planted fault in turn
   [--scenario NAME]                        a file in runtime/simulation/scenarios (job)
planted faults: ${plantedFaults.join(', ')}`

const { values: args } = parseArguments()
const scenarioFile = new URL(`scenarios/${args.scenario}.ts`, import.meta.url)
if (!existsSync(scenarioFile)) refuse(`There is no scenario ${args.scenario}.`)
const startedMs = performance.now()
const { passed, failed } = await runAll()
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 && passed > 0 ? 0 : 1

async function runAll(): Promise<{ passed: number; failed: number }> {
  const planted = args.planted === undefined ? [] : [plantedNamed(args.planted)]
  if (args.seed !== undefined) return replay(numberOf(args.seed, 'seed'), planted)
  const from = numberOf(args.from, 'from')
  const seeds = Array.from({ length: numberOf(args.seeds, 'seeds') }, (_, index) => from + index)
  if (seeds.length === 0) refuse('No seeds to run.')
  if (args['planted-all'] !== true && planted.length === 0) return runHonest(seeds)
  let passed = 0
  const toCatch = args['planted-all'] === true ? plantedFaults : planted
  for (const fault of toCatch) if (await isCaught(fault, seeds)) passed++
  return { passed, failed: toCatch.length - passed }
}

async function replay(seed: number, planted: readonly PlantedFault[]): Promise<{ passed: number; failed: number }> {
  const report = await replaySeed(
    runOptions([seed], planted, () => {}),
    seed,
  )
  console.log(`faults that happened: ${JSON.stringify(report.faults)}`)
  console.log(`trace ${report.trace}, ${report.steps} steps, ${report.virtualMs.toFixed(0)} virtual ms`)
  for (const failure of report.failures) console.log(`seed ${seed} FAILED: ${failure}`)
  return report.failures.length === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }
}

async function runHonest(seeds: readonly number[]): Promise<{ passed: number; failed: number }> {
  let count = 0
  const reports = await runSeeds(
    runOptions(seeds, [], (report) => {
      count++
      if (report.failures.length > 0) printFailure(report, [])
      else if (count % 50 === 0) console.log(`${count} of ${seeds.length} seeds after ${seconds()} s`)
    }),
  )
  printSums(reports)
  const failed = seeds.length - reports.filter(({ failures }) => failures.length === 0).length
  const missing = args.scenario === 'job' ? kindsMissing(reports.map(({ faults }) => faults)) : []
  for (const kind of missing) console.log(`FAILED: no seed of ${seeds.length} met the fault: ${kind}`)
  return { passed: seeds.length - failed, failed: failed + missing.length }
}

async function isCaught(fault: PlantedFault, seeds: readonly number[]): Promise<boolean> {
  let tried = 0
  const options = runOptions(seeds, [fault], () => tried++)
  const reports = await runSeeds({ ...options, untilFirstFailure: true })
  const caught = reports.find(({ failures }) => failures.length > 0)
  if (caught === undefined) console.log(`planted ${fault}: NOT caught within ${seeds.length} seeds`)
  else
    console.log(
      `planted ${fault}: caught by seed ${caught.seed}, the ${tried}. that was run, after ${seconds()} s: ${firstLine(caught)}`,
    )
  return caught !== undefined
}

function runOptions(
  seeds: readonly number[],
  planted: readonly PlantedFault[],
  onReport: (report: SeedReport) => void,
): RunOptions {
  const scenario = scenarioFile.href
  return { scenario, seeds, planted, processes: availableParallelism(), untilFirstFailure: false, onReport }
}

function printFailure(report: SeedReport, planted: readonly PlantedFault[]): void {
  for (const failure of report.failures) console.log(`seed ${report.seed} FAILED: ${failure}`)
  const scenario = args.scenario === 'job' ? '' : ` --scenario ${args.scenario}`
  console.log(
    `  replay: npm run sim -- --seed ${report.seed}${scenario}${planted.map((name) => ` --planted ${name}`).join('')}`,
  )
}

function printSums(reports: readonly SeedReport[]): void {
  const faults = sums(reports.map((report) => report.faults))
  const figures = sums(reports.map((report) => report.figures))
  const [steps, virtualMs] = [total(reports, 'steps'), total(reports, 'virtualMs')]
  console.log(`faults that happened: ${JSON.stringify(faults)}`)
  console.log(`figures: ${JSON.stringify(figures)}`)
  console.log(
    `${reports.length} seeds, ${steps} steps, ${(virtualMs / 1000).toFixed(0)} virtual s in ${seconds()} real s`,
  )
}

function sums(each: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const counts of each) for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

function total(reports: readonly SeedReport[], field: 'steps' | 'virtualMs'): number {
  return reports.reduce((sum, report) => sum + report[field], 0)
}

function firstLine(report: SeedReport): string {
  return report.failures[0]?.split('\n')[0] ?? ''
}

function seconds(): string {
  return ((performance.now() - startedMs) / 1000).toFixed(1)
}

function parseArguments() {
  try {
    return parseArgs({
      options: {
        seeds: { type: 'string', default: '200' },
        from: { type: 'string', default: '1' },
        seed: { type: 'string' },
        planted: { type: 'string' },
        'planted-all': { type: 'boolean' },
        scenario: { type: 'string', default: 'job' },
      },
    })
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function plantedNamed(name: string): PlantedFault {
  return plantedFaults.find((each) => each === name) ?? refuse(`There is no planted fault ${name}.`)
}

function numberOf(text: string, option: string): number {
  return /^\d+$/.test(text) ? Number(text) : refuse(`--${option} takes a number, not ${text}.`)
}

function refuse(reason: string): never {
  console.error(`${reason}\n${usage}`)
  process.exit(2)
}
