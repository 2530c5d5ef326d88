// `millrace run`: prepares the local job, says what it does, shows how far it is, and how it ended.

import { resolve } from 'node:path'
import { unreachable } from '../base/errors.ts'
import type { CoordinatorObserver, JobOutcome } from '../coordinator/coordinator-contract.ts'
import { placeTasks } from '../coordinator/placement.ts'
import { argsOf, buildGraph } from '../job/build-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Job } from '../job/define-job.ts'
import type { FailpointPlan } from '../local/failpoint-plan.ts'
import { headKeeperOf } from '../local/local-jobs.ts'
import { LocalRest } from '../local/local-rest.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import type { LogSink } from '../local/platform/real-environment.ts'
import type { SlotThread } from '../local/platform/slot-thread.ts'
import { prepareLocalJob } from '../local/run-job.ts'
import type { LocalJob, LocalRestore } from '../local/run-job.ts'
import type { Head } from '../storage/head-contract.ts'
import { restorePointOf } from '../storage/head.ts'
import { loadCheckedJob } from './checked-job.ts'
import { commandError } from './errors.ts'
import { exitCodes } from './exit-codes.ts'
import { jobArguments } from './job-arguments.ts'
import { jobInput, parallelismUsually } from './job-input.ts'
import type { ManifestInput } from './job-input.ts'
import { jobFileOf } from './job-module-files.ts'
import { Leaving } from './leaving.ts'
import { Progress, formatDuration, grouped, progressLine, recordsText } from './progress.ts'
import type { CompletedCheckpoint, ProgressFigures } from './progress.ts'
import type { RunCommand } from './run-options.ts'
import type { Terminal } from './terminal.ts'

export interface RunEdge {
  readonly terminal: Terminal
  /** In which relative paths are meant; changed by --folder before anything else. */
  readonly folder: () => string
  readonly changeFolder: (folder: string) => void
  readonly processors: number
  readonly debug: boolean
  readonly failpoints: FailpointPlan
  /** Load the runtime meanwhile. */
  readonly early: readonly SlotThread[]
  /** What a signal to end does; false: leave at once, which is also what is done before there is a handler. */
  readonly onSignal: (handler: () => boolean) => void
}

/** How often the line on a terminal is written anew; the subtasks report as often. */
const statusIntervalMs = 500
/** Elsewhere each of these is a line of its own. */
const linesIntervalMs = 5_000

/** The exit code. Throws MillraceError for what is wrong before the job runs. */
export async function runJob(command: RunCommand, edge: RunEdge): Promise<number> {
  const { terminal } = edge
  const input = await jobInput(command, edge.folder())
  const { name, module, parallelism, maxParallelism, manifest } = input
  if (manifest !== undefined) sayManifest(name, manifest, terminal)
  const restore = restoreOf(command, { manifest, folder: edge.folder() })
  if (command.folder !== undefined) moveTo(command.folder, edge)
  const jobFile = await jobFileOf(module, { name, folder: edge.folder() })
  const job = await loadCheckedJob(jobFile, { skipTypes: command.skipTypes, say: (text) => terminal.say(text) })
  const args = jobArguments(job.args, input.args, command.namedArgs)
  const parallelismDefault = parallelismUsually(edge.processors)
  if (command.slots !== undefined) {
    const graph = buildGraph(job, {
      args,
      parallelism,
      parallelismDefault,
      maxParallelism,
      settings: input.settings,
      name,
    })
    sayUnusedSlots(command.slots, graph, terminal)
  }
  const run = new Run({ terminal, debug: edge.debug, from: command.from })
  const files = new NodeFiles()
  const environment = realEnvironment({ log: run.log })
  const rest = new LocalRest({ environment, files, pid: process.pid })
  const local = await prepareLocalJob({
    jobFile,
    name,
    args,
    parallelism,
    parallelismDefault,
    maxParallelism,
    restore,
    settings: {
      ...input.settings,
      ...(command.freeze ? {} : { freezeRecords: false }),
      ...(command.assumeCommitted ? { onUnknownCommit: 'assume committed' as const } : {}),
      ...(command.checkpointIntervalMs === undefined ? {} : { checkpointIntervalMs: command.checkpointIntervalMs }),
    },
    savepoints: manifest?.savepoints,
    folder: edge.folder(),
    log: run.log,
    failpoints: edge.failpoints,
    early: edge.early,
    observer: rest.watching(run.observer),
  })
  const { coordinator, graph, storeFolder, identity } = local
  const stored = { id: identity.job, storeFolder }
  const readHead = async (): Promise<Head | undefined> => (await headKeeperOf(stored, { files, environment })).read()
  rest.serve({ ...stored, coordinator, graph })
  edge.onSignal(
    run.leaveBy(
      new Leaving({ id: identity.job, job: coordinator, readHead, random: environment.random, say: run.say }),
    ),
  )
  const outcome = await runServed(run, local, rest)
  if (hasFinished(outcome)) await printSummary(job, args, local, terminal)
  return endsWell.has(outcome.kind) ? exitCodes.done : exitCodes.failed
}

async function runServed(run: Run, local: LocalJob, rest: LocalRest): Promise<JobOutcome> {
  try {
    return await run.toItsEnd(local)
  } finally {
    await rest.close()
  }
}

const endsWell: ReadonlySet<JobOutcome['kind']> = new Set(['finished', 'suspended', 'stopped'])

