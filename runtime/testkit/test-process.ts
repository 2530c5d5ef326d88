// A process of a mini cluster: an environment whose every callback dies with it, as with SIGKILL.

import type { Clock, Environment, Executor, Timer } from '../base/environment.ts'
import type { FailpointName } from '../base/failpoints.ts'
import type { LogLine } from './manual-clock.ts'

/** Thrown out of a failpoint at which the process dies. Code that catches it acts in vain: the dead have no hands. */
export class ProcessDeath extends Error {
  override readonly name = 'ProcessDeath'
}

/** A log line of a mini cluster. */
export interface ClusterLogLine extends LogLine {
  /** `coordinator 2`, or a slot with its number and life: `slot 0#1.0`. */
  readonly process: string
}

/** What all processes of a cluster share. */
export interface TestHost {
  /** Time, randomness and turns, which outlive every process. */
  readonly environment: Pick<Environment, 'clock' | 'random' | 'executor' | 'planted'>
  createBudget(): Environment['budget']
  hit(name: FailpointName, process: TestProcess): void
  log(line: ClusterLogLine): void
}

export class TestProcess {
  readonly name: string
  readonly environment: Environment
  #alive = true
  readonly #exitCallbacks: ((reason: string) => void)[] = []
  readonly #timers = new Set<Timer>()

  constructor(name: string, host: TestHost) {
    this.name = name
    const { clock, random, executor, planted } = host.environment
    this.environment = {
      clock: clockOf(this, this.#timers, clock),
      executor: executorOf(this, executor),
      random,
      planted,
      budget: host.createBudget(),
      failpoints: { hit: (failpoint) => host.hit(failpoint, this) },
      log: (level, message, fields) => {
        if (this.#alive) host.log({ process: name, level, message, fields })
      },
    }
  }

  get alive(): boolean {
    return this.#alive
  }

  /** From now on no callback of it runs, and nothing that it asked for is answered. */
  kill(reason: string): void {
    if (!this.#alive) return
    this.#alive = false
    for (const timer of this.#timers) timer.cancel()
    this.#timers.clear()
    for (const callback of this.#exitCallbacks.splice(0)) callback(reason)
  }

  onExit(callback: (reason: string) => void): void {
    this.#exitCallbacks.push(callback)
  }

  /**
   * The process's hands on something that outlives it and answers by promises: a store, a file system. What it asked for while alive
   * happens; what it asks for afterwards does not, and it hears no answer.
   */
  callsTo<T extends object>(target: T): T {
    return new Proxy(target, {
      get: (_, name) => {
        const method: unknown = Reflect.get(target, name)
        if (typeof method !== 'function') return method
        return (...args: unknown[]) => this.#call(() => Reflect.apply(method, target, args) as Promise<unknown>)
      },
    })
  }

  #call(call: () => Promise<unknown>): Promise<unknown> {
    if (!this.#alive) return new Promise(() => undefined)
    return new Promise((resolve, reject) => {
      call().then(
        (answer) => {
          if (this.#alive) resolve(answer)
        },
        (error: unknown) => {
          // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- handed on as it came
          if (this.#alive) reject(error)
        },
      )
    })
  }
}

/** `waiting`: its timers, which go with it. */
function clockOf(process: TestProcess, waiting: Set<Timer>, clock: Clock): Clock {
  return {
    nowMs: () => clock.nowMs(),
    wallMs: () => clock.wallMs(),
    timer: (delayMs, callback) => {
      if (!process.alive) return { cancel: () => undefined }
      const timer = clock.timer(delayMs, () => {
        waiting.delete(timer)
        callback()
      })
      waiting.add(timer)
      return {
        cancel: () => {
          waiting.delete(timer)
          timer.cancel()
        },
      }
    },
  }
}

function executorOf(process: TestProcess, executor: Executor): Executor {
  return {
    post: (turn) => {
      if (!process.alive) return
      executor.post(() => {
        if (process.alive) turn()
      })
    },
  }
}
