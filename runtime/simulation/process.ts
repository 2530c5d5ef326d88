// A simulated process (or slot thread): an environment whose every callback dies with it.

import { invariant } from '../base/errors.ts'
import type { Clock, Environment, Executor, Failpoints, SliceBudget, Timer } from '../base/environment.ts'
import type { FailpointName } from '../base/failpoints.ts'
import { Lane } from './pending.ts'
import type { SeededRandom } from './random.ts'
import type { World } from './world.ts'

/** Thrown out of a failpoint at which the process dies. Code that catches it acts in vain: the dead have no hands. */
export class ProcessDeath extends Error {
  override readonly name = 'ProcessDeath'
}

/** Thrown by a failpoint that the fault plan lets fail. */
export class InjectedFailure extends Error {
  override readonly name = 'InjectedFailure'
}

/** Wall clocks of hosts disagree by up to this; nothing may compare them. */
const wallSkewMsMax = 5_000
/** Timers may come late by up to this, never early. */
const timerLatenessMsMax = 1
/** How long, at most, an end of a process needs to be heard of by who watches it. */
const exitNoticeMsMax = 5

/** A host. Killing it kills its processes; disks put on it lose what was not synced. */
export class Machine {
  readonly name: string
  readonly world: World
  /** Of its wall clock against an honest one. */
  wallSkewMs: number
  readonly processes: SimProcess[] = []
  readonly #crashCallbacks: (() => void)[] = []
  #lives = 0

  constructor(world: World, name: string) {
    this.world = world
    this.name = name
    this.wallSkewMs = Math.floor(world.random.split(`wall ${name}`).between(-wallSkewMsMax, wallSkewMsMax))
  }

