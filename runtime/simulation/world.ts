// The simulated world: one queue of everything that has not happened yet, virtual time, and a seed that decides what happens next.

import { InvariantError } from '../base/errors.ts'
import type { FailpointName } from '../base/failpoints.ts'
import type { PlantedFault } from '../base/planted.ts'
import { DueQueue, Lane } from './pending.ts'
import type { Entry, Occurrence } from './pending.ts'
import { Machine, ProcessDeath } from './process.ts'
import type { SimProcess } from './process.ts'
import { hashText, mix, SeededRandom } from './random.ts'

// Kept aside before the guard replaces it: the one real thing that a step rests on.
const realTurn = setImmediate

/** Real turns scheduled at once. Node drains all microtasks between two of them, so each step still begins with none left. */
const turnsAtOnce = 64

/** The wall clock at virtual time 0, in milliseconds since the epoch: 2026-01-01T00:00Z. */
const wallAtStartMs = 1_767_225_600_000

const stepsMaxDefault = 20_000_000

export interface WorldOptions {
  readonly planted?: ReadonlySet<PlantedFault>
  /** Gets the story line by line; without it none is told. */
  readonly story?: (line: string) => void
}

export interface RunLimits {
  /** Virtual milliseconds from now. */
  readonly virtualMs: number
  /** A world that needs more is taken for a loop that never ends. */
  readonly stepsMax?: number
}

/** reached: `until` held. idle: nothing was left to happen. time, steps: a limit was met. */
export type RunEnd = 'reached' | 'idle' | 'time' | 'steps'

/** Whoever makes faults happen. */
export interface Interference {
  /** May do one thing before a step; true if it did, which then was that step. */
  beforeStep(): boolean
  /** May kill or freeze the process that meets a failpoint; 'throw' lets the failpoint throw. */
  atFailpoint(process: SimProcess, name: FailpointName): 'pass' | 'throw'
}

export interface Crash {
  readonly process: SimProcess
  readonly error: unknown
}

export class World {
  readonly seed: number
  readonly random: SeededRandom
  readonly planted: ReadonlySet<PlantedFault>
  /** Processes that ended by an error of their own: an uncaught exception or rejection. */
  readonly crashes: Crash[] = []
  /** Rejections that nobody handled and that belong to no process: a mistake in a scenario. */
  readonly strays: unknown[] = []
  readonly machines: Machine[] = []
  interference: Interference | undefined
  readonly #story: ((line: string) => void) | undefined
  readonly #choice: SeededRandom
  readonly #later = new DueQueue()
  readonly #ready: Entry[] = []
  #nowMs = 0
  #steps = 0
  #traceLow: number
  #traceHigh: number
  #active: SimProcess | undefined

  constructor(seed: number, options: WorldOptions = {}) {
    this.seed = seed
    this.random = new SeededRandom(seed)
    this.planted = options.planted ?? new Set()
    this.#story = options.story
    this.#choice = this.random.split('choice')
    this.#traceLow = this.random.split('trace low').bits()
    this.#traceHigh = this.random.split('trace high').bits()
  }

  /** Virtual milliseconds since the world began; fractions are usual. */
  get nowMs(): number {
    return this.#nowMs
  }

