#!/usr/bin/env node
// The `millrace` command's edge: the only file of it that reads the process's arguments and environment.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { inspect } from 'node:util'
import { MillraceError } from '../base/errors.ts'
import { parseFailpoints } from '../local/failpoint-plan.ts'
import { helpText, parseCommandLine } from './command-line.ts'
import { exitCodes, runJob } from './run-command.ts'
import { Terminal } from './terminal.ts'

const terminal = new Terminal({ output: process.stdout, errors: process.stderr })
const debug = (process.env['MILLRACE_DEBUG'] ?? '') !== ''

/** npm passes a Ctrl-C on to a command that the terminal has told of it already: signals so close together are one. */
const sameSignalMs = 500

/** As shells count signals. */
const signals = { SIGINT: 130, SIGTERM: 143 } as const
let onFirstSignal: (() => void) | undefined
let firstSignalMs = -Infinity
for (const [signal, exitCode] of Object.entries(signals)) {
  process.on(signal, () => {
    if (performance.now() - firstSignalMs < sameSignalMs) return
    firstSignalMs = performance.now()
    const handler = onFirstSignal
    onFirstSignal = undefined
    // Before the job runs, and the second time: leave. Whatever happens, the store stays right.
    if (handler === undefined) process.exit(exitCode)
    handler()
  })
}

process.exitCode = await main()
// Something a job left open in this thread (a timer, a socket) must not keep a finished command.
process.stdout.write('', () => process.stderr.write('', () => process.exit()))

async function main(): Promise<number> {
  try {
    const command = parseCommandLine(process.argv.slice(2))
    switch (command.kind) {
      case 'help':
        terminal.print(helpText)
        return exitCodes.done
      case 'version':
        terminal.print(version())
        return exitCodes.done
      case 'run':
        return await runJob(command, {
          terminal,
          folder: () => process.cwd(),
          changeFolder: (folder) => process.chdir(folder),
          processors: availableParallelism(),
          debug,
          failpoints: parseFailpoints(process.env['MILLRACE_FAILPOINTS'] ?? ''),
          onFirstSignal: (handler) => {
            onFirstSignal = handler
          },
        })
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
  return /^MR-[LJN]/.test(code) && code !== 'MR-L14' && !retry
}

/** From the package's own description, which lies beside the source and beside the compiled form at different depths. */
function version(): string {
  const description = new URL(
    import.meta.url.endsWith('.ts') ? '../../package.json' : '../../../package.json',
    import.meta.url,
  )
  return (JSON.parse(readFileSync(description, 'utf8')) as { readonly version: string }).version
}
