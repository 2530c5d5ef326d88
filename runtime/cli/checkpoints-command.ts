// `millrace checkpoints`: those that a job retains and, while it runs, how the last ones went; takes one if asked to.

import { checkpointId } from '../base/ids.ts'
import type { CheckpointId } from '../base/ids.ts'
import { storedCheckpoints } from '../rest/checkpoint-views.ts'
import type { StoredFigures } from '../rest/checkpoint-views.ts'
import { endView } from '../rest/job-views.ts'
import { nothing } from '../rest/request-resources.ts'
import { checkpoints as checkpointsResource } from '../rest/resources.ts'
import type { CheckpointsResource } from '../rest/resources.ts'
import { notRunning } from './await-job.ts'
import { detailText, oneCheckpoint } from './checkpoint-detail.ts'
import { controlHelp, controlWords, targetOptions, timeoutHelp, timeoutMsOf, timeoutOption } from './control-words.ts'
import type { ControlWords, LocalTarget, RemoteTarget } from './control-words.ts'
import { commandError } from './errors.ts'
import { endWords } from './job-end.ts'
import { contactJob } from './job-client.ts'
import type { JobClient } from './job-client.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { nextLook } from './next-look.ts'
import { formatDuration, grouped } from './progress.ts'
import { jobOver, reach } from './remote-job.ts'
import { newRequest } from './request-word.ts'
import { localRecord, noHistory, remoteRecord } from './stored-history.ts'
import { table } from './table.ts'
import { timeText } from './time-text.ts'
import { readWords, wholeNumber } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface CheckpointsCommand extends ControlWords {
  readonly kind: 'checkpoints'
  readonly json: boolean
  readonly trigger: boolean
  /** The one to show with what each subtask took; undefined: all of them. */
  readonly one: CheckpointId | undefined
  readonly timeoutMs: number
}

const help = `millrace checkpoints <job> [options]   the checkpoints of a job

Those that it retains and how the last 20 went, running or not; of one that has ended as it was written down last, every ten seconds and at its end.

  --id N             that one alone, with what each subtask took
  --trigger          take one now, and wait for it; the job must run
  --json             as JSON, with what each subtask took
${timeoutHelp}
${controlHelp}

Exit codes: 0 done, 1 the checkpoint that was asked for failed, or the job cannot be asked, 2 the command line is wrong.`

export const checkpointsSyntax: CommandSyntax<CheckpointsCommand> = {
  name: 'checkpoints',
  takes: '<job>',
  summary: 'the checkpoints of a job, running or not',
  help,
  parse: (words) => {
    const options = {
      id: { type: 'string' },
      trigger: { type: 'boolean' },
      json: { type: 'boolean' },
      ...timeoutOption,
      ...targetOptions,
    } as const
    const { values, positionals } = readWords({ command: 'checkpoints', words, options })
    const one = wholeNumber('id', values.id)
    if (one !== undefined && values.trigger === true)
      throw commandError('MR-L10', 'checkpoints: --id shows one that there is, and --trigger takes another.')
    return {
      kind: 'checkpoints',
      ...controlWords({ command: 'checkpoints', positionals, values }),
      json: values.json === true,
      trigger: values.trigger === true,
      one: one === undefined ? undefined : checkpointId(one),
      timeoutMs: timeoutMsOf(values.timeout),
    }
  },
}

export async function showCheckpoints(command: CheckpointsCommand, edge: ControlEdge): Promise<void> {
  const { target, one } = command
  if (one !== undefined) {
    const found = await oneCheckpoint(one, target, edge)
    edge.terminal.print(command.json ? JSON.stringify(found, undefined, 2) : detailText(found))
    return
  }
  const {
    id,
    shown,
    notes = [],
  } = target.kind === 'local' ? await ofLocal(command, target, edge) : await ofRemote(command, target, edge)
  edge.terminal.print(command.json ? JSON.stringify(shown, undefined, 2) : [...notes, text(id, shown)].join('\n'))
}

interface Shown {
  readonly id: string
  readonly shown: CheckpointsResource
  /** Of one that nobody runs. */
  readonly notes?: readonly string[]
}

async function ofLocal(command: CheckpointsCommand, target: LocalTarget, edge: ControlEdge): Promise<Shown> {
  const world = await localWorld(edge, target.folder)
  const stored = await namedJob(target.job, edge, world)
  const contact = await contactJob(stored)
  if (command.trigger) {
    if (contact.kind === 'not running') throw await notRunning({ stored, world })
    await trigger(contact.client, {}, command.timeoutMs)
  }
  const asked =
    contact.kind === 'running' ? await contact.client.get('/v1/checkpoints', checkpointsResource) : undefined
  if (asked !== undefined) return { id: stored.id, shown: asked }
  return shownOf(await localRecord(stored, world, edge.terminal))
}

