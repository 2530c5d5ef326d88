// What `millrace run` is told.

import { checkedJobName, isManifest } from './job-name.ts'
import { commandError } from './errors.ts'
import { jsonObject, localFolder, namedValues, notEmpty, onlyWord, readWords, wholeNumber } from './words.ts'
import type { CommandSyntax } from './words.ts'

/** undefined: the manifest says it, or the job's config, or the default. */
export interface RunCommand {
  readonly kind: 'run'
  /** A TypeScript or JavaScript file, or a StreamJob manifest. */
  readonly jobFile: string
  /** Of --args. */
  readonly args: Readonly<Record<string, unknown>>
  /** Of --arg, in their order: texts, whose meaning the job's schema decides. */
  readonly namedArgs: readonly (readonly [name: string, value: string])[]
  readonly parallelism: number | undefined
  readonly slots: number | undefined
  readonly checkpointIntervalMs: number | undefined
  readonly from: string | undefined
  readonly allowNonRestoredState: boolean
  readonly allowDrained: boolean
  readonly assumeCommitted: boolean
  /** Of --config-map: what a ConfigMap of a manifest holds. */
  readonly configMaps: readonly (readonly [name: string, path: string])[]
  readonly folder: string | undefined
  readonly freeze: boolean
  readonly skipTypes: boolean
  readonly name: string | undefined
}

const help = `millrace run <job file | manifest> [options]   run a job on this machine, or go on with it

A job file is TypeScript or JavaScript that exports a job. A manifest is YAML with one StreamJob: it names the job file,
its arguments and its settings; what is given here wins over it, and what it has for a cluster alone is said and not used.
Types of a TypeScript job are checked first, as millrace validate does; without a compiler that is said, and the job runs.

  --args JSON                 the job's arguments, as an object
  --arg name=value            one argument; may be given again; wins over --args
  --parallelism N             number of subtasks of each operator that does not set its own;
                              default: what the job's config says, else 2 (1 on a machine with one processor)
  --slots N                   number of threads that may run them; default: as many as the job needs
  --checkpoint-interval MS    milliseconds from one checkpoint to the next, a whole number; default: what the job's config says,
                              else 10000 (10 s); a manifest's durations have a unit instead: interval: 10s
  --from PATH                 begin from this savepoint, or from this checkpoint of the job; a relative path is meant where the
                              command was given, also with --folder
  --allow-non-restored-state  go on though it holds state of operators that the job does not have any more
  --allow-drained             take a savepoint of a job that was drained: its event time has ended
  --assume-committed          transactions that are to be committed and are not known any more count as committed: for a copied
                              savepoint whose job has committed them elsewhere
  --name NAME                 the job's name; default: the job file's name without its ending, or its folder's name
                              for job.ts, main.ts and index.ts
  --config-map NAME=PATH      the file or folder that a manifest's program.module.configMap NAME stands for
  --folder DIR                work as if started in DIR: the job's relative paths, and .millrace with its checkpoints
  --skip-types                do not check the types of a TypeScript job first
  --no-freeze                 do not freeze records: faster, but a job that changes a record in place goes unnoticed

The same command again goes on with a job that was interrupted, however it was. After a job has finished or failed
it begins a new one: <name>.2, <name>.3 ... Ctrl-C stops it with a savepoint, from which the same command goes on; a
second one suspends it at its last checkpoint instead; a third one leaves at once. None of them loses anything.
millrace status, checkpoints, savepoint, stop and cancel reach it from another terminal.

Exit codes: 0 the job finished, was stopped or suspended, 1 it failed, was cancelled or taken over, 2 the command line or the job
file is wrong, 130 or 143 left at once by a third Ctrl-C or SIGTERM.
MILLRACE_DEBUG=1 shows log lines of all levels and the stacks of errors.`

const options = {
  args: { type: 'string' },
  arg: { type: 'string', multiple: true },
  parallelism: { type: 'string' },
  slots: { type: 'string' },
  'checkpoint-interval': { type: 'string' },
  from: { type: 'string' },
  'allow-non-restored-state': { type: 'boolean' },
  'allow-drained': { type: 'boolean' },
  'assume-committed': { type: 'boolean' },
  'config-map': { type: 'string', multiple: true },
  folder: { type: 'string' },
  name: { type: 'string' },
  'skip-types': { type: 'boolean' },
  'no-freeze': { type: 'boolean' },
} as const

export const runSyntax: CommandSyntax<RunCommand> = {
  name: 'run',
  takes: '<job file | manifest>',
  summary: 'run a job on this machine, or go on with it',
  help,
  parse: (words) => {
    const { values, positionals } = readWords({ command: 'run', words, options })
    const jobFile = onlyWord({ command: 'run', what: 'job file', words: positionals })
    const configMaps = namedValues('config-map', values['config-map'])
    for (const [name, path] of configMaps) notEmpty(`config-map ${name}=`, path)
    if (configMaps.length > 0 && !isManifest(jobFile))
      throw commandError('MR-L11', `--config-map is for manifests; ${jobFile} is none.`)
    if (values.name !== undefined && isManifest(jobFile))
      throw commandError('MR-L11', `--name is ${values.name}; a manifest names its job itself, by metadata.name.`)
    return {
      kind: 'run',
      jobFile,
      args: jsonObject('args', values.args),
      namedArgs: namedValues('arg', values.arg),
      parallelism: wholeNumber('parallelism', values.parallelism),
      slots: wholeNumber('slots', values.slots),
      checkpointIntervalMs: wholeNumber('checkpoint-interval', values['checkpoint-interval'], 'milliseconds'),
      from: localFolder('from', values.from),
      allowNonRestoredState: values['allow-non-restored-state'] === true,
      allowDrained: values['allow-drained'] === true,
      assumeCommitted: values['assume-committed'] === true,
      configMaps,
      folder: notEmpty('folder', values.folder),
      freeze: values['no-freeze'] !== true,
      skipTypes: values['skip-types'] === true,
      name: checkedJobName(values.name),
    }
  },
}
