// `millrace run`: prepares the local job, says what it does, shows how far it is, and how it ended.

import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { unreachable } from '../base/errors.ts'
import type { CoordinatorObserver, JobOutcome } from '../coordinator/coordinator-contract.ts'
import type { JobCoordinator } from '../coordinator/job-coordinator.ts'
import { argsOf } from '../job/build-graph.ts'
import type { Job } from '../job/define-job.ts'
import { loadJob } from '../local/job-module.ts'
import type { FailpointPlan } from '../local/failpoint-plan.ts'
import type { LogSink } from '../local/platform/real-environment.ts'
import { prepareLocalJob } from '../local/run-job.ts'
import type { LocalJob } from '../local/run-job.ts'
import type { Head } from '../storage/head-contract.ts'
import { restorePointOf } from '../storage/head.ts'
import type { RunCommand } from './command-line.ts'
import { commandError } from './errors.ts'
import { jobArguments } from './job-arguments.ts'
import { Progress, formatDuration, grouped, progressLine } from './progress.ts'
import type { CompletedCheckpoint, ProgressFigures } from './progress.ts'
import type { Terminal } from './terminal.ts'

export interface RunEdge {
  readonly terminal: Terminal
  /** In which relative paths are meant; changed by --folder before anything else. */
  readonly folder: () => string
  readonly changeFolder: (folder: string) => void
  readonly processors: number
  readonly debug: boolean
  readonly failpoints: FailpointPlan
  /** What the first signal to end does; later ones are the edge's. */
  readonly onFirstSignal: (handler: () => void) => void
}

export const exitCodes = { done: 0, failed: 1, usage: 2 } as const

/** How often the line on a terminal is written anew; the subtasks report as often. */
const statusIntervalMs = 500
/** Elsewhere each of these is a line of its own. */
const linesIntervalMs = 5_000
const parallelismUsual = 2

/** The exit code. Throws MillraceError for what is wrong before the job runs. */
export async function runJob(command: RunCommand, edge: RunEdge): Promise<number> {
  const { terminal } = edge
  const jobFile = resolve(edge.folder(), command.jobFile)
  await requireFile(jobFile, command.jobFile)
  if (command.folder !== undefined) moveTo(command.folder, edge)
  const job = await loadJob(jobFile)
  const args = jobArguments(job.args, command.args, command.namedArgs)
  const run = new Run(terminal, edge.debug)
  const local = await prepareLocalJob({
    jobFile,
    name: command.name,
    args,
    parallelism: command.parallelism,
    parallelismDefault: Math.min(edge.processors, parallelismUsual),
    settings: {
      ...(command.freeze ? {} : { freezeRecords: false }),
      ...(command.checkpointIntervalMs === undefined ? {} : { checkpointIntervalMs: command.checkpointIntervalMs }),
    },
    folder: edge.folder(),
    log: run.log,
    failpoints: edge.failpoints,
    observer: run.observer,
  })
  edge.onFirstSignal(() => run.suspend(local.coordinator))
  const outcome = await run.toItsEnd(local)
  if (outcome.kind === 'finished') await printSummary(job, args, local, terminal)
  return outcome.kind === 'finished' || outcome.kind === 'suspended' ? exitCodes.done : exitCodes.failed
}

/** One run of a job, as people see it. */
class Run {
  readonly observer: CoordinatorObserver
  readonly log: LogSink
  readonly #terminal: Terminal
  readonly #startedMs = performance.now()
  #local: LocalJob | undefined
  #checkpoint: CompletedCheckpoint | undefined
  #figures: ProgressFigures | undefined
  #suspending = false

