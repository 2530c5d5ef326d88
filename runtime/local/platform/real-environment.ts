// The real clock, timers, randomness and event loop of this process or thread.

import { randomBytes } from 'node:crypto'
import type { Clock, Environment, Executor, Failpoints, Random, SliceBudget } from '../../base/environment.ts'

/** Longest slice of work between two turns of the event loop, ms. */
const sliceMs = 2
/** Reading the clock costs as much as processing a record: look at it every so many records. */
const recordsPerLook = 32

export type LogSink = Environment['log']

export interface RealEnvironmentOptions {
  readonly log: LogSink
  readonly failpoints?: Failpoints
}

export function realEnvironment(options: RealEnvironmentOptions): Environment {
  return {
    clock,
    random,
    executor,
    budget: realBudget(),
    failpoints: options.failpoints ?? { hit: () => undefined },
    planted: new Set(),
    log: options.log,
  }
}

const clock: Clock = {
  nowMs: () => performance.now(),
  wallMs: () => Date.now(),
  timer: (delayMs, callback) => {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), timerMaxMs))
    return { cancel: () => clearTimeout(timer) }
  },
}

/** setTimeout takes 31 bits; whoever waits longer is woken early and looks at the clock. */
const timerMaxMs = 2 ** 31 - 1

const random: Random = {
  next: () => Math.random(),
  id: () => randomBytes(16).toString('hex'),
}

const executor: Executor = { post: (turn) => void setImmediate(turn) }

function realBudget(): SliceBudget {
  let untilMs = 0
  let looks = 0
  return {
    begin: () => {
      untilMs = performance.now() + sliceMs
      looks = 0
    },
    shouldYield: () => {
      if (++looks % recordsPerLook !== 0) return false
      return performance.now() >= untilMs
    },
  }
}
