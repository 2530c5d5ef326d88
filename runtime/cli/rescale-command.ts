// `millrace rescale`: a running job goes on at another parallelism, in the same start.

import { orderSnapshot } from './await-job.ts'
import { controlHelp, controlWords, targetOptions, timeoutHelp, timeoutMsOf, timeoutOption } from './control-words.ts'
import type { ControlWords } from './control-words.ts'
import { commandError } from './errors.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { orderRemotely, remoteJob } from './remote-job.ts'
import { checkedRequest, newRequest, requestHelp, requestOption } from './request-word.ts'
import { readWords, wholeNumber } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface RescaleCommand extends ControlWords {
  readonly kind: 'rescale'
  readonly parallelism: number
  readonly request: string | undefined
  readonly timeoutMs: number
}

const help = `millrace rescale <job> --parallelism N [options]   go on at another parallelism

The job stops at a checkpoint, commits everything before it, and goes on from there at the new size, in the same start. If the
checkpoint fails, it runs on as it was.

  --parallelism N    the new size; at most the job's max parallelism
${requestHelp}
${timeoutHelp}
${controlHelp}

Exit codes: 0 it has the new size, 1 it has not, 2 the command line is wrong.`

export const rescaleSyntax: CommandSyntax<RescaleCommand> = {
  name: 'rescale',
  takes: '<job>',
  summary: 'go on at another parallelism',
  help,
  parse: (words) => {
    const options = {
      parallelism: { type: 'string' },
      ...requestOption,
      ...timeoutOption,
      ...targetOptions,
    } as const
    const { values, positionals } = readWords({ command: 'rescale', words, options })
    const parallelism = wholeNumber('parallelism', values.parallelism)
    if (parallelism === undefined) throw commandError('MR-L10', 'rescale needs --parallelism.')
    return {
      kind: 'rescale',
      ...controlWords({ command: 'rescale', positionals, values }),
      parallelism,
      request: checkedRequest(values.request),
      timeoutMs: timeoutMsOf(values.timeout),
    }
  },
}

export async function rescaleJob(command: RescaleCommand, edge: ControlEdge): Promise<void> {
  const { target, parallelism, request, timeoutMs } = command
  const wish = { mode: 'rescale', parallelism } as const
  const said = (id: string, checkpoint: number): void =>
    edge.terminal.say(`${id} goes on at parallelism ${parallelism} from checkpoint ${checkpoint}.`)
  if (target.kind !== 'local') {
    const remote = await remoteJob(target, edge)
    const { id } = await orderRemotely(remote, { wish, request: request ?? newRequest(), timeoutMs })
    return said(remote.job.id, id)
  }
  const world = await localWorld(edge, target.folder)
  const stored = await namedJob(target.job, edge, world)
  const { id } = await orderSnapshot({ stored, world, wish, request, timeoutMs })
  said(stored.id, id)
}
