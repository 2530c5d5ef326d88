// What the command line says. It reads no file: whether a job file exists is found when it is run.

import { basename, dirname, extname, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { commandError } from './errors.ts'

export interface RunCommand {
  readonly kind: 'run'
  readonly jobFile: string
  /** Of --args. */
  readonly args: Readonly<Record<string, unknown>>
  /** Of --arg, in their order: texts, whose meaning the job's schema decides. */
  readonly namedArgs: readonly (readonly [name: string, value: string])[]
  readonly parallelism: number | undefined
  readonly checkpointIntervalMs: number | undefined
  readonly folder: string | undefined
  readonly freeze: boolean
  readonly name: string
}

export type Command = { readonly kind: 'help' } | { readonly kind: 'version' } | RunCommand

export const helpText = `millrace run <job file> [options]   run a job on this machine, or go on with it

  --args JSON                 the job's arguments, as an object
  --arg name=value            one argument; may be given again; wins over --args
  --parallelism N             subtasks of each operator that does not set its own;
                              default: what the job's config says, else 2 (1 on a machine with one processor)
  --checkpoint-interval MS    from one checkpoint to the next; default: what the job's config says, else 10000
  --name NAME                 the job's name; default: the job file's name without its ending, or its folder's name
                              for job.ts, main.ts and index.ts
  --folder DIR                work as if started in DIR: relative paths, and .millrace with the jobs' checkpoints
  --no-freeze                 do not freeze records: faster, but a job that changes a record in place goes unnoticed

millrace --help      this text
millrace --version   the version

The same command again goes on with a job that was interrupted, however it was. After a job has finished or failed
it begins a new one: <name>.2, <name>.3 ... Ctrl-C suspends; a second one leaves at once, which loses nothing either.

Exit codes: 0 the job finished or was suspended, 1 it failed, 2 the command line or the job file is wrong,
130 or 143 left at once by a second Ctrl-C or SIGTERM.
MILLRACE_DEBUG=1 shows log lines of all levels and the stacks of errors.`

const options = {
  args: { type: 'string' },
  arg: { type: 'string', multiple: true },
  parallelism: { type: 'string' },
  'checkpoint-interval': { type: 'string' },
  folder: { type: 'string' },
  name: { type: 'string' },
  'no-freeze': { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  version: { type: 'boolean' },
} as const

/** Throws MR-L10 or MR-L11. */
export function parseCommandLine(argv: readonly string[]): Command {
  const { values, positionals } = parsed(argv)
  if (values.help === true) return { kind: 'help' }
  if (values.version === true) return { kind: 'version' }
  const [verb, jobFile, ...rest] = positionals
  if (verb === undefined) throw commandError('MR-L10', 'It names no command.')
  if (verb !== 'run') throw commandError('MR-L10', `There is no command ${verb}.`)
  if (jobFile === undefined) throw commandError('MR-L10', 'run needs a job file.')
  if (rest.length > 0) throw commandError('MR-L10', `run takes one job file; there is also ${rest.join(' ')}.`)
  return {
    kind: 'run',
    jobFile,
    args: values.args === undefined ? {} : objectOf(values.args),
    namedArgs: (values.arg ?? []).map(namedArg),
    parallelism: wholeNumber('parallelism', values.parallelism),
    checkpointIntervalMs: wholeNumber('checkpoint-interval', values['checkpoint-interval']),
    folder: values.folder,
    freeze: values['no-freeze'] !== true,
    name: values.name ?? nameOf(jobFile),
  }
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true })
  } catch (error) {
    // Its first sentence names the option; what follows is advice for commands that take dashes as words.
    const [said = ''] = (error as Error).message.split('. ')
    throw commandError('MR-L10', said.endsWith('.') ? said : `${said}.`, error)
  }
}

function objectOf(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    throw commandError('MR-L11', `--args is no JSON: ${(error as Error).message}.`, error)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw commandError('MR-L11', `--args is ${text}; it must be an object, such as '{"input":"a.csv"}'.`)
  return value as Record<string, unknown>
}

function namedArg(text: string): readonly [string, string] {
  const equals = text.indexOf('=')
  if (equals < 1) throw commandError('MR-L11', `--arg ${text}; it must be name=value.`)
  return [text.slice(0, equals), text.slice(equals + 1)]
}

function wholeNumber(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (!/^\d+$/.test(text) || value < 1 || !Number.isSafeInteger(value))
    throw commandError('MR-L11', `--${option} is ${text}; it must be a whole number from 1.`)
  return value
}

/** File names that say what every job file is; their folder says which one. */
const generalNames = new Set(['job', 'main', 'index'])

function nameOf(jobFile: string): string {
  const name = basename(jobFile, extname(jobFile))
  return generalNames.has(name) ? basename(dirname(resolve(jobFile))) : name
}
