// `millrace status`: all local jobs, or one of them with its figures.

import { MillraceError } from '../base/errors.ts'
import { storedJobs } from '../local/local-jobs.ts'
import type { LocalWorld } from '../local/local-jobs.ts'
import type { HeadSummary, JobResource, SubtaskResource } from '../rest/resources.ts'
import { timeText } from './checkpoints-command.ts'
import { controlHelp, folderOption } from './control-words.ts'
import { jobReport, stateOf } from './job-report.ts'
import type { JobReport, ProcessReport } from './job-report.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { formatDuration, formatWatermark, grouped } from './progress.ts'
import { table } from './table.ts'
import { notEmpty, onlyWord, readWords } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface StatusCommand {
  readonly kind: 'status'
  /** undefined: all. */
  readonly job: string | undefined
  readonly folder: string | undefined
  readonly json: boolean
}

const help = `millrace status [job] [options]   how a local job is, running or not; without a job, all that are here

Nothing is changed by it.

  --json             as JSON
${controlHelp}

Exit codes: 0 told, 1 something of it could not be read, 2 the command line is wrong.`

export const statusSyntax: CommandSyntax<StatusCommand> = {
  name: 'status',
  takes: '[job]',
  summary: 'how the local jobs are, running or not',
  help,
  parse: (words) => {
    const options = { json: { type: 'boolean' }, ...folderOption } as const
    const { values, positionals } = readWords({ command: 'status', words, options })
    return {
      kind: 'status',
      job: positionals.length === 0 ? undefined : onlyWord({ command: 'status', what: 'job', words: positionals }),
      folder: notEmpty('folder', values.folder),
      json: values.json === true,
    }
  },
}

/** Whether all of it could be read. */
export async function showStatus(command: StatusCommand, edge: ControlEdge): Promise<boolean> {
  const { job, json } = command
  const world = await localWorld(edge, command.folder)
  if (job === undefined) return showAll(json, edge, world)
  const report = await jobReport(await namedJob(job, edge, world), world)
  edge.terminal.print(json ? JSON.stringify(report, undefined, 2) : reportText(report))
  return report.process.kind !== 'unknown'
}

async function showAll(json: boolean, { terminal }: ControlEdge, world: LocalWorld): Promise<boolean> {
  const reports: JobReport[] = []
  let isWhole = true
  for (const stored of await storedJobs(world)) {
    try {
      reports.push(await jobReport(stored, world))
    } catch (error) {
      // One that cannot be read must not hide the others.
      if (!(error instanceof MillraceError)) throw error
      isWhole = false
      terminal.say(`${stored.id}: ${error.message}`)
    }
  }
  if (json) terminal.print(JSON.stringify(reports, undefined, 2))
  else if (reports.length === 0 && isWhole) terminal.say(`There are no jobs in ${world.folder}.`)
  else if (reports.length > 0)
    terminal.print(table([['job', 'state', 'start', 'restarts', 'restore point'], ...reports.map(overviewRow)]))
  return isWhole && reports.every(({ process }) => process.kind !== 'unknown')
}

function overviewRow(report: JobReport): string[] {
  const { id, head } = report
  if (head === null) return [id, stateOf(report), '', '', '']
  return [id, stateOf(report), String(head.start), String(head.restarts), pointText(head.restorePoint)]
}

function reportText(report: JobReport): string {
  const { id, head, folder, process } = report
  const lines = [`${id} is ${stateOf(report)}, in ${folder}.`]
  if (process.kind === 'unknown') lines.push(process.why)
  if (head !== null) lines.push(...headLines(head))
  if (process.kind === 'running') lines.push(...processLines(process))
  for (const { path, completedAtMs, bytes } of report.retained)
    lines.push(`Checkpoint ${path}, of ${timeText(completedAtMs)}, ${grouped(bytes)} bytes.`)
  for (const { path, completedAtMs, bytes, drained, there } of report.savepoints)
    lines.push(
      `Savepoint ${path}, of ${timeText(completedAtMs)}, ${grouped(bytes)} bytes${drained ? ', drained' : ''}${there ? '' : '; not there any more'}.`,
    )
  return lines.join('\n')
}

function headLines({ start, incarnation, parallelism, maxParallelism, restarts, ...head }: HeadSummary): string[] {
  const lines = [
    `Start ${start}, incarnation ${incarnation}, parallelism ${parallelism} of at most ${maxParallelism}, restarts: ${restarts}.`,
    isFinal(head.end.kind)
      ? 'Its run command begins a new job.'
      : `A restart would begin from ${pointText(head.restorePoint)}.`,
  ]
  if (head.end.kind === 'failed') lines.push(`It failed: ${head.end.reason}`)
  if (head.unconfirmed !== null)
    lines.push(`Commits of ${head.unconfirmed.kind} ${head.unconfirmed.id} are permitted and not confirmed yet.`)
  return lines
}

function isFinal(end: HeadSummary['end']['kind']): boolean {
  return end === 'finished' || end === 'failed' || end === 'cancelled'
}

function pointText(point: HeadSummary['restorePoint']): string {
  return point.kind === 'empty' ? 'the beginning' : `${point.manifest.kind} ${point.manifest.id}`
}

function processLines({ job, subtasks, checkpoints }: Extract<ProcessReport, { kind: 'running' }>): string[] {
  const { counters, pending, last } = checkpoints
  const lines = [`This process runs it since ${timeText(job.sinceMs)}.`, ...failureLines(job)]
  if (counters !== null)
    lines.push(
      `${counters.completed} snapshots completed, ${counters.failed} failed${last === null ? '' : `; the last is ${last.kind} ${last.id}, in ${formatDuration(last.durationMs)}`}${pending === null ? '' : `; ${pending.kind} ${pending.id} is pending`}.`,
    )
  lines.push('', table([subtaskHeads, ...subtasks.map(subtaskRow)]), '')
  return lines
}

function failureLines({ lastFailure }: JobResource): string[] {
  return lastFailure === null ? [] : [`Its last failure, at ${timeText(lastFailure.atMs)}: ${lastFailure.message}`]
}

const subtaskHeads = ['subtask', 'status', 'in', 'out', 'busy', 'backpressured', 'state', 'event time']

function subtaskRow({ vertex, subtask, status, watermark, ...figures }: SubtaskResource): string[] {
  const { recordsIn, recordsOut, busyMs, idleMs, backpressuredMs, stateEntries } = figures
  const allMs = (busyMs ?? 0) + (idleMs ?? 0) + (backpressuredMs ?? 0)
  const share = (ms: number | null): string =>
    ms === null || allMs === 0 ? '-' : `${Math.round((ms / allMs) * 100)} %`
  const number = (value: number | null): string => (value === null ? '-' : grouped(value))
  return [
    `${vertex}/${subtask}`,
    status,
    number(recordsIn),
    number(recordsOut),
    share(busyMs),
    share(backpressuredMs),
    number(stateEntries),
    watermark === 'end' ? 'at its end' : formatWatermark(watermark ?? undefined),
  ]
}
