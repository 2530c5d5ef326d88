// `millrace exceptions`: what a job failed by, what restarted for it, and how long that took; of one that runs, and of one that has ended.

import type { StoredFigures } from '../rest/checkpoint-views.ts'
import { exceptions as exceptionsResource, restarts as restartsResource } from '../rest/operating-resources.ts'
import type { ExceptionResource, RestartResource } from '../rest/operating-resources.ts'
import { controlHelp, controlWords, targetOptions } from './control-words.ts'
import type { ControlWords, LocalTarget, RemoteTarget } from './control-words.ts'
import { contactJob } from './job-client.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { formatDuration } from './progress.ts'
import { reach } from './remote-job.ts'
import { localRecord, noHistory, remoteRecord } from './stored-history.ts'
import { timeText } from './time-text.ts'
import { readWords } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface ExceptionsCommand extends ControlWords {
  readonly kind: 'exceptions'
  readonly json: boolean
}

const help = `millrace exceptions <job> [options]   what a job failed by, and its restarts

Of this and earlier starts, the last 100, running or not; of one that has ended as it was written down last, every ten seconds and at its end.
Nothing is changed by it.

  --json             as JSON
${controlHelp}

Exit codes: 0 told, 1 the job cannot be asked, 2 the command line is wrong.`

export const exceptionsSyntax: CommandSyntax<ExceptionsCommand> = {
  name: 'exceptions',
  takes: '<job>',
  summary: 'what a job failed by, and its restarts',
  help,
  parse: (words) => {
    const options = { json: { type: 'boolean' }, ...targetOptions } as const
    const { values, positionals } = readWords({ command: 'exceptions', words, options })
    return {
      kind: 'exceptions',
      ...controlWords({ command: 'exceptions', positionals, values }),
      json: values.json === true,
    }
  },
}

interface Shown {
  /** null: nothing is stored of it. */
  readonly exceptions: readonly ExceptionResource[] | null
  readonly restarts: {
    /** In this start, by HEAD. */
    readonly count: number
    readonly restarts: readonly RestartResource[] | null
  }
}

export async function showExceptions(command: ExceptionsCommand, edge: ControlEdge): Promise<void> {
  const { target } = command
  const { id, shown } = target.kind === 'local' ? await ofLocal(target, edge) : await ofRemote(target, edge)
  edge.terminal.print(command.json ? JSON.stringify(shown, undefined, 2) : text(id, shown))
}

interface Found {
  readonly id: string
  readonly shown: Shown
}

async function ofLocal(target: LocalTarget, edge: ControlEdge): Promise<Found> {
  const world = await localWorld(edge, target.folder)
  const stored = await namedJob(target.job, edge, world)
  const contact = await contactJob(stored)
  if (contact.kind === 'running') {
    const [asked, restarts] = await Promise.all([
      contact.client.get('/v1/exceptions', exceptionsResource),
      contact.client.get('/v1/restarts', restartsResource),
    ])
    // Else it ended between two questions.
    if (asked !== undefined && restarts !== undefined) return { id: stored.id, shown: { ...asked, restarts } }
  }
  return { id: stored.id, shown: shownOf(await localRecord(stored, world, edge.terminal)) }
}

async function ofRemote(target: RemoteTarget, edge: ControlEdge): Promise<Found> {
  const reached = await reach(target, edge)
  if (reached.kind === 'over')
    return { id: reached.head.id, shown: shownOf(await remoteRecord(reached.config, edge.terminal)) }
  const { client, job } = reached
  const [{ exceptions }, restarts] = await Promise.all([
    client.get('/v1/exceptions', exceptionsResource),
    client.get('/v1/restarts', restartsResource),
  ])
  return { id: job.id, shown: { exceptions, restarts } }
}

function shownOf({ head, remembered }: StoredFigures): Shown {
  const restarts = { count: head.restarts, restarts: remembered?.restarts ?? null }
  return { exceptions: remembered?.exceptions ?? null, restarts }
}

function text(id: string, { exceptions, restarts }: Shown): string {
  const head = `${id} has restarted ${restarts.count === 1 ? 'once' : `${restarts.count} times`} in this start`
  if (exceptions === null) return `${head}. ${noHistory}`
  if (exceptions.length === 0) return `${head}; no failure is remembered.`
  const each = exceptions.flatMap((exception) => ['', ...lines(exception, restarts.restarts)])
  return [`${head}; its last failures:`, ...each].join('\n')
}

function lines(exception: ExceptionResource, restarts: readonly RestartResource[] | null): string[] {
  const { atMs, start, incarnation, message, failed, workers } = exception
  const where =
    failed === null ? '' : `  failed: ${failed.join(', ')}${workers === null ? '' : `; in ${workers.join(', ')}`}`
  return [
    `${timeText(atMs)}, start ${start ?? '?'}, incarnation ${incarnation ?? '?'}`,
    `  ${message}`,
    ...(where === '' ? [] : [where]),
    `  ${outcome(exception, restarts)}`,
  ]
}

function outcome(
  { atMs, code, restarted, restartInMs }: ExceptionResource,
  restarts: readonly RestartResource[] | null,
) {
  if (restartInMs === null) return 'the job was given up'
  const restart = restarts?.find((each) => each.atMs === atMs && each.code === code)
  const after = restart?.runningAfterMs ?? undefined
  return `${restarted} subtasks began again ${restartInMs === 0 ? 'at once' : `after ${formatDuration(restartInMs)}`}; ${
    after === undefined
      ? 'not all ran yet, or before it failed again or lost its coordinator'
      : `all ran again ${formatDuration(after)} after it`
  }`
}
