// What `millrace validate` is told.

import { isManifest } from './job-name.ts'
import { commandError } from './errors.ts'
import { jsonObject, namedValues, notEmpty, onlyWord, readWords, wholeNumber } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface ValidateCommand {
  readonly kind: 'validate'
  readonly jobFile: string
  readonly args: Readonly<Record<string, unknown>>
  readonly namedArgs: readonly (readonly [name: string, value: string])[]
  readonly parallelism: number | undefined
  readonly configMaps: readonly (readonly [name: string, path: string])[]
  readonly json: boolean
}

const help = `millrace validate <job file | manifest> [options]   check a job without running it; nothing is written

Checks types by the TypeScript compiler that is found from the job file's folder upward, else by the one beside millrace;
loads the job file; builds the graph; shows vertices, edges and uids.

  --args JSON                 the job's arguments, as an object
  --arg name=value            one argument; may be given again; wins over --args
  --parallelism N             number of subtasks, as for run
  --config-map NAME=PATH      the file or folder that a manifest's program.module.configMap NAME stands for
  --json                      the result as JSON

Of a manifest whose code is in an image, the fields alone are checked.

Exit codes: 0 the job can run (types were checked, or it is JavaScript), 2 something is wrong, 3 nothing wrong was found but types
could not be checked, or the code is in an image.`

const options = {
  args: { type: 'string' },
  arg: { type: 'string', multiple: true },
  parallelism: { type: 'string' },
  'config-map': { type: 'string', multiple: true },
  json: { type: 'boolean' },
} as const

export const validateSyntax: CommandSyntax<ValidateCommand> = {
  name: 'validate',
  takes: '<job file | manifest>',
  summary: 'check its types, graph and uids without running it',
  help,
  parse: (words) => {
    const { values, positionals } = readWords({ command: 'validate', words, options })
    const jobFile = onlyWord({ command: 'validate', what: 'job file', words: positionals })
    const configMaps = namedValues('config-map', values['config-map'])
    for (const [name, path] of configMaps) notEmpty(`config-map ${name}=`, path)
    if (configMaps.length > 0 && !isManifest(jobFile))
      throw commandError('MR-L11', `--config-map is for manifests; ${jobFile} is none.`)
    return {
      kind: 'validate',
      jobFile,
      args: jsonObject('args', values.args),
      namedArgs: namedValues('arg', values.arg),
      parallelism: wholeNumber('parallelism', values.parallelism),
      configMaps,
      json: values.json === true,
    }
  },
}
