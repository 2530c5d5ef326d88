// What `millrace admin` is told.

import { commandError } from './errors.ts'
import { jsonObject, namedValues, notEmpty, readWords, wholeNumber } from './words.ts'
import type { CommandSyntax } from './words.ts'

/** Where HEAD and store of the job are. */
export type AdminTarget =
  /** A process config, which names the job's code too. */
  | { readonly kind: 'config'; readonly file: string }
  | { readonly kind: 'storage'; readonly url: string; readonly job: string; readonly s3: S3Words }
  /** One of this machine: an id or a name, or a job file or manifest, which then is its code too. */
  | ({ readonly kind: 'local'; readonly job: string; readonly folder: string | undefined } & LocalCode)

export interface S3Words {
  readonly endpoint?: string
  readonly region?: string
  readonly forcePathStyle?: boolean
}

export interface LocalCode {
  readonly args: Readonly<Record<string, unknown>>
  readonly namedArgs: readonly (readonly [name: string, value: string])[]
  readonly configMaps: readonly (readonly [name: string, path: string])[]
}

export type AdminAction =
  | { readonly verb: 'close'; readonly start: number | undefined; readonly deleted: boolean }
  | { readonly verb: 'restore-point'; readonly deep: boolean }
  | { readonly verb: 'commit'; readonly assumeCommitted: boolean }
  | { readonly verb: 'dispose'; readonly what: Disposal }
  | { readonly verb: 'sweep'; readonly jobIsDown: boolean }

export type Disposal =
  | { readonly kind: 'savepoint'; readonly path: string; readonly foreign: boolean }
  | { readonly kind: 'checkpoints' }

export type OutputForm = 'text' | 'json'

export interface AdminCommand {
  readonly kind: 'admin'
  readonly action: AdminAction
  readonly target: AdminTarget
  /** Do it; else only say what would be done. */
  readonly apply: boolean
  readonly output: OutputForm
}

const help = `millrace admin <what> [options]   work on HEAD and the store of a job that nobody runs

Each says what it would do, and does it with --yes. Given again after any interruption it finishes what was begun.

  close              end the job's start, so that nothing new can be permitted: suspended, or with --deleted cancelled
    --start N          only if HEAD is at this start
    --deleted          the job is over for good; written over any other end
  restore-point      where the next start begins by default, and whether all of it is there; changes nothing
    --deep             read all of its state and compare the checksums
  commit             make the commits that HEAD permits, with the job's own code, and confirm them in HEAD
    --assume-committed a transaction that is not known any more counts as committed
  dispose PATH       take a savepoint away, unless a HEAD needs it
    --foreign          also one of another job
  dispose --checkpoints
                     take away what HEAD of a cancelled job retains
  sweep              take away objects that HEAD does not name, and with the job's code open transactions of attempts that are gone
    --job-is-down      though HEAD shows no end: neither coordinator nor workers run

Which job:
  --config FILE      its process config, which names its code too
  --storage URL      its store, s3://bucket/prefix or file:///folder, with
  --job ID           its id; credentials come from the environment
    --s3-endpoint URL, --s3-region NAME, --s3-path-style
  --job JOB          without --storage one of this machine: its id, its name, or its job file or manifest, which then is its code too
    --folder DIR       the folder that it was started in, if not this one
    --args JSON, --arg name=value, --config-map NAME=PATH
                       as they were given to run

  --yes              do it
  --output FORM      text, or json: one line, the last of the output

Exit codes: 0 done, or nothing to do, 2 the command line, the config or the job file is wrong, 3 refused, 4 unclear, as the store did not
answer: ask again.`

const targetOptions = {
  config: { type: 'string' },
  storage: { type: 'string' },
  job: { type: 'string' },
  folder: { type: 'string' },
  's3-endpoint': { type: 'string' },
  's3-region': { type: 'string' },
  's3-path-style': { type: 'boolean' },
  args: { type: 'string' },
  arg: { type: 'string', multiple: true },
  'config-map': { type: 'string', multiple: true },
  output: { type: 'string' },
} as const
const yes = { yes: { type: 'boolean' } } as const

