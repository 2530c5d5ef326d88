// `millrace coordinator`: the coordinator's process of a distributed job.

import { resolve } from 'node:path'
import type { JobOutcome } from '../coordinator/coordinator-contract.ts'
import { processExitCodes } from '../supervisor/contract.ts'
import { commandError } from './errors.ts'
import { notEmpty, readWords, wholeNumber } from './words.ts'
import type { CommandSyntax } from './words.ts'
import { forwarded } from './worker-command.ts'
import type { ProcessEdge } from './worker-command.ts'

export interface CoordinatorCommand {
  readonly kind: 'coordinator'
  readonly config: string
  readonly supervised: boolean
  readonly stays: boolean
  /** undefined: it begins at once. */
  readonly backOffMs: number | undefined
}

const help = `millrace coordinator --config FILE [options]   the coordinator of a distributed job

It takes the job over from HEAD, waits for the workers that its config lets in, and runs the job to its end. When it is killed the workers
run on, and the next coordinator takes them over. On SIGTERM or Ctrl-C it leaves in the same way: to end the job, ask it by REST
(millrace stop, cancel).

  --config FILE      the process config (JSON or YAML), the same as the workers'
  --supervised       as the first process of a container: runs the coordinator as a child, and starts it again at once when it dies
  --back-off MS      the one before was overtaken by another coordinator of its start (exit code 3): waits so many milliseconds, and begins
                     only if HEAD stood still meanwhile and workers have no coordinator; else ends with 3 again. --supervised sees to it by itself
  --stay             when the job has ended, goes on to serve REST until SIGTERM; default: ends too, and with it the workers

Exit codes: 0 the job has ended or the process was told to, 1 it ended in another way, 2 the command line, the config or the job is wrong,
3 another coordinator owns the job.`

export const coordinatorSyntax: CommandSyntax<CoordinatorCommand> = {
  name: 'coordinator',
  takes: '--config FILE',
  summary: 'run the coordinator of a distributed job',
  help,
  parse: (words) => {
    const options = {
      config: { type: 'string' },
      supervised: { type: 'boolean' },
      stay: { type: 'boolean' },
      'back-off': { type: 'string' },
    } as const
    const { values, positionals } = readWords({ command: 'coordinator', words, options })
    if (positionals.length > 0)
      throw commandError('MR-L10', `coordinator takes options only; there is also ${positionals.join(' ')}.`)
    const config = notEmpty('config', values.config)
    if (config === undefined) throw commandError('MR-L10', 'coordinator needs --config FILE.')
    return {
      kind: 'coordinator',
      config,
      supervised: values.supervised === true,
      stays: values.stay === true,
      backOffMs: wholeNumber('back-off', values['back-off'], 'milliseconds'),
    }
  },
}

/** The exit code. Throws MillraceError for what cannot be used. */
export async function runCoordinator(command: CoordinatorCommand, edge: ProcessEdge): Promise<number> {
  const { loadProcessConfig } = await import('../distributed/process-config.ts')
  const { NodeFiles } = await import('../local/platform/node-files.ts')
  const { realEnvironment } = await import('../local/platform/real-environment.ts')
  const { plannedFailpoints } = await import('../local/failpoint-plan.ts')
  const { ownProcess } = await import('../local/platform/own-process.ts')
  const { jsonLog } = await import('../distributed/platform/json-log.ts')
  const { supervise, endWithSupervisor, tellOwned } = await import('../supervisor/platform/supervise.ts')
  const files = new NodeFiles()
  const unknown: string[] = []
  const config = await loadProcessConfig(resolve(edge.folder, command.config), files, (message) =>
    unknown.push(message),
  )
  const fields = { process: command.supervised ? 'supervisor' : 'coordinator', pid: edge.pid }
  const log = jsonLog({ level: config.logLevel ?? 'info', fields, write: edge.writeLog })
  if (command.supervised)
    return supervise({
      command: edge.self,
      backOffWords: (backOffMs) => ['--back-off', String(Math.max(1, backOffMs))],
      environment: realEnvironment({ log }),
      onSignal: forwarded(edge.onSignal),
    })
  for (const message of unknown) log('warn', message)
  // Nobody waits for its answer, and an exit would wait for a thread that nothing interrupts.
  endWithSupervisor(() => edge.kill())
  const environment = realEnvironment({ log, failpoints: plannedFailpoints(edge.failpoints, ownProcess) })
  const { startCoordinator, mayGoBetter } = await import('../distributed/coordinator-process.ts')
  const told = Promise.withResolvers<'told'>()
  let hasStarted = false
  edge.onSignal(() => {
    told.resolve('told')
    // Before that it owns nothing that it would have to leave in order.
    return hasStarted
  })
  const coordinator = await startCoordinator({
    config,
    runtimeVersion: edge.version,
    environment,
    files,
    backOffMs: command.backOffMs,
    onBegan: tellOwned,
  })
  hasStarted = true
  try {
    const outcome = await Promise.race([coordinator.ended, told.promise])
    if (outcome === 'told') {
      log('info', 'the coordinator leaves; its slots run on')
      await coordinator.leave()
      return processExitCodes.done
    }
    log(outcome.kind === 'failed' ? 'error' : 'info', wordsOf(outcome, config.job.start), { outcome: outcome.kind })
    if (outcome.kind === 'fenced') {
      await coordinator.leave()
      return processExitCodes.fenced
    }
    if (command.stays) {
      log('info', 'REST is served until SIGTERM')
      await told.promise
    }
    log(
      'info',
      'the workers are sent home and this process ends; from now on millrace status --config and millrace admin restore-point read from HEAD how the job ended',
    )
    await coordinator.close()
    return processExitCodes.done
  } catch (error) {
    log('error', error instanceof Error ? error.message : String(error))
    await coordinator.leave()
    return mayGoBetter(error) ? processExitCodes.failed : processExitCodes.badInput
  }
}

function wordsOf(outcome: JobOutcome, start: number): string {
  switch (outcome.kind) {
    case 'failed':
      return `the job has failed (mend the cause, then raise job.start above ${start} to go on from its restore point): ${outcome.reason}`
    case 'fenced':
      return 'another coordinator runs the job'
    case 'ended':
      return outcome.head.end.kind === 'none' || outcome.head.start > start
        ? `start ${outcome.head.start} of the job has begun since: raise job.start above it to begin another`
        : `start ${start} of the job has ended (${outcome.head.end.kind}): raise job.start to begin the next`
    case 'stopped':
      if (outcome.savepoint.drained === true)
        return `the job was drained with savepoint ${outcome.savepoint.id}, and has finished`
      return `the job is stopped with savepoint ${outcome.savepoint.id}: raise job.start above ${start} to go on from there`
    case 'suspended':
      return `the job is suspended: raise job.start above ${start} to go on from its last checkpoint`
    case 'finished':
    case 'cancelled':
      return `the job is ${outcome.kind}`
    default:
      return outcome satisfies never
  }
}
