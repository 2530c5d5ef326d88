// Time, turns and randomness that move only when a test says so.

import type { Clock, Environment, Executor, Failpoints, Random, SliceBudget, Timer } from '../base/environment.ts'
import type { FailpointName } from '../base/failpoints.ts'

/** A clock that stands still until `advance`. Timers run in the order of their due time, then of their making. */
export class ManualClock implements Clock {
  #nowMs = 0
  readonly #wallStartMs: number
  #timers: WaitingTimer[] = []
  #made = 0

  constructor(wallStartMs = 1_700_000_000_000) {
    this.#wallStartMs = wallStartMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  wallMs(): number {
    return this.#wallStartMs + this.#nowMs
  }

  timer(delayMs: number, callback: () => void): Timer {
    const entry = { dueMs: this.#nowMs + Math.max(0, delayMs), order: this.#made++, callback }
    this.#timers.push(entry)
    return {
      cancel: () => {
        this.#timers = this.#timers.filter((other) => other !== entry)
      },
    }
  }

  /** How many timers wait. */
  get waiting(): number {
    return this.#timers.length
  }

  /** Milliseconds until the next timer, or undefined when none waits. */
  get untilNextMs(): number | undefined {
    const next = this.#next(Number.POSITIVE_INFINITY)
    return next === undefined ? undefined : next.dueMs - this.#nowMs
  }

  /** Moves the time on and runs every timer due on the way, at its own time; promises are not awaited between them. */
  advance(ms: number): void {
    const targetMs = this.#nowMs + ms
    while (this.#runNext(targetMs)) {
      // each due timer in turn
    }
    this.#nowMs = targetMs
  }

  /** Like advance, but lets promises settle before the first timer, between timers and after the last. */
  async advanceSettled(ms: number): Promise<void> {
    const targetMs = this.#nowMs + ms
    await settlePromises()
    while (this.#runNext(targetMs)) await settlePromises()
    this.#nowMs = targetMs
    await settlePromises()
  }

  #next(upToMs: number): WaitingTimer | undefined {
    let next: WaitingTimer | undefined
    for (const timer of this.#timers) {
      if (timer.dueMs > upToMs) continue
      if (next === undefined || timer.dueMs < next.dueMs || (timer.dueMs === next.dueMs && timer.order < next.order))
        next = timer
    }
    return next
  }

  #runNext(upToMs: number): boolean {
    const next = this.#next(upToMs)
    if (next === undefined) return false
    this.#timers = this.#timers.filter((timer) => timer !== next)
    this.#nowMs = Math.max(this.#nowMs, next.dueMs)
    next.callback()
    return true
  }
}

interface WaitingTimer {
  readonly dueMs: number
  readonly order: number
  readonly callback: () => void
}

/** Turns wait in a queue until the test runs them. */
export class ManualExecutor implements Executor {
  #turns: (() => void)[] = []

  post(turn: () => void): void {
    this.#turns.push(turn)
  }

  get waiting(): number {
    return this.#turns.length
  }

  /** Runs the oldest turn; false when there was none. */
  runOne(): boolean {
    const turn = this.#turns.shift()
    turn?.()
    return turn !== undefined
  }

  /** Runs turns, also those posted meanwhile, until none waits; throws when they never end. Returns how many ran. */
  runAll(turnsMax = 100_000): number {
    let ran = 0
    while (this.runOne()) {
      if (++ran > turnsMax) throw new Error(`turns go on for ever: more than ${turnsMax} ran`)
    }
    return ran
  }

  /** Like runAll, but lets promises settle after each turn, and goes on with the turns these post. */
  async runAllSettled(turnsMax = 100_000): Promise<number> {
    let ran = 0
    await settlePromises()
    while (this.runOne()) {
      if (++ran > turnsMax) throw new Error(`turns go on for ever: more than ${turnsMax} ran`)
      await settlePromises()
    }
    return ran
  }
}

/** Mulberry32: small, seeded, good enough for tests. */
export class SeededRandom implements Random {
  #state: number
  #ids = 0

  constructor(seed = 1) {
    this.#state = seed >>> 0
  }

  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }

  id(): string {
    let digits = (this.#ids++).toString(16).padStart(8, '0')
    while (digits.length < 32)
      digits += Math.floor(this.next() * 0x1_0000_0000)
        .toString(16)
        .padStart(8, '0')
    return digits
  }
}

/** Counts hits, and throws what a test wants at a name. */
export class ManualFailpoints implements Failpoints {
  readonly hits: FailpointName[] = []
  readonly #throwing = new Map<FailpointName, unknown>()

  hit(name: FailpointName): void {
    this.hits.push(name)
    if (this.#throwing.has(name)) throw this.#throwing.get(name)
  }

  throwAt(name: FailpointName, error: unknown): void {
    this.#throwing.set(name, error)
  }

  clear(): void {
    this.#throwing.clear()
  }
}

export interface LogLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: Readonly<Record<string, unknown>> | undefined
}

export interface ManualEnvironment extends Environment {
  readonly clock: ManualClock
  readonly executor: ManualExecutor
  readonly random: SeededRandom
  readonly failpoints: ManualFailpoints
  readonly lines: LogLine[]
}

/** Everything manual, nothing planted, slices that never end; `overrides` replace parts. */
export function manualEnvironment(
  overrides: Partial<Omit<ManualEnvironment, 'log' | 'lines'>> = {},
): ManualEnvironment {
  const lines: LogLine[] = []
  const budget: SliceBudget = { begin: () => undefined, shouldYield: () => false }
  return {
    clock: new ManualClock(),
    random: new SeededRandom(),
    executor: new ManualExecutor(),
    budget,
    failpoints: new ManualFailpoints(),
    planted: new Set(),
    ...overrides,
    lines,
    log: (level, message, fields) => {
      lines.push({ level, message, fields })
    },
  }
}

/** Lets promises that rest on nothing but other promises settle. `rounds` bounds the length of such a chain. */
export async function settlePromises(rounds = 200): Promise<void> {
  for (let round = 0; round < rounds; round++) await Promise.resolve()
}

/** Lets turns and virtual time pass until `until`, or for so long; whether it came to that. */
export async function timePassed(
  { clock, executor }: Pick<ManualEnvironment, 'clock' | 'executor'>,
  ms: number,
  until: () => boolean,
): Promise<boolean> {
  const endMs = clock.nowMs() + ms
  for (;;) {
    await executor.runAllSettled()
    if (until()) return true
    const next = clock.untilNextMs
    if (next === undefined || clock.nowMs() + next > endMs) return false
    await clock.advanceSettled(next)
  }
}
