// `millrace status`: all local jobs, or one of them with its figures.

import { MillraceError } from '../base/errors.ts'
import { storedJobs } from '../local/local-jobs.ts'
import type { LocalWorld } from '../local/local-jobs.ts'
import type { HeadSummary, JobResource, SubtaskResource } from '../rest/resources.ts'
import { controlHelp, controlWords, remoteTarget, targetOptions } from './control-words.ts'
import type { ControlTarget, RemoteTarget, TargetValues } from './control-words.ts'
import { jobReport, stateOf } from './job-report.ts'
import type { JobReport, ProcessReport } from './job-report.ts'
import { localWorld, namedJob } from './named-job.ts'
import type { ControlEdge } from './named-job.ts'
import { formatDuration, formatWatermark, grouped } from './progress.ts'
import { endWords } from './job-end.ts'
import { reach } from './remote-job.ts'
import type { JobOver } from './remote-job.ts'
import { remoteReport } from './remote-report.ts'
import type { RemoteReport } from './remote-report.ts'
import { table } from './table.ts'
import { timeText } from './time-text.ts'
import { notEmpty, readWords } from './words.ts'
import type { CommandSyntax } from './words.ts'

export interface StatusCommand {
  readonly kind: 'status'
  /** undefined: all jobs of this machine that were started in `folder`. */
  readonly target: ControlTarget | undefined
  readonly folder: string | undefined
  readonly json: boolean
}

const help = `millrace status [job] [options]   how a job is, running or not; without a job, all that are here

Nothing is changed by it.

  --json             as JSON
${controlHelp}

Exit codes: 0 told, 1 something of it could not be read, 2 the command line is wrong.`

export const statusSyntax: CommandSyntax<StatusCommand> = {
  name: 'status',
  takes: '[job]',
  summary: 'how jobs are, running or not',
  help,
  parse: (words) => {
    const options = { json: { type: 'boolean' }, ...targetOptions } as const
    const { values, positionals } = readWords({ command: 'status', words, options })
    return {
      kind: 'status',
      target: isOfOne(positionals, values)
        ? controlWords({ command: 'status', positionals, values }).target
        : undefined,
      folder: notEmpty('folder', values.folder),
      json: values.json === true,
    }
  },
}

function isOfOne(positionals: readonly string[], values: TargetValues): boolean {
  const { folder: _folder, ...remote } = values
  return positionals.length > 0 || remoteTarget({ command: 'status', positionals, values: remote }) !== undefined
}

/** Whether all of it could be read. */
export async function showStatus(command: StatusCommand, edge: ControlEdge): Promise<boolean> {
  const { target, json } = command
  if (target === undefined) return showAll(json, edge, await localWorld(edge, command.folder))
  if (target.kind !== 'local') return showRemote(target, json, edge)
  const world = await localWorld(edge, target.folder)
  const report = await jobReport(await namedJob(target.job, edge, world), world)
  edge.terminal.print(json ? JSON.stringify(report, undefined, 2) : reportText(report))
  return report.process.kind !== 'unknown'
}

export async function showAll(json: boolean, { terminal }: ControlEdge, world: LocalWorld): Promise<boolean> {
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
  else if (reports.length > 0) terminal.print(table([overviewHeads, ...reports.map(overviewRow)]))
  return isWhole && reports.every(({ process }) => process.kind !== 'unknown')
}

const overviewHeads = ['job', 'state', 'start', 'restarts', 'restore point']

function overviewRow(report: JobReport): string[] {
  const { id, head } = report
  return [id, stateOf(report), ...(head === null ? ['', '', ''] : headCells(head))]
}

function headCells({ start, restarts, restorePoint }: HeadSummary): string[] {
  return [String(start), String(restarts), pointText(restorePoint)]
}

/** The one job behind an address, as in the list of local ones. */
export function remoteOverview(job: HeadSummary, state: string): string {
  return table([overviewHeads, [job.id, state, ...headCells(job)]])
}

/** Whether all of it could be read. */
async function showRemote(target: RemoteTarget, json: boolean, edge: ControlEdge): Promise<boolean> {
  const reached = await reach(target, edge)
  if (reached.kind === 'over') {
    edge.terminal.print(json ? JSON.stringify(overReport(reached), undefined, 2) : overText(reached))
    return true
  }
  const report = await remoteReport(reached)
  edge.terminal.print(json ? JSON.stringify(report, undefined, 2) : remoteText(report))
  return Object.values(report.health).every((service) => typeof service !== 'object' || service?.state !== 'unknown')
}

/** With null for all that nobody knows any more. */
function overReport(over: JobOver): object {
  const { address } = over
  return { address, job: overJob(over), subtasks: null, checkpoints: null, workers: null, health: null }
}

