// `millrace worker`: a worker's process of a distributed job.

import { resolve } from 'node:path'
import type { FailpointPlan } from '../local/failpoint-plan.ts'
import { processExitCodes } from '../supervisor/contract.ts'
import { commandError } from './errors.ts'
import { notEmpty, readWords, wholeNumber } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface WorkerCommand {
  readonly kind: 'worker'
  readonly config: string
  readonly name: string | undefined
  readonly slots: number | undefined
  readonly supervised: boolean
}

const help = `millrace worker --config FILE [options]   a worker of a distributed job: runs slots for its coordinator

It looks for the coordinator that the config names until there is one, and runs what it is told to. On SIGTERM or Ctrl-C it asks the
coordinator to move its slots elsewhere, and ends when that is done, or when its grace period (worker.graceMs) is over.

  --config FILE      the process config (JSON or YAML), the same as the coordinator's
  --name NAME        its name among the workers of the job; default: the host's
  --slots N          how many slots it offers; default: the config's worker.slots, else 1
  --supervised       as the first process of a container: runs the worker as a child, and starts it again at once when it dies

Exit codes: 0 it was needed no more, 1 it ended in another way, 2 the command line or the config is wrong, or the coordinator refuses it.`

export const workerSyntax: CommandSyntax<WorkerCommand> = {
  name: 'worker',
  takes: '--config FILE',
  summary: 'run a worker of a distributed job',
  help,
  parse: (words) => {
    const options = {
      config: { type: 'string' },
      name: { type: 'string' },
      slots: { type: 'string' },
      supervised: { type: 'boolean' },
    } as const
    const { values, positionals } = readWords({ command: 'worker', words, options })
    if (positionals.length > 0)
      throw commandError('MR-L10', `worker takes options only; there is also ${positionals.join(' ')}.`)
    const config = notEmpty('config', values.config)
    if (config === undefined) throw commandError('MR-L10', 'worker needs --config FILE.')
    return {
      kind: 'worker',
      config,
      name: notEmpty('name', values.name),
      slots: wholeNumber('slots', values.slots),
      supervised: values.supervised === true,
    }
  },
}

export interface ProcessEdge {
  readonly folder: string
  readonly hostName: string
  readonly pid: number
  readonly version: string
  readonly failpoints: FailpointPlan
  /** This very command without --supervised: program and words. */
  readonly self: readonly [string, ...string[]]
  readonly writeLog: (line: string) => void
  /** false: leave at once. */
  readonly onSignal: (handler: () => boolean) => void
  /** As SIGKILL does: where a thread that does not end would hold up the process's own exit. */
  readonly kill: () => void
}

/** The exit code. Throws MillraceError for a config or a secret that cannot be used. */
export async function runWorker(command: WorkerCommand, edge: ProcessEdge): Promise<number> {
  const { loadProcessConfig } = await import('../distributed/process-config.ts')
  const { NodeFiles } = await import('../local/platform/node-files.ts')
  const { realEnvironment } = await import('../local/platform/real-environment.ts')
  const { jsonLog } = await import('../distributed/platform/json-log.ts')
  const { supervise, endWithSupervisor } = await import('../supervisor/platform/supervise.ts')
  const files = new NodeFiles()
  const unknown: string[] = []
  const config = await loadProcessConfig(resolve(edge.folder, command.config), files, (message) =>
    unknown.push(message),
  )
  const name = command.name ?? edge.hostName
  const fields = { process: command.supervised ? 'supervisor' : 'worker', worker: name, pid: edge.pid }
  const log = jsonLog({ level: config.logLevel ?? 'info', fields, write: edge.writeLog })
  const environment = realEnvironment({ log })
  if (command.supervised) return supervise({ command: edge.self, environment, onSignal: forwarded(edge.onSignal) })
  for (const message of unknown) log('warn', message)
  // Nobody waits for its answer, and an exit would wait for a thread that nothing interrupts.
  endWithSupervisor(() => edge.kill())
  const { startWorker } = await import('../distributed/worker-process.ts')
  const { slots } = command
  const { failpoints, version: runtimeVersion } = edge
  const worker = await startWorker({ config, name, slots, runtimeVersion, environment, files, failpoints })
  let asked = 0
  // The second Ctrl-C does not wait for the coordinator.
  edge.onSignal(() => {
    if (asked++ === 0) worker.leave()
    return asked === 1
  })
  const { reason, error, final, hangs } = await worker.ended
  log(error === undefined ? 'info' : 'error', error?.message ?? `the worker ends: ${reason}`)
  if (hangs === true) edge.kill()
  if (error === undefined) return processExitCodes.done
  return final ? processExitCodes.badInput : processExitCodes.failed
}

/** Every signal goes on to the child, which decides. */
export function forwarded(onSignal: ProcessEdge['onSignal']): (callback: (signal: NodeJS.Signals) => void) => void {
  return (callback) =>
    onSignal(() => {
      callback('SIGTERM')
      return true
    })
}