async function ofRemote(command: CheckpointsCommand, target: RemoteTarget, edge: ControlEdge): Promise<Shown> {
  const reached = await reach(target, edge)
  if (reached.kind === 'over') {
    if (command.trigger) throw jobOver(reached)
    return shownOf(await remoteRecord(reached.config, edge.terminal))
  }
  const { client, job } = reached
  if (command.trigger) await trigger(client, { start: job.start, request: newRequest() }, command.timeoutMs)
  return { id: job.id, shown: await client.get('/v1/checkpoints', checkpointsResource) }
}

type Asked = Pick<JobClient, 'get' | 'post'>
/** Of a job of this machine: none. */
type TriggerWords = { readonly start: number; readonly request: string } | Record<string, never>

/** Waits for one that began after the request. Throws MR-L33, MR-L35. */
async function trigger(client: Asked, words: TriggerWords, timeoutMs: number): Promise<void> {
  const untilMs = performance.now() + timeoutMs
  const newest = newestId(await listed(client))
  await client.post('/v1/checkpoints', nothing, words)
  for (;;) {
    const now = await listed(client)
    if (now.completed.some(({ id, kind }) => kind === 'checkpoint' && id > newest)) return
    const failed = now.failed.find(({ id }) => id > newest)
    if (failed !== undefined)
      throw commandError('MR-L33', `Snapshot ${failed.id} failed (${failed.reason}): ${failed.detail}.`)
    if (performance.now() >= untilMs) throw commandError('MR-L35', 'A checkpoint was asked for.')
    await nextLook()
    // Under one id it is one request, however often it is made; a coordinator that has come back meanwhile does not know of it.
    if ('request' in words) await client.post('/v1/checkpoints', nothing, words)
  }
}

async function listed(client: Asked): Promise<CheckpointsResource> {
  const now = await client.get('/v1/checkpoints', checkpointsResource)
  if (now === undefined) throw commandError('MR-L32', 'It did, until a moment ago.')
  return now
}

function newestId({ pending, retained, completed, failed }: CheckpointsResource): number {
  return Math.max(0, pending?.id ?? 0, ...[...retained, ...completed, ...failed].map(({ id }) => id))
}

function shownOf(record: StoredFigures): Shown {
  const { job: id, end, start } = record.head
  const words =
    end.kind === 'none' ? 'is interrupted: its run command goes on with it' : endWords(endView(end, record.locate))
  const notes = [`${id} ${words} (start ${start}).`, ...(record.remembered === undefined ? [noHistory] : [])]
  return { id, shown: storedCheckpoints(record), notes }
}

function text(id: string, { counters, pending, retained, completed, failed }: CheckpointsResource): string {
  const lines: string[] = []
  if (counters !== null)
    lines.push(
      `${id}: ${counters.completed} completed, ${counters.failed} failed${pending === null ? '' : `; ${pending.kind} ${pending.id} is pending for ${formatDuration(pending.forMs)}, ${pending.missing.length} subtasks missing`}.`,
    )
  lines.push(retained.length === 0 ? `${id} retains no checkpoint.` : 'Retained:')
  for (const { path, completedAtMs, bytes } of retained)
    lines.push(`  ${path}   ${timeText(completedAtMs)}   ${grouped(bytes)} bytes`)
  if (completed.length > 0) lines.push('', table([completedHeads, ...completed.map(completedRow)]))
  for (const { id: failedId, atMs, reason, detail } of failed)
    lines.push(`${failedId} failed at ${timeText(atMs)} (${reason}): ${detail}`)
  return lines.join('\n')
}

const completedHeads = [
  'id',
  'kind',
  'completed',
  'took',
  'bytes',
  'most start delay',
  'most alignment',
  'most sync',
  'most async',
]

function completedRow(completed: CheckpointsResource['completed'][number]): string[] {
  const { id, kind, completedAtMs, durationMs, bytes, subtasks } = completed
  const most = (name: 'startDelayMs' | 'syncMs' | 'asyncMs' | 'alignmentMs'): string =>
    subtasks === null ? '-' : formatDuration(Math.max(0, ...subtasks.map((subtask) => subtask[name] ?? 0)))
  return [
    String(id),
    kind,
    timeText(completedAtMs),
    formatDuration(durationMs),
    grouped(bytes),
    most('startDelayMs'),
    most('alignmentMs'),
    most('syncMs'),
    most('asyncMs'),
  ]
}