/** As of one that runs. */
export function overJob({ head }: JobOver): HeadSummary & Pick<JobResource, 'state'> {
  return { ...head, state: 'ended' }
}

function overText({ address, head, store }: JobOver): string {
  return [
    `${head.id} ${endWords(head.end)}. Nobody answers at ${address}: its coordinator ends with it.`,
    `HEAD in ${store}: ${factsLine(head)}`,
    nextStartLine(head),
  ].join('\n')
}

/** Of a job whose starts are numbered by its process config: no run command begins them. */
function nextStartLine({ start, restorePoint }: HeadSummary): string {
  return `The start after it (job.start: ${start + 1}) would begin from ${pointText(restorePoint)}${restorePoint.kind === 'empty' ? '' : `, ${restorePoint.manifest.path}; millrace admin restore-point says whether all of it is there`}.`
}

function remoteText({ address, job, health, workers, ...figures }: RemoteReport): string {
  const lines = [
    `${job.id} is ${job.state}, at ${address}.`,
    ...headLines(job, nextStartLine(job)),
    ...slotLines(job),
    ...Object.entries({ 'The object store': health.storage, NATS: health.nats }).flatMap(([name, service]) =>
      service === null ? [] : [`${name}: ${service.state}${service.detail === null ? '' : `, ${service.detail}`}.`],
    ),
    ...processLines({ kind: 'running', job, ...figures }),
  ]
  if (workers.workers !== null && workers.workers.length > 0) {
    const rows = workers.workers.map(({ name, address: at, slots, running, state, sinceMs }) => [
      name,
      state,
      at,
      `${running.length} of ${slots}`,
      timeText(sinceMs),
    ])
    lines.push(table([['worker', 'state', 'address', 'slots in use', 'since'], ...rows]))
  }
  return lines.join('\n')
}

function slotLines({ waitsFor, slotsNeeded, slotsOffered, restore }: JobResource): string[] {
  const lines: string[] = []
  if (waitsFor === 'slots')
    lines.push(`It waits for slots: it needs ${slotsNeeded}, and its workers offer ${slotsOffered}.`)
  if (restore !== null) {
    const { bytesRead, bytes, subtasksRestored, subtasks } = restore
    const read = bytesRead === null || bytes === null ? '' : `, ${grouped(bytesRead)} of ${grouped(bytes)} bytes`
    lines.push(`Restored: ${subtasksRestored} of ${subtasks} subtasks${read}.`)
  }
  return lines
}

function reportText(report: JobReport): string {
  const { id, head, folder, process } = report
  const lines = [`${id} is ${stateOf(report)}, in ${folder}.`]
  if (process.kind === 'unknown') lines.push(process.why)
  if (head !== null) lines.push(...headLines(head, 'Its run command begins a new job.'))
  if (process.kind === 'running') lines.push(...processLines(process))
  for (const { path, completedAtMs, bytes } of report.retained)
    lines.push(`Checkpoint ${path}, of ${timeText(completedAtMs)}, ${grouped(bytes)} bytes.`)
  for (const { path, completedAtMs, bytes, drained, there } of report.savepoints)
    lines.push(
      `Savepoint ${path}, of ${timeText(completedAtMs)}, ${grouped(bytes)} bytes${drained ? ', drained' : ''}${there ? '' : '; not there any more'}.`,
    )
  return lines.join('\n')
}

function factsLine({ start, incarnation, parallelism, maxParallelism, restarts }: HeadSummary): string {
  return `Start ${start}, incarnation ${incarnation}, parallelism ${parallelism} of at most ${maxParallelism}, restarts: ${restarts}.`
}

/** `next`: what comes after a job that is over. */
function headLines(head: HeadSummary, next: string): string[] {
  const lines = [
    factsLine(head),
    isFinal(head.end.kind) ? next : `A restart would begin from ${pointText(head.restorePoint)}.`,
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
  const lines = [
    ...(job.sinceMs === null ? [] : [`This process runs it since ${timeText(job.sinceMs)}.`]),
    ...failureLines(job),
  ]
  if (counters !== null)
    lines.push(
      `${counters.completed} snapshots completed, ${counters.failed} failed${last === null ? '' : `; the last is ${last.kind} ${last.id}, in ${formatDuration(last.durationMs)}`}${pending === null ? '' : `; ${pending.kind} ${pending.id} is pending`}.`,
    )
  // A local job has no workers: its slots are threads of its own.
  const withWorkers = subtasks.some(({ worker }) => worker !== null)
  const rows = subtasks.map((subtask) => [...subtaskRow(subtask), ...(withWorkers ? [subtask.worker ?? '-'] : [])])
  lines.push('', table([[...subtaskHeads, ...(withWorkers ? ['worker'] : [])], ...rows]), '')
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
