// How time passes in a mini cluster: by the test's word, or really.

import type { Clock, Environment, SliceBudget } from '../base/environment.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import { ManualClock, ManualExecutor, SeededRandom, settlePromises } from './manual-clock.ts'

export interface TestTime {
  readonly environment: Pick<Environment, 'clock' | 'random' | 'executor' | 'planted'>
  createBudget(): SliceBudget
  /** How long `until` waits unless it is told, ms. */
  readonly withinMs: number
  /** Lets the cluster run until `done`, at most for `ms`; whether it is done. Whatever was posted has then run. */
  pass(ms: number, done: () => boolean): Promise<boolean>
}

/** Records of one slice of a task. */
const recordsPerSlice = 100
/**
 * Virtual time stands still while something is to do; a source without a limit would stop it for ever. So many turns take a millisecond,
 * whole, since processing time is told in milliseconds.
 */
const turnsPerMs = 20
/** Length of a chain of promises that settles before the next turn; a longer one goes on behind it, in every run alike. */
const promisesPerTurn = 50

/** The same seed and the same calls give the same run. */
export function virtualTime(seed: number): TestTime {
  const clock = new ManualClock()
  const executor = new ManualExecutor()
  let turns = 0
  const runOne = async (): Promise<boolean> => {
    if (!executor.runOne()) return false
    await settlePromises(promisesPerTurn)
    if (++turns % turnsPerMs === 0) await clock.advanceSettled(1)
    return true
  }
  return {
    environment: { clock, executor, random: new SeededRandom(seed), planted: new Set() },
    createBudget: countingBudget,
    withinMs: 600_000,
    pass: async (ms, done) => {
      const endMs = clock.nowMs() + ms
      await settlePromises()
      for (;;) {
        if (done()) return true
        // What became due at the very end still has its turns.
        if (clock.nowMs() <= endMs && (await runOne())) continue
        const leftMs = endMs - clock.nowMs()
        if (leftMs < 0) return done()
        const nextMs = clock.untilNextMs
        if (nextMs === undefined || nextMs > leftMs) {
          await clock.advanceSettled(leftMs)
          if (executor.waiting === 0) return done()
        } else await clock.advanceSettled(Math.max(0, nextMs))
      }
    },
  }
}

/** How often a condition is looked at. */
const lookIntervalMs = 2

export function realTime(log: Environment['log']): TestTime {
  const environment = realEnvironment({ log })
  const { clock } = environment
  return {
    environment,
    createBudget: () => realEnvironment({ log }).budget,
    withinMs: 30_000,
    pass: async (ms, done) => {
      const endMs = clock.nowMs() + ms
      for (;;) {
        if (done()) return true
        const leftMs = endMs - clock.nowMs()
        if (leftMs <= 0) return false
        await passed(clock, Math.min(lookIntervalMs, leftMs))
      }
    },
  }
}

function passed(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.timer(ms, resolve))
}

function countingBudget(): SliceBudget {
  let looks = 0
  return {
    begin: () => {
      looks = 0
    },
    shouldYield: () => ++looks >= recordsPerSlice,
  }
}
