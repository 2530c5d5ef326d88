// `millrace stop`: ends a running job with a savepoint.

import type { HeadSummary } from '../rest/resources.ts'
import { awaitEnd, orderSnapshot } from './await-job.ts'
import { controlHelp, controlWords, targetOptions, timeoutHelp, timeoutMsOf, timeoutOption } from './control-words.ts'
import type { ControlWords } from './control-words.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { awaitRemoteEnd, orderRemotely, remoteJob } from './remote-job.ts'
import { checkedRequest, newRequest, requestHelp, requestOption } from './request-word.ts'
import { readWords } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface StopCommand extends ControlWords {
  readonly kind: 'stop'
  readonly drain: boolean
  readonly request: string | undefined
  readonly timeoutMs: number
}

const help = `millrace stop <job> [options]   end a running job with a savepoint; prints its folder

Nothing is emitted behind the savepoint, and everything before it is committed. The job's run command goes on from there. If the
savepoint fails, the job runs on.

  --drain            end event time first: its timers fire and its windows close, those of processing time that
                     wait do not come out, and the job is then finished
${requestHelp}
${timeoutHelp}
${controlHelp}

Exit codes: 0 it was stopped, 1 it was not, 2 the command line is wrong.`

export const stopSyntax: CommandSyntax<StopCommand> = {
  name: 'stop',
  takes: '<job>',
  summary: 'end a running job with a savepoint',
  help,
  parse: (words) => {
    const options = { drain: { type: 'boolean' }, ...requestOption, ...timeoutOption, ...targetOptions } as const
    const { values, positionals } = readWords({ command: 'stop', words, options })
    return {
      kind: 'stop',
      ...controlWords({ command: 'stop', positionals, values }),
      drain: values.drain === true,
      request: checkedRequest(values.request),
      timeoutMs: timeoutMsOf(values.timeout),
    }
  },
}

export async function stopJob(command: StopCommand, edge: ControlEdge): Promise<void> {
  const { target, request, timeoutMs } = command
  const wish = { mode: command.drain ? 'drain' : 'stop' } as const
  if (target.kind !== 'local') {
    const remote = await remoteJob(target, edge)
    const savepoint = await orderRemotely(remote, { wish, request: request ?? newRequest(), timeoutMs })
    edge.terminal.print(savepoint.path)
    const { end } = await awaitRemoteEnd(remote, timeoutMs)
    return edge.terminal.say(sentence(remote.job.id, end.kind))
  }
  const world = await localWorld(edge, target.folder)
  const stored = await namedJob(target.job, edge, world)
  const order = { stored, world, wish, request, timeoutMs }
  const savepoint = await orderSnapshot(order)
  // It is taken: whatever becomes of the commits, the user must know where it is.
  edge.terminal.print(savepoint.path)
  const { end } = await awaitEnd(order, savepoint)
  edge.terminal.say(sentence(stored.id, end.kind))
}

function sentence(id: string, end: HeadSummary['end']['kind']): string {
  return `${id} ${end === 'finished' ? 'is drained and has finished' : 'is stopped'}.`
}
