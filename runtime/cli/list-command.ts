// `millrace list`: the local jobs of a folder, or the one behind an address, a line each.

import type { RemoteTarget } from './control-words.ts'
import { controlHelp, remoteTarget, targetOptions } from './control-words.ts'
import { commandError } from './errors.ts'
import { localWorld } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { reach } from './remote-job.ts'
import { overJob, remoteOverview, showAll } from './status-command.ts'
import { notEmpty, readWords } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface ListCommand {
  readonly kind: 'list'
  /** undefined: the local jobs. */
  readonly target: RemoteTarget | undefined
  readonly folder: string | undefined
  readonly json: boolean
}

const help = `millrace list [options]   the jobs that are here, a line each; or the one behind an address

  --json             as JSON
${controlHelp}

Exit codes: 0 told, 1 something of it could not be read, 2 the command line is wrong.`

export const listSyntax: CommandSyntax<ListCommand> = {
  name: 'list',
  takes: '',
  summary: 'the jobs that are here, a line each',
  help,
  parse: (words) => {
    const options = { json: { type: 'boolean' }, ...targetOptions } as const
    const { values, positionals } = readWords({ command: 'list', words, options })
    if (positionals.length > 0)
      throw commandError('MR-L10', `list takes no job; millrace status ${positionals[0]} shows one.`)
    return {
      kind: 'list',
      target: remoteTarget({ command: 'list', positionals, values }),
      folder: notEmpty('folder', values.folder),
      json: values.json === true,
    }
  },
}

/** Whether all of it could be read. */
export async function listJobs({ target, folder, json }: ListCommand, edge: ControlEdge): Promise<boolean> {
  if (target === undefined) return showAll(json, edge, await localWorld(edge, folder))
  const reached = await reach(target, edge)
  const { job, state } =
    reached.kind === 'answers'
      ? { job: reached.job, state: reached.job.state }
      : { job: overJob(reached), state: reached.head.end.kind }
  edge.terminal.print(json ? JSON.stringify([job], undefined, 2) : remoteOverview(job, state))
  return true
}
