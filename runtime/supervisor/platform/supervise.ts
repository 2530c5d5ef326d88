// A supervisor and its child process.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { constants } from 'node:os'
import type { Environment, Timer } from '../../base/environment.ts'
import { ownsJob } from '../contract.ts'
import { Supervisor } from '../supervisor.ts'
import type { SupervisorEffect } from '../supervisor.ts'

export interface SuperviseOptions {
  /** The program and its words. */
  readonly command: readonly [string, ...string[]]
  /** Added to them for a coordinator after one that was overtaken: it waits so long, and then looks whether it may begin. */
  readonly backOffWords?: (backOffMs: number) => readonly string[]
  readonly environment: Pick<Environment, 'clock' | 'random' | 'log'>
  /** Calls back at each signal to end this process. */
  readonly onSignal: (callback: (signal: NodeJS.Signals) => void) => void
}

/**
 * Runs the command until it ends well, or in a way that another try would not mend; resolves with the exit code that this process is to end
 * with. The child shares standard output and error. It holds a channel to this process, whose end it notices (`endWithSupervisor`): a child
 * never outlives its supervisor.
 */
export function supervise(options: SuperviseOptions): Promise<number> {
  const { environment, onSignal } = options
  const { clock, random, log } = environment
  const { promise, resolve } = Promise.withResolvers<number>()
  const supervisor = new Supervisor({ random, nowMs: clock.nowMs() })
  let child: ChildProcess | undefined
  let timer: Timer | undefined

  const start = (backOffMs: number | undefined): void => {
    const [program, ...words] = options.command
    const more = backOffMs === undefined ? [] : (options.backOffWords?.(backOffMs) ?? [])
    const started = spawn(program, [...words, ...more], { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
    child = started
    started.on('message', (word) => {
      if (word === ownsJob && child === started) happen((nowMs) => supervisor.owns(nowMs))
    })
    started.once('error', (error) => {
      if (started.pid === undefined) happen(() => supervisor.spawnFailed(error.message))
    })
    started.once('exit', (code, signal) => {
      const shellCode = 128 + (signal === null ? 0 : constants.signals[signal])
      happen((nowMs) => supervisor.exited({ code, signal, shellCode }, nowMs))
    })
  }

  const carryOut = (effect: SupervisorEffect): void => {
    switch (effect.type) {
      case 'spawn':
        return start(effect.backOffMs)
      case 'signal':
        child?.kill(effect.signal)
        return
      case 'exit':
        return resolve(effect.code)
      case 'log':
        return log(effect.level, effect.message, effect.fields)
      default:
        return effect satisfies never
    }
  }

  const happen = (what: (nowMs: number) => void): void => {
    what(clock.nowMs())
    for (const effect of supervisor.effects.splice(0)) carryOut(effect)
    timer?.cancel()
    const { wakeAtMs } = supervisor
    if (wakeAtMs !== undefined)
      timer = clock.timer(Math.max(0, wakeAtMs - clock.nowMs()), () => happen((nowMs) => supervisor.tick(nowMs)))
  }

  onSignal((signal) => happen(() => supervisor.signalled(signal)))
  happen(() => undefined)
  return promise
}

/** For a child that is a coordinator, once it has raised the incarnation. Nothing happens in a process that has no supervisor. */
export function tellOwned(): void {
  // One that is gone is noticed elsewhere.
  if (process.connected) process.send?.(ownsJob, undefined, undefined, () => undefined)
}

/** For a child: `end` is called when its supervisor is gone, however it went. Nothing happens in a process that has none. */
export function endWithSupervisor(end: () => void): void {
  if (process.connected) process.once('disconnect', end)
}
