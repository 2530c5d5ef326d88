// Runs many seeds: batches in fresh processes, a few seeds again alone, and compares their traces.

import { fork } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import type { PlantedFault } from '../base/planted.ts'
import type { Batch, FromChild } from './child.ts'
import type { SeedReport } from './seed.ts'

/** A batch runs in one process, one seed after another. */
const seedsPerBatchMax = 20
/** This many seeds that ran after others run again alone, in fresh processes; their traces must be the same. */
const seedsComparedMax = 3
/** A seed that takes longer, in real time, is taken for one that never ends. */
const seedDeadlineMsDefault = 120_000
/** Of what a process says when it ends too early, so much is kept. */
const lastWordsMax = 4_000

export interface RunOptions {
  /** URL of a module with a scenario. */
  readonly scenario: string
  readonly seeds: readonly number[]
  readonly planted: readonly PlantedFault[]
  readonly processes: number
  /** Ends at the first seed that fails, as a planted fault does. */
  readonly untilFirstFailure: boolean
  readonly seedDeadlineMs?: number
  readonly onReport: (report: SeedReport) => void
}

/** Reports in the order of their seeds; with `untilFirstFailure` of those that were run. */
export async function runSeeds(options: RunOptions): Promise<SeedReport[]> {
  const reports = new Map<number, SeedReport>()
  const batches = batchesOf(options)
  const running = new Set<ChildProcess>()
  let stopped = false
  const report = (each: SeedReport): void => {
    if (stopped) return
    reports.set(each.seed, each)
    options.onReport(each)
    if (!options.untilFirstFailure || each.failures.length === 0) return
    stopped = true
    batches.length = 0
    for (const child of running) child.kill('SIGKILL')
  }
  const runner = async (): Promise<void> => {
    for (let seeds = batches.shift(); seeds !== undefined; seeds = batches.shift()) {
      const left = await runBatch(options, { seeds, story: false }, running, report)
      // What a broken process did not come to goes on in another one.
      if (left.length > 0 && !stopped) batches.unshift(left)
    }
  }
  await Promise.all(Array.from({ length: options.processes }, runner))
  if (!stopped) await compareAlone(options, reports)
  return options.seeds.flatMap((seed) => reports.get(seed) ?? [])
}

/** Runs one seed again and prints its story. */
export async function replaySeed(options: RunOptions, seed: number): Promise<SeedReport> {
  const { promise, resolve } = Promise.withResolvers<SeedReport>()
  await runBatch(options, { seeds: [seed], story: true }, new Set(), resolve)
  return promise
}

/** A seed must do the same whether it runs alone or after others: else something leaks from one world into the next. */
async function compareAlone(options: RunOptions, reports: Map<number, SeedReport>): Promise<void> {
  const lastOnes = batchesOf(options).flatMap((batch) => (batch.length > 1 ? batch.slice(-1) : []))
  for (const seed of lastOnes.slice(0, seedsComparedMax)) {
    const before = reports.get(seed)
    await runBatch(options, { seeds: [seed], story: false }, new Set(), (alone) => {
      if (before === undefined || alone.trace === before.trace) return
      const failure = `Alone in a fresh process its trace is ${alone.trace} (${alone.steps} steps), after others ${before.trace} (${before.steps} steps).`
      const differing = { ...before, failures: [...before.failures, failure] }
      reports.set(seed, differing)
      options.onReport(differing)
    })
  }
}

/** Runs seeds in one fresh process. Resolves with those that it did not come to. */
async function runBatch(
  options: RunOptions,
  part: { readonly seeds: readonly number[]; readonly story: boolean },
  running: Set<ChildProcess>,
  onReport: (report: SeedReport) => void,
): Promise<readonly number[]> {
  const left = [...part.seeds]
  const child = fork(new URL('child.ts', import.meta.url), [], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    execArgv: ['--stack-trace-limit=30'],
  })
  running.add(child)
  let lastWords = ''
  const hear = (chunk: Buffer): void => void (lastWords = (lastWords + chunk.toString()).slice(-lastWordsMax))
  child.stdout?.on('data', hear)
  child.stderr?.on('data', hear)
  const deadlineMs = options.seedDeadlineMs ?? seedDeadlineMsDefault
  let broken = ''
  const deadline = setTimeout(() => {
    broken = `did not end within ${deadlineMs} ms of real time`
    child.kill('SIGKILL')
  }, deadlineMs)
  child.on('message', (message: FromChild) => {
    deadline.refresh()
    if ('line' in message) console.log(message.line)
    if (!('report' in message)) return
    left.shift()
    onReport(message.report)
  })
  const batch: Batch = { scenario: options.scenario, seeds: part.seeds, planted: options.planted, story: part.story }
  child.send(batch)
  const [code, signal] = await new Promise<[number | null, string | null]>((resolve) => {
    child.once('close', (...end: [number | null, string | null]) => resolve(end))
    child.once('error', (error) => void (broken = error.message))
  })
  clearTimeout(deadline)
  const killedByUs = !running.delete(child) || (signal === 'SIGKILL' && broken === '')
  const seed = left.shift()
  if (seed === undefined || killedByUs) return []
  const reason = broken || `its process ended with ${signal ?? code}`
  onReport(failureOf(seed, `Seed ${seed}: ${reason}. ${lastWords}`))
  return left
}

function failureOf(seed: number, failure: string): SeedReport {
  return { seed, failures: [failure], trace: '', steps: 0, virtualMs: 0, faults: {}, figures: {} }
}

function batchesOf(options: RunOptions): (readonly number[])[] {
  const { seeds, processes } = options
  const size = Math.min(seedsPerBatchMax, Math.ceil(seeds.length / processes))
  const batches: (readonly number[])[] = []
  for (let from = 0; from < seeds.length; from += size) batches.push(seeds.slice(from, from + size))
  return batches
}
