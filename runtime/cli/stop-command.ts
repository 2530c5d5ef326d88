// `millrace stop`: ends a running job with a savepoint.

import { awaitEnd, orderSavepoint } from './await-job.ts'
import { controlHelp, controlWords, folderOption, timeoutHelp, timeoutMsOf, timeoutOption } from './control-words.ts'
import type { ControlWords } from './control-words.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { checkedRequest, requestHelp, requestOption } from './request-word.ts'
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

  --drain            end event time first: all timers fire and all windows close, and the job is then finished
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
    const options = { drain: { type: 'boolean' }, ...requestOption, ...timeoutOption, ...folderOption } as const
    const { values, positionals } = readWords({ command: 'stop', words, options })
    return {
      kind: 'stop',
      ...controlWords({ command: 'stop', positionals, folder: values.folder }),
      drain: values.drain === true,
      request: checkedRequest(values.request),
      timeoutMs: timeoutMsOf(values.timeout),
    }
  },
}

export async function stopJob(command: StopCommand, edge: ControlEdge): Promise<void> {
  const { request, timeoutMs } = command
  const world = await localWorld(edge, command.folder)
  const stored = await namedJob(command.job, edge, world)
  const order = { stored, world, mode: command.drain ? 'drain' : 'stop', request, timeoutMs } as const
  const savepoint = await orderSavepoint(order)
  // It is taken: whatever becomes of the commits, the user must know where it is.
  edge.terminal.print(savepoint.path)
  const { end } = await awaitEnd(order, savepoint)
  edge.terminal.say(`${stored.id} ${end.kind === 'finished' ? 'is drained and has finished' : 'is stopped'}.`)
}