  constructor(terminal: Terminal, debug: boolean) {
    this.#terminal = terminal
    this.log = logTo(terminal, debug)
    this.observer = {
      began: (head) => terminal.say(beginning(this.#local!, head)),
      checkpointCompleted: ({ manifest, durationMs }) => {
        this.#checkpoint = { id: manifest.id, durationMs }
      },
      restarting: ({ message, inMs, tasks }) =>
        terminal.say(
          `${message}\nRestarting ${tasks === 1 ? 'one subtask' : `${tasks} subtasks`} in ${formatDuration(inMs)}.`,
        ),
    }
  }

  suspend(coordinator: JobCoordinator): void {
    this.#suspending = true
    this.#terminal.setStatus('')
    this.#terminal.say('Suspending. Once more, and this command leaves at once.')
    coordinator.suspend()
  }

  async toItsEnd(local: LocalJob): Promise<JobOutcome> {
    this.#local = local
    const progress = new Progress(local.graph, performance.now())
    const interactive = this.#terminal.isInteractive
    const timer = setInterval(() => this.#show(progress, local), interactive ? statusIntervalMs : linesIntervalMs)
    try {
      const outcome = await local.coordinator.run()
      this.#update(progress, local)
      this.#terminal.setStatus('')
      this.#terminal.say(this.#ending(outcome, local))
      return outcome
    } finally {
      clearInterval(timer)
      this.#terminal.setStatus('')
    }
  }

  #show(progress: Progress, local: LocalJob): void {
    const figures = this.#update(progress, local)
    if (figures === undefined || this.#suspending) return
    const line = progressLine(figures, this.#checkpoint)
    if (this.#terminal.isInteractive) this.#terminal.setStatus(line)
    else this.#terminal.say(line)
  }

  #update(progress: Progress, local: LocalJob): ProgressFigures | undefined {
    const { execution } = local.coordinator
    if (execution === undefined) return undefined
    const subtasks = [...execution.tasks.values()].map(({ key, task, status, report }) => ({
      key,
      vertex: task.vertex,
      finished: status === 'finished',
      metrics: report?.metrics ?? {},
    }))
    this.#figures = progress.update(subtasks, performance.now())
    return this.#figures
  }

  #ending(outcome: JobOutcome, { identity }: LocalJob): string {
    const { job } = identity
    switch (outcome.kind) {
      case 'finished': {
        const tookMs = performance.now() - this.#startedMs
        const records = this.#figures?.records ?? 0
        const rate = grouped(Math.round((records * 1_000) / tookMs))
        return `${job} has finished: ${grouped(records)} records in ${formatDuration(tookMs)} (${rate}/s).`
      }
      case 'suspended':
        return `${job} is suspended. The same command goes on with it.`
      case 'failed':
        return `${job} has failed: ${outcome.reason}\nWhat it had done is kept; the same command begins a new job.`
      case 'cancelled':
        return `${job} was cancelled.`
      case 'fenced':
        return `${job} was taken over: another command runs it now, and this one has stopped.`
      case 'ended':
        return `${job} had ended already (${outcome.head.end.kind}); nothing was run.`
      default:
        return unreachable(outcome)
    }
  }
}

/** Rule 28: which job this is, and where it goes on, is said. */
function beginning({ identity, storeFolder, graph }: LocalJob, head: Head): string {
  const { job, begin, after } = identity
  const point = restorePointOf(head)
  const from = point.kind === 'empty' ? 'the beginning' : `checkpoint ${point.manifest.id}`
  const what =
    begin === 'resume'
      ? `Resuming ${job} from ${from}: it was interrupted.`
      : begin === 'next start'
        ? `Starting ${job} again from ${from}: it was suspended.`
        : after === undefined
          ? `New job ${job}.`
          : `New job ${job}: the one before it ${afterwards[after]}.`
  const subtasks = graph.vertices.reduce((sum, { parallelism }) => sum + parallelism, 0)
  return `${what} ${subtasks} subtasks, checkpoints in ${storeFolder}.`
}

const afterwards: Readonly<Record<Head['end']['kind'], string>> = {
  none: 'was interrupted',
  suspended: 'was suspended',
  stopped: 'was stopped',
  finished: 'has finished',
  failed: 'has failed',
  cancelled: 'was cancelled',
}

/** Failures are told by the observer and by the outcome, in whole sentences. */
const toldOtherwise = new Set(['a subtask failed', 'restarting'])

function logTo(terminal: Terminal, debug: boolean): LogSink {
  return (level, message, fields) => {
    // What a job prints.
    if (level === 'info' && fields?.['vertex'] !== undefined) return terminal.print(message)
    if (!debug && (level === 'debug' || level === 'info' || toldOtherwise.has(message))) return undefined
    return terminal.say(`${level}: ${message}${fields === undefined ? '' : ` ${JSON.stringify(fields)}`}`)
  }
}

async function requireFile(path: string, given: string): Promise<void> {
  try {
    await access(path)
  } catch (error) {
    throw commandError('MR-L12', `${given} (${pathToFileURL(path).pathname}).`, error)
  }
}

function moveTo(folder: string, edge: RunEdge): void {
  try {
    edge.changeFolder(folder)
  } catch (error) {
    throw commandError('MR-L13', `${folder}.`, error)
  }
}

async function printSummary(job: Job, args: unknown, { identity }: LocalJob, terminal: Terminal): Promise<void> {
  if (job.summary === undefined) return
  try {
    terminal.print(await job.summary({ args: argsOf(job, args) as never, job: identity.job }))
  } catch (error) {
    throw commandError('MR-L14', `${String(error)}.`, error)
  }
}