  /** A process on this machine; with a `parent` it dies with that one. */
  spawn(name: string, parent?: SimProcess): SimProcess {
    const child = new SimProcess(this, name, ++this.#lives)
    this.processes.push(child)
    parent?.children.push(child)
    this.world.tell(() => `${name} starts on ${this.name}`)
    return child
  }

  /** Power loss: every process dies, then disks drop what was not synced. */
  crash(reason: string): void {
    this.world.tell(() => `machine ${this.name} crashes: ${reason}`)
    const processes = this.processes.splice(0)
    for (const each of processes) each.lostPower = true
    for (const each of processes) each.kill(reason)
    for (const callback of this.#crashCallbacks) callback()
  }

  /** Its wall clock is put on, or back. */
  shiftWall(byMs: number): void {
    this.wallSkewMs += Math.floor(byMs)
    this.world.tell(() => `the wall clock of ${this.name} jumps by ${byMs.toFixed(0)} ms`)
  }

  onCrash(callback: () => void): void {
    this.#crashCallbacks.push(callback)
  }
}

/** A promise that is settled by the outside in a step of its process, and never once that is dead. */
export interface Completion<T> {
  readonly promise: Promise<T>
  /** Settles with what `outcome` returns or throws when the process hears of it, `delayMs` from now. */
  settle(delayMs: number, outcome: () => T): void
}

export class SimProcess {
  readonly name: string
  readonly machine: Machine
  readonly world: World
  readonly environment: Environment
  readonly children: SimProcess[] = []
  /** Nothing runs for it before this virtual time. */
  frozenUntilMs = 0
  /** Why it ended; undefined while it lives. */
  endedBy: string | undefined
  /** It ended with its host: nobody could say so to whoever was connected. */
  lostPower = false
  readonly #exitCallbacks: { readonly watcher: SimProcess | undefined; readonly callback: (reason: string) => void }[] =
    []

  constructor(machine: Machine, name: string, life: number) {
    this.machine = machine
    this.name = name
    this.world = machine.world
    const random = this.world.random.split(`process ${machine.name} ${name} ${life}`)
    const clock = clockOf(this, random.split('clock'))
    this.environment = {
      clock,
      random: random.split('random'),
      executor: executorOf(this, random.split('executor')),
      budget: budgetOf(random.split('budget')),
      failpoints: failpointsOf(this),
      planted: this.world.planted,
      log: (level, message, fields) =>
        this.world.tell(
          () => `${this.name} ${level}: ${message}${fields === undefined ? '' : ` ${JSON.stringify(fields)}`}`,
        ),
    }
  }

  get alive(): boolean {
    return this.endedBy === undefined
  }

  /** From now on no callback of it runs and nothing that it asked for is answered. */
  kill(reason: string): void {
    if (!this.alive) return
    this.endedBy = reason
    this.world.tell(() => `${this.name} dies: ${reason}`)
    this.world.note(`death of ${this.name}`, this.world.steps)
    const place = this.machine.processes.indexOf(this)
    if (place >= 0) this.machine.processes.splice(place, 1)
    for (const child of this.children.splice(0)) child.kill(`${this.name} died`)
    const notice = this.world.random.split(`exit ${this.name} ${this.world.steps}`)
    for (const { watcher, callback } of this.#exitCallbacks.splice(0))
      this.world.after(notice.between(0, exitNoticeMsMax), `exit ${this.name}`, () => callback(reason), {
        owner: watcher,
      })
  }

  /** An uncaught exception or rejection: the process ends by itself. */
  crash(error: unknown): void {
    if (error instanceof ProcessDeath || !this.alive) return
    this.world.crashes.push({ process: this, error })
    this.world.tell(() => (error instanceof Error ? (error.stack ?? error.message) : String(error)))
    this.kill(`uncaught ${error instanceof Error ? error.message : String(error)}`)
  }

  /** Nothing runs for it for `durationMs`; then everything that came meanwhile comes at once. */
  freeze(durationMs: number): void {
    if (!this.alive) return
    this.frozenUntilMs = Math.max(this.frozenUntilMs, this.world.nowMs + durationMs)
    this.world.tell(() => `${this.name} freezes for ${durationMs.toFixed(1)} ms`)
    for (const child of this.children) child.freeze(durationMs)
  }

  /** What the process still does in the turn in which it froze leaves it only when it wakes. */
  get wakesInMs(): number {
    return Math.max(0, this.frozenUntilMs - this.world.nowMs)
  }

  /** Calls back, in a step of `watcher` (the world's own without one), soon after this process ended. */
  onExit(watcher: SimProcess | undefined, callback: (reason: string) => void): void {
    this.#exitCallbacks.push({ watcher, callback })
  }

  /** A promise that the outside will settle. `label` goes into the trace. */
  completion<T>(label: string): Completion<T> {
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    const settle = (delayMs: number, outcome: () => T): void => {
      const deliver = (): void => {
        try {
          resolve(outcome())
        } catch (error) {
          reject(error)
        }
      }
      this.world.after(delayMs, label, deliver, { owner: this })
    }
    return { promise, settle }
  }
}

function clockOf(process: SimProcess, random: SeededRandom): Clock {
  const world = process.world
  const offsetMs = random.between(0, 1e6) // An arbitrary start: comparing two processes' clocks shows at once.
  return {
    nowMs: () => world.nowMs + offsetMs,
    wallMs: () => world.wallMs + process.machine.wallSkewMs,
    timer(delayMs: number, callback: () => void): Timer {
      invariant(!Number.isNaN(delayMs), 'a timer needs a number of milliseconds')
      if (!process.alive || delayMs === Infinity) return { cancel: () => {} }
      const lateMs = random.chance(0.5) ? 0 : random.between(0, timerLatenessMsMax)
      const label = `timer of ${process.name}`
      const occurrence = world.after(Math.max(0, delayMs) + lateMs, label, callback, { owner: process })
      return { cancel: () => void (occurrence.cancelled = true) }
    },
  }
}

/** Turns in order. Each costs a little virtual time, so that a loop that always has work does not stop the clock. */
function executorOf(process: SimProcess, random: SeededRandom): Executor {
  const world = process.world
  const lane = new Lane()
  const label = `turn of ${process.name}`
  // Some processes are slower than others, as on a busy host.
  const turnMs = random.pick([0.005, 0.02, 0.1])
  const cost = (): number =>
    random.chance(0.004) ? random.between(0, 10) : random.chance(0.5) ? 0 : random.between(0, 4 * turnMs)
  return {
    post(turn: () => void): void {
      if (!process.alive) return
      const action = (): void => {
        lane.freeAtMs = world.nowMs + cost()
        turn()
      }
      world.after(0, label, action, { owner: process, lane })
    },
  }
}

/** Ends slices by seed: some processes work long slices, some give way after each record. */
function budgetOf(random: SeededRandom): SliceBudget {
  const asksMean = random.pick([1, 4, 20, 200])
  let asksLeft = 0
  return {
    begin: () => void (asksLeft = Math.ceil(random.exponential(asksMean))),
    shouldYield: () => --asksLeft <= 0,
  }
}

function failpointsOf(process: SimProcess): Failpoints {
  return {
    hit(name: FailpointName): void {
      if (!process.alive) throw new ProcessDeath(process.endedBy)
      const fate = process.world.interference?.atFailpoint(process, name)
      if (fate === 'throw') throw new InjectedFailure(`at failpoint ${name} of ${process.name}`)
      if (!process.alive) throw new ProcessDeath(process.endedBy)
    },
  }
}
