// What `millrace preflight` is told.

import { outputForm } from './admin-options.ts'
import type { OutputForm } from './admin-options.ts'
import { commandError } from './errors.ts'
import { notEmpty, readWords } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface PreflightCommand {
  readonly kind: 'preflight'
  readonly config: string
  /** A savepoint or checkpoint; undefined: what the config says, else HEAD's restore point. */
  readonly against: string | undefined
  readonly output: OutputForm
}

const help = `millrace preflight --config FILE [options]   whether a revision of a job could begin where the job is; nothing is written

Loads the job's module as its processes do, builds the graph, and holds uids, codecs and max parallelism against HEAD's restore point.

  --config FILE      the process config of the revision
  --against PATH     hold it against this savepoint or checkpoint instead: s3://…, or a path
  --output FORM      text, or json: one line, the last of the output

Exit codes: 0 yes, 2 the command line or the config is wrong, 3 no, with every reason, 4 could not run: nothing is known.`

export const preflightSyntax: CommandSyntax<PreflightCommand> = {
  name: 'preflight',
  takes: '--config FILE',
  summary: 'whether a revision of a job could begin where the job is',
  help,
  parse: (words) => {
    const options = { config: { type: 'string' }, against: { type: 'string' }, output: { type: 'string' } } as const
    const { values, positionals } = readWords({ command: 'preflight', words, options })
    if (positionals.length > 0) throw commandError('MR-L10', `preflight does not take ${positionals.join(' ')}.`)
    const config = notEmpty('config', values.config)
    if (config === undefined) throw commandError('MR-L10', 'preflight needs --config.')
    return {
      kind: 'preflight',
      config,
      against: notEmpty('against', values.against),
      output: outputForm(values.output),
    }
  },
}
