#!/usr/bin/env node
// The `millrace` command's edge: the only file of it that reads the process's arguments and environment.

import { readFileSync } from 'node:fs'
import { availableParallelism, hostname } from 'node:os'
import { inspect } from 'node:util'
import { MillraceError } from '../base/errors.ts'
import { parseFailpoints } from '../local/failpoint-plan.ts'
import { keepCompiledCode } from '../local/platform/compile-cache.ts'
import { startEarlyThreads } from '../local/platform/early-threads.ts'
import { resolveOwnModules } from '../local/platform/own-modules.ts'
import { exitCodes } from './exit-codes.ts'
import type { ControlEdge } from './named-job.ts'
import { handleSignals } from './signals.ts'
import { Terminal } from './terminal.ts'
import type { ProcessEdge } from './worker-command.ts'

// Before all that is imported below.
keepCompiledCode()
resolveOwnModules()

const terminal = new Terminal({ output: process.stdout, errors: process.stderr })
const debug = (process.env['MILLRACE_DEBUG'] ?? '') !== ''

/** Of the L table: the summary could not be made; the job does not run, or no more. */
const notUsage: ReadonlySet<string> = new Set(['MR-L14', 'MR-L31', 'MR-L38'])
/** What `--from` names cannot be begun at. */
const usageToo: ReadonlySet<string> = new Set([
  'MR-S15',
  'MR-S17',
  'MR-S18',
  'MR-C17',
  'MR-D30',
  'MR-D31',
  'MR-D32',
  'MR-W37',
  'MR-S39',
])
const controlEdge: ControlEdge = { terminal, folder: process.cwd(), debug }

process.exitCode = await main()
// Something a job left open in this thread (a timer, a socket) must not keep a finished command.
process.stdout.write('', () => process.stderr.write('', () => process.exit()))

async function main(): Promise<number> {
  let isProcess = false
  try {
    const words = process.argv.slice(2)
    const processors = availableParallelism()
    const early = startEarlyThreads(words, processors)
    const { parseCommandLine } = await import('./command-line.ts')
    const command = parseCommandLine(words)
    switch (command.kind) {
      case 'help':
        terminal.print(command.text)
        return exitCodes.done
      case 'version':
        terminal.print(version())
        return exitCodes.done
      // All of the runtime is loaded for those alone that need it: the others are to answer at once.
      case 'run':
        return await (
          await import('./run-command.ts')
        ).runJob(command, {
          terminal,
          folder: () => process.cwd(),
          changeFolder: (folder) => process.chdir(folder),
          processors,
          debug,
          failpoints: parseFailpoints(process.env['MILLRACE_FAILPOINTS'] ?? ''),
          early,
          onSignal: handleSignals,
        })
      case 'validate':
        return await (
          await import('./validate-command.ts')
        ).validateJob(command, {
          terminal,
          folder: () => process.cwd(),
          processors: availableParallelism(),
        })
      case 'status':
        return (await (await import('./status-command.ts')).showStatus(command, controlEdge))
          ? exitCodes.done
          : exitCodes.failed
      case 'list':
        return (await (await import('./list-command.ts')).listJobs(command, controlEdge))
          ? exitCodes.done
          : exitCodes.failed
      case 'checkpoints':
        await (await import('./checkpoints-command.ts')).showCheckpoints(command, controlEdge)
        return exitCodes.done
      case 'exceptions':
        await (await import('./exceptions-command.ts')).showExceptions(command, controlEdge)
        return exitCodes.done
      case 'savepoint':
        await (await import('./savepoint-command.ts')).takeSavepoint(command, controlEdge)
        return exitCodes.done
      case 'stop':
        await (await import('./stop-command.ts')).stopJob(command, controlEdge)
        return exitCodes.done
      case 'rescale':
        await (await import('./rescale-command.ts')).rescaleJob(command, controlEdge)
        return exitCodes.done
      case 'admin':
        return await (
          await import('./admin-command.ts')
        ).runAdmin(command, {
          ...controlEdge,
          changeFolder: (folder) => process.chdir(folder),
          processors: availableParallelism(),
        })
      case 'preflight':
        return await (await import('./preflight-command.ts')).runPreflight(command, controlEdge)
      case 'cancel':
        await (await import('./cancel-command.ts')).cancelJob(command, controlEdge)
        return exitCodes.done
      case 'coordinator':
        isProcess = true
        return await (await import('./coordinator-command.ts')).runCoordinator(command, processEdge())
      case 'worker':
        isProcess = true
        return await (await import('./worker-command.ts')).runWorker(command, processEdge())
      default:
        return command satisfies never
    }
  } catch (error) {
    terminal.setStatus('')
    terminal.say(debug || !(error instanceof MillraceError) ? inspect(error) : error.message)
    if (!(error instanceof MillraceError)) return exitCodes.failed
    // A supervisor starts a process again unless another try would end in the same way.
    const isFinal = isProcess ? !error.retry : isUsage(error)
    return isFinal ? exitCodes.usage : exitCodes.failed
  }
}

/** Of the commands that are a process of a distributed job. */
function processEdge(): ProcessEdge {
  const [program, script, ...words] = process.argv as [string, string, ...string[]]
  const own = words.filter((word) => word !== '--supervised')
  return {
    folder: process.cwd(),
    hostName: hostname(),
    pid: process.pid,
    version: version(),
    failpoints: parseFailpoints(process.env['MILLRACE_FAILPOINTS'] ?? ''),
    self: [program, ...process.execArgv, script, ...own],
    writeLog: (line) => void process.stderr.write(line),
    onSignal: handleSignals,
    kill: () => process.kill(process.pid, 'SIGKILL'),
  }
}

/** The command line, the job file, or what the job file says of its sources and sinks is wrong; all else is a failure to run. */
function isUsage({ code, retry }: MillraceError): boolean {
  return usageToo.has(code) || (/^MR-[LJN]/.test(code) && !notUsage.has(code) && !retry)
}

/** From the package's own description, which lies beside the source and beside the compiled form at different depths. */
function version(): string {
  const description = new URL(
    import.meta.url.endsWith('.ts') ? '../../package.json' : '../../../package.json',
    import.meta.url,
  )
  return (JSON.parse(readFileSync(description, 'utf8')) as { readonly version: string }).version
}