function hasFinished(outcome: JobOutcome): boolean {
  return outcome.kind === 'finished' || (outcome.kind === 'stopped' && outcome.savepoint.drained === true)
}

/** What the command line says is meant now; what a manifest says, of the first start of its job. */
function restoreOf(
  { from, allowNonRestoredState, allowDrained }: RunCommand,
  { manifest, folder }: { readonly manifest: ManifestInput | undefined; readonly folder: string },
): LocalRestore {
  return {
    from: from === undefined ? manifest?.restoreFrom : resolve(folder, from),
    firstStartOnly: from === undefined,
    allowNonRestoredState: allowNonRestoredState || manifest?.allowNonRestoredState === true,
    allowDrained,
  }
}

/** Throws MR-L18. */
function sayManifest(name: string, { state, unused }: ManifestInput, terminal: Terminal): void {
  if (state === 'suspended') throw commandError('MR-L18', `That of ${name} has spec.state: suspended.`)
  if (unused.length > 0)
    terminal.say(
      `Of ${name}'s manifest these fields are for a cluster and are not used on this machine: ${unused.join(', ')}.`,
    )
}

/** Throws MR-L20. */
function sayUnusedSlots(slots: number, graph: JobGraph, terminal: Terminal): void {
  const { slotCount } = placeTasks(graph)
  if (slots < slotCount) throw commandError('MR-L20', `--slots is ${slots}; it needs ${slotCount}.`)
  if (slots > slotCount) terminal.say(`The job needs ${slotCount} of ${slots} slots; the others stay unused.`)
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
  #leaving: Leaving | undefined
  #began = false

  /** `from`: of the command line. */
  constructor({
    terminal,
    debug,
    from,
  }: {
    readonly terminal: Terminal
    readonly debug: boolean
    readonly from: string | undefined
  }) {
    this.#terminal = terminal
    this.log = logTo(terminal, debug)
    this.observer = {
      began: (head) => {
        const local = this.#local!
        // Begun before, it goes on behind a rescale.
        terminal.say(
          this.#began ? `${local.identity.job} goes on: ${sizeOf(local, head)}.` : beginning(local, head, from),
        )
        this.#began = true
      },
      checkpointCompleted: ({ manifest, durationMs }) => {
        this.#checkpoint = { id: manifest.id, durationMs }
      },
      restarting: ({ message, inMs, tasks }) =>
        terminal.say(
          `${message}\nRestarting ${tasks === 1 ? 'one subtask' : `${tasks} subtasks`} in ${formatDuration(inMs)}.`,
        ),
    }
  }

  readonly say = (text: string): void => {
    this.#terminal.setStatus('')
    this.#terminal.say(text)
  }

  leaveBy(leaving: Leaving): () => boolean {
    this.#leaving = leaving
    return () => leaving.signal()
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
    if (figures === undefined || this.#leaving?.isLeaving === true) return
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
        return `${job} has finished: ${recordsText(records)} in ${formatDuration(tookMs)} (${rate}/s).`
      }
      case 'suspended':
        return `${job} is suspended. The same command goes on with it.`
      case 'stopped':
        return outcome.savepoint.drained === true
          ? `${job} was drained with savepoint ${outcome.savepoint.id}, and has finished.`
          : `${job} was stopped with savepoint ${outcome.savepoint.id}. The same command goes on from it.`
      case 'failed':
        return `${job} has failed: ${outcome.reason}\nMend the cause. What it committed stays; the same command begins a new job, from the beginning.`
      case 'cancelled':
        return `${job} was cancelled.`
      case 'fenced':
        return `${job} was taken over: another command runs it now, and this one has stopped.`
      case 'ended':
        return this.#began
          ? `${job} was ended by another command; nothing more is run here.`
          : `${job} had ended already (${outcome.head.end.kind}); nothing was run.`
      default:
        return unreachable(outcome)
    }
  }
}

/** Rule 28: which job this is, and where it goes on, is said. */
function beginning(local: LocalJob, head: Head, asked: string | undefined): string {
  const { identity, storeFolder } = local
  const { job, begin, after } = identity
  const point = restorePointOf(head)
  const from = point.kind === 'empty' ? 'the beginning' : `${point.manifest.kind} ${point.manifest.id}`
  const given = point.kind === 'empty' ? '' : ` from ${from}`
  const what =
    begin === 'resume'
      ? `Resuming ${job} from ${from}: it has not ended.`
      : begin === 'next start' && asked !== undefined
        ? `Starting ${job} again from ${from}, as --from says: what it put out after that comes once more. Without --from it goes on where it ended.`
        : begin === 'next start'
          ? `Starting ${job} again from ${from}${point.kind === 'manifest' && point.manifest.kind === 'savepoint' ? '' : ': it was suspended'}.`
          : after === undefined
            ? `New job ${job}${given}.`
            : `New job ${job}${given}: the one before it ${afterwards[after]}.`
  return `${what} ${sizeOf(local, head)}, checkpoints in ${storeFolder}.`
}

/** A rescale holds for the rest of its start, whatever the command says (docs/decisions.md). */
function sizeOf({ graph }: LocalJob, { rescaledTo }: Head): string {
  if (rescaledTo !== undefined)
    return `Parallelism ${rescaledTo}, as it was rescaled to (--parallelism counts again after a stop)`
  return `${graph.vertices.reduce((sum, { parallelism }) => sum + parallelism, 0)} subtasks`
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