export const adminSyntax: CommandSyntax<AdminCommand> = {
  name: 'admin',
  takes: '<what>',
  summary: 'work on HEAD and the store of a job that nobody runs',
  help,
  parse: ([verb, ...words]) => {
    const command = `admin ${verb}`
    switch (verb) {
      case 'close': {
        const options = { ...targetOptions, ...yes, start: { type: 'string' }, deleted: { type: 'boolean' } } as const
        const { values, positionals } = readWords({ command, words, options })
        const action = { verb, start: wholeNumber('start', values.start), deleted: values.deleted === true } as const
        return adminCommand({ command, action, values, positionals })
      }
      case 'restore-point': {
        const options = { ...targetOptions, deep: { type: 'boolean' } } as const
        const { values, positionals } = readWords({ command, words, options })
        return adminCommand({ command, action: { verb, deep: values.deep === true }, values, positionals })
      }
      case 'commit': {
        const options = { ...targetOptions, ...yes, 'assume-committed': { type: 'boolean' } } as const
        const { values, positionals } = readWords({ command, words, options })
        const action = { verb, assumeCommitted: values['assume-committed'] === true } as const
        return adminCommand({ command, action, values, positionals })
      }
      case 'dispose': {
        const more = { foreign: { type: 'boolean' }, checkpoints: { type: 'boolean' } } as const
        const { values, positionals } = readWords({ command, words, options: { ...targetOptions, ...yes, ...more } })
        const [path, ...rest] = positionals
        const action = { verb, what: disposal(path, values) } as const
        return adminCommand({ command, action, values, positionals: rest })
      }
      case 'sweep': {
        const options = { ...targetOptions, ...yes, 'job-is-down': { type: 'boolean' } } as const
        const { values, positionals } = readWords({ command, words, options })
        const action = { verb, jobIsDown: values['job-is-down'] === true } as const
        return adminCommand({ command, action, values, positionals })
      }
      default:
        throw commandError(
          'MR-L10',
          `admin ${verb === undefined ? 'needs a word' : `has no ${verb}`}: close, restore-point, commit, dispose or sweep.`,
        )
    }
  },
}

function disposal(
  path: string | undefined,
  { foreign = false, checkpoints = false }: { readonly foreign?: boolean; readonly checkpoints?: boolean },
): Disposal {
  if (checkpoints === (path !== undefined))
    throw commandError('MR-L10', 'admin dispose needs either the path of a savepoint or --checkpoints.')
  if (path === undefined) {
    if (foreign) throw commandError('MR-L10', 'admin dispose: --foreign is about a savepoint.')
    return { kind: 'checkpoints' }
  }
  return { kind: 'savepoint', path: notEmpty('path', path)!, foreign }
}

interface TargetValues {
  readonly config?: string
  readonly storage?: string
  readonly job?: string
  readonly folder?: string
  readonly 's3-endpoint'?: string
  readonly 's3-region'?: string
  readonly 's3-path-style'?: boolean
  readonly args?: string
  readonly arg?: string[]
  readonly 'config-map'?: string[]
  readonly output?: string
  readonly yes?: boolean
}

function adminCommand({
  command,
  action,
  values,
  positionals,
}: {
  readonly command: string
  readonly action: AdminAction
  readonly values: TargetValues
  readonly positionals: readonly string[]
}): AdminCommand {
  if (positionals.length > 0) throw commandError('MR-L10', `${command} does not take ${positionals.join(' ')}.`)
  const output = outputForm(values.output)
  return { kind: 'admin', action, target: targetOf(command, values), apply: values.yes === true, output }
}

/** Throws MR-L11. */
export function outputForm(text: string | undefined): OutputForm {
  if (text === undefined || text === 'text' || text === 'json') return text ?? 'text'
  throw commandError('MR-L11', `--output is ${text}; it must be text or json.`)
}

/** What belongs to each way of naming a job; given with another one it would do nothing unnoticed. */
const s3Names = ['s3-endpoint', 's3-region', 's3-path-style'] as const
const localNames = ['folder', 'args', 'arg', 'config-map'] as const

function targetOf(command: string, values: TargetValues): AdminTarget {
  const refuse = (names: readonly (keyof TargetValues)[], why: string): void => {
    const given = names.find((name) => values[name] !== undefined)
    if (given !== undefined) throw commandError('MR-L10', `${command}: --${given} ${why}.`)
  }
  const config = notEmpty('config', values.config)
  const url = notEmpty('storage', values.storage)
  const job = notEmpty('job', values.job)
  if (config !== undefined) {
    refuse(['storage', 'job', ...s3Names, ...localNames], 'is what --config says')
    return { kind: 'config', file: config }
  }
  if (job === undefined) throw commandError('MR-L10', `${command} needs --config, or --job, for whose job it is.`)
  if (url !== undefined) {
    refuse(localNames, 'is for a job of this machine, which --storage is not')
    const endpoint = notEmpty('s3-endpoint', values['s3-endpoint'])
    const region = notEmpty('s3-region', values['s3-region'])
    const s3 = {
      ...(endpoint !== undefined && { endpoint }),
      ...(region !== undefined && { region }),
      ...(values['s3-path-style'] === true && { forcePathStyle: true }),
    }
    return { kind: 'storage', url, job, s3 }
  }
  refuse(s3Names, 'is for --storage')
  return {
    kind: 'local',
    job,
    folder: notEmpty('folder', values.folder),
    args: jsonObject('args', values.args),
    namedArgs: namedValues('arg', values.arg),
    configMaps: namedValues('config-map', values['config-map']),
  }
}