  /** What an honest wall clock would show. */
  get wallMs(): number {
    return wallAtStartMs + Math.floor(this.#nowMs)
  }

  get steps(): number {
    return this.#steps
  }

  /** 16 hexadecimal digits over everything that happened so far, and when: equal for equal runs. */
  get trace(): string {
    return this.#traceHigh.toString(16).padStart(8, '0') + this.#traceLow.toString(16).padStart(8, '0')
  }

  /** The process whose callback ran last: whatever runs in microtasks now is its doing. */
  get active(): SimProcess | undefined {
    return this.#active
  }

  /** A host: its processes share a wall clock's error and what else is put on it. */
  machine(name: string): Machine {
    const machine = new Machine(this, name)
    this.machines.push(machine)
    return machine
  }

  /** A process on a machine of its own. */
  spawn(name: string): SimProcess {
    return this.machine(name).spawn(name)
  }

  /** Lets `action` happen after `delayMs`, in a step of its own. Occurrences of one lane keep their order. */
  after(
    delayMs: number,
    label: string,
    action: () => void,
    place: { readonly owner?: SimProcess | undefined; readonly lane?: Lane } = {},
  ): Occurrence {
    if (!(delayMs >= 0 && delayMs < Infinity)) throw new InvariantError(`${label} cannot happen after ${delayMs} ms`)
    const occurrence = { dueMs: this.#nowMs + delayMs, label, owner: place.owner, action, cancelled: false }
    const lane = place.lane
    if (lane === undefined) this.#wait(occurrence, occurrence.dueMs)
    else {
      lane.items.push(occurrence)
      if (!lane.waiting) this.#waitLane(lane)
    }
    return occurrence
  }

  /** Folds a fact into the trace, so that two runs that differ in it have different hashes. */
  note(label: string, value: number): void {
    this.#traceLow = mix(hashText(this.#traceLow, label), Math.trunc(value))
    this.#traceHigh = mix(this.#traceHigh, this.#traceLow)
  }

  /** A line of the story, with the time before it. A function is called only if somebody listens. */
  tell(text: string | (() => string)): void {
    if (this.#story === undefined) return
    this.#story(`${this.#nowMs.toFixed(3).padStart(12)} ms  ${typeof text === 'string' ? text : text()}`)
  }

  /** Whether a story is told at all. */
  get told(): boolean {
    return this.#story !== undefined
  }

  /** Lets one thing happen; false if nothing is left. Only to be called with the microtask queue empty. */
  step(): boolean {
    this.#active = undefined
    if (this.interference?.beforeStep() === true) {
      this.#steps++
      return true
    }
    for (;;) {
      if (this.#ready.length === 0 && !this.#advance()) return false
      const entry = this.#takeReady()
      const occurrence = entry instanceof Lane ? entry.first() : entry
      if (occurrence === undefined) throw new InvariantError('an empty lane waits')
      const owner = occurrence.owner
      const gone = occurrence.cancelled || (owner !== undefined && !owner.alive)
      if (!gone && owner !== undefined && owner.frozenUntilMs > this.#nowMs) {
        this.#wait(entry, owner.frozenUntilMs)
        continue
      }
      if (entry instanceof Lane) entry.shift()
      if (!gone) this.#happen(occurrence, owner)
      if (entry instanceof Lane) this.#waitLane(entry)
      if (!gone) return true
    }
  }

  /** Steps until `until` holds (asked after every step) or a limit is met. */
  run(until: () => boolean, limits: RunLimits): Promise<RunEnd> {
    const deadlineMs = this.#nowMs + limits.virtualMs
    const stepsMax = this.#steps + (limits.stepsMax ?? stepsMaxDefault)
    const onRejection = (reason: unknown): void => this.#rejected(reason)
    process.on('unhandledRejection', onRejection)
    return new Promise<RunEnd>((resolve, reject) => {
      let scheduled = 0
      let ended = false
      const turn = (): void => {
        scheduled--
        if (ended) return
        try {
          const end = this.#endOf(until, deadlineMs, stepsMax)
          if (end !== undefined) {
            ended = true
            resolve(end)
          }
        } catch (error) {
          ended = true
          reject(error)
        }
        if (!ended && scheduled === 0) schedule()
      }
      const schedule = (): void => {
        for (scheduled = 0; scheduled < turnsAtOnce; scheduled++) realTurn(turn)
      }
      schedule()
    }).finally(() => process.off('unhandledRejection', onRejection))
  }

  #endOf(until: () => boolean, deadlineMs: number, stepsMax: number): RunEnd | undefined {
    if (until()) return 'reached'
    if (this.#nowMs >= deadlineMs) return 'time'
    if (this.#steps >= stepsMax) return 'steps'
    return this.step() ? undefined : 'idle'
  }

  #happen(occurrence: Occurrence, owner: SimProcess | undefined): void {
    this.#steps++
    // Nanoseconds, so that runs whose times differ differ in their trace.
    this.note(occurrence.label, this.#nowMs * 1e6)
    this.#active = owner
    if (owner === undefined) {
      occurrence.action()
      return
    }
    try {
      occurrence.action()
    } catch (error) {
      owner.crash(error)
    }
  }

  #rejected(reason: unknown): void {
    if (reason instanceof ProcessDeath) return
    if (this.#active !== undefined) this.#active.crash(reason)
    else this.strays.push(reason)
  }

  /** Moves time to the next due occurrence and makes all due then ready. */
  #advance(): boolean {
    if (this.#later.size === 0) return false
    this.#nowMs = Math.max(this.#nowMs, this.#later.nextDueMs)
    while (this.#later.nextDueMs <= this.#nowMs) this.#ready.push(this.#later.pop() as Entry)
    return true
  }

  #takeReady(): Entry {
    const ready = this.#ready
    const at = ready.length === 1 ? 0 : this.#choice.below(ready.length)
    const entry = ready[at] as Entry
    const last = ready.pop() as Entry
    if (at < ready.length) ready[at] = last
    return entry
  }

  #waitLane(lane: Lane): void {
    const first = lane.first()
    lane.waiting = first !== undefined
    if (first !== undefined) this.#wait(lane, Math.max(first.dueMs, lane.freeAtMs))
  }

  #wait(entry: Entry, dueMs: number): void {
    if (dueMs <= this.#nowMs) this.#ready.push(entry)
    else this.#later.push(entry, dueMs)
  }
}
