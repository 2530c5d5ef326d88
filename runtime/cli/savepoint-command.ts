// `millrace savepoint`: takes one of a running job, and copies it where it is wanted.

import { resolve } from 'node:path'
import { orderSnapshot } from './await-job.ts'
import { controlHelp, controlWords, targetOptions, timeoutHelp, timeoutMsOf, timeoutOption } from './control-words.ts'
import type { ControlWords } from './control-words.ts'
import { copySnapshot, refuseTarget } from './copy-snapshot.ts'
import { commandError } from './errors.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { orderRemotely, remoteJob } from './remote-job.ts'
import { checkedRequest, newRequest, requestHelp, requestOption } from './request-word.ts'
import { notEmpty, readWords } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface SavepointCommand extends ControlWords {
  readonly kind: 'savepoint'
  readonly to: string | undefined
  readonly request: string | undefined
  readonly timeoutMs: number
}

const help = `millrace savepoint <job> [options]   take a savepoint of a running job, which runs on; prints its folder

A job is named by its id, its job file or its manifest. The savepoint is yours: the job never deletes it. Its folder holds all
that it needs, and can be copied. millrace run --from begins from it.

  --to DIR           copy it to DIR, which must not be there yet, check every byte, and print that folder
${requestHelp}
${timeoutHelp}
${controlHelp}

Exit codes: 0 it was taken, 1 it was not, 2 the command line is wrong.`

export const savepointSyntax: CommandSyntax<SavepointCommand> = {
  name: 'savepoint',
  takes: '<job>',
  summary: 'take a savepoint of a running job',
  help,
  parse: (words) => {
    const options = { to: { type: 'string' }, ...requestOption, ...timeoutOption, ...targetOptions } as const
    const { values, positionals } = readWords({ command: 'savepoint', words, options })
    const { target } = controlWords({ command: 'savepoint', positionals, values })
    const to = notEmpty('to', values.to)
    if (to !== undefined && target.kind !== 'local')
      throw commandError(
        'MR-L10',
        'savepoint: --to copies a savepoint of a job of this machine, and this one is elsewhere.',
      )
    return {
      kind: 'savepoint',
      target,
      to,
      request: checkedRequest(values.request),
      timeoutMs: timeoutMsOf(values.timeout),
    }
  },
}

export async function takeSavepoint(command: SavepointCommand, edge: ControlEdge): Promise<void> {
  const { target, request, timeoutMs } = command
  const wish = { mode: 'savepoint' } as const
  if (target.kind !== 'local') {
    const remote = await remoteJob(target, edge)
    const { path } = await orderRemotely(remote, { wish, request: request ?? newRequest(), timeoutMs })
    return edge.terminal.print(path)
  }
  const world = await localWorld(edge, target.folder)
  const stored = await namedJob(target.job, edge, world)
  const to = command.to === undefined ? undefined : resolve(edge.folder, command.to)
  // Before anything is asked for.
  if (to !== undefined) await refuseTarget(to)
  const savepoint = await orderSnapshot({ stored, world, wish, request, timeoutMs })
  if (to !== undefined) await copySnapshot(savepoint.path, to)
  edge.terminal.print(to ?? savepoint.path)
}
