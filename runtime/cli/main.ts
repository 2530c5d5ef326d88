#!/usr/bin/env node
// The `millrace` command's edge: the only file of it that reads the process's arguments and environment.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { inspect } from 'node:util'
import { MillraceError } from '../base/errors.ts'
import { parseFailpoints } from '../local/failpoint-plan.ts'
import { keepCompiledCode } from '../local/platform/compile-cache.ts'
import { exitCodes } from './exit-codes.ts'
import type { ControlEdge } from './named-job.ts'
import { Terminal } from './terminal.ts'

// Before all that is imported below.
keepCompiledCode()

const terminal = new Terminal({ output: process.stdout, errors: process.stderr })
const debug = (process.env['MILLRACE_DEBUG'] ?? '') !== ''

/** npm passes a Ctrl-C on to a command that the terminal has told of it already: signals so close together are one. */
const sameSignalMs = 500

/** As shells count signals. */
const signals = { SIGINT: 130, SIGTERM: 143 } as const
let lastSignalMs = -Infinity

/** Only once a job runs: before that a signal ends the process by itself, also one whose job file never comes to its end. */
function handleSignals(handler: () => boolean): void {
  for (const [signal, exitCode] of Object.entries(signals)) {
    process.on(signal, () => {
      if (performance.now() - lastSignalMs < sameSignalMs) return
      lastSignalMs = performance.now()
      // It was asked to end in vain: leave. Whatever happens, the store stays right.
      if (!handler()) process.exit(exitCode)
    })
  }
}

/** Of the L table: the summary could not be made; the job does not run. */
const notUsage: ReadonlySet<string> = new Set(['MR-L14', 'MR-L31'])
/** What `--from` names cannot be begun at. */
const usageToo: ReadonlySet<string> = new Set(['MR-S15', 'MR-S17', 'MR-S18', 'MR-C17'])
const controlEdge: ControlEdge = { terminal, folder: process.cwd(), debug }

process.exitCode = await main()
// Something a job left open in this thread (a timer, a socket) must not keep a finished command.
process.stdout.write('', () => process.stderr.write('', () => process.exit()))

async function main(): Promise<number> {
  try {
    const { parseCommandLine } = await import('./command-line.ts')
    const command = parseCommandLine(process.argv.slice(2))
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
          processors: availableParallelism(),
          debug,
          failpoints: parseFailpoints(process.env['MILLRACE_FAILPOINTS'] ?? ''),
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
      case 'checkpoints':
        await (await import('./checkpoints-command.ts')).showCheckpoints(command, controlEdge)
        return exitCodes.done
      case 'savepoint':
        await (await import('./savepoint-command.ts')).takeSavepoint(command, controlEdge)
        return exitCodes.done
      case 'stop':
        await (await import('./stop-command.ts')).stopJob(command, controlEdge)
        return exitCodes.done
      case 'cancel':
        await (await import('./cancel-command.ts')).cancelJob(command, controlEdge)
        return exitCodes.done
      default:
        return command satisfies never
    }
  } catch (error) {
    terminal.setStatus('')
    terminal.say(debug || !(error instanceof MillraceError) ? inspect(error) : error.message)
    return error instanceof MillraceError && isUsage(error) ? exitCodes.usage : exitCodes.failed
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
