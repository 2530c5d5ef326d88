// A whole job in one thread: the real coordinator and slots, with channels, links, store and HEAD in memory.

import { fileURLToPath } from 'node:url'
import type { FailpointName } from '../base/failpoints.ts'
import type { JobId } from '../base/ids.ts'
import type { CoordinatorObserver, JobOutcome, SavepointAnswer } from '../coordinator/coordinator-contract.ts'
import type { JobSettings } from '../job/contract.ts'
import type { Job } from '../job/define-job.ts'
import { loadJob } from '../local/job-module.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import type { FileSystem } from '../storage/contract.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { MemoryObjectStore } from '../storage/memory-store.ts'
import { localJobId } from '../storage/paths.ts'
import { reportOf, stateOf } from './cluster-report.ts'
import { CoordinatorLife } from './coordinator-life.ts'
import type { ClusterWorld, LifeOptions } from './coordinator-life.ts'
import { testkitError } from './errors.ts'
import { MemoryNetwork } from './memory-links.ts'
import { PlannedFailpoints, PlannedFailure } from './planned-failpoints.ts'
import type { ArmedFailpoint } from './planned-failpoints.ts'
import type { ClusterLogLine, TestProcess } from './test-process.ts'
import { putDown, takeOut } from './test-savepoint.ts'
import type { Savepoint } from './test-savepoint.ts'
import { realTime, virtualTime } from './test-time.ts'
import type { TestTime } from './test-time.ts'
import { WatchedHead } from './watched-head.ts'

export interface MiniClusterOptions {
  /** What `defineJob` gave, or the absolute path (or `file:` URL) of a job file. */
  readonly job: Job | string | URL
  /** Checked by the job's schema. */
  readonly args?: unknown
  /** Of operators that do not set theirs; default: the job's config, else 1. */
  readonly parallelism?: number
  readonly maxParallelism?: number
  /** Win over the job's config. */
  readonly settings?: Partial<JobSettings>
  /**
   * virtual (the default): time passes only in the calls of this cluster, as fast as it can, and two runs with the same calls are the same.
   * real: for jobs that wait for what no test controls, such as disks, sockets and timers of their own.
   */
  readonly time?: 'virtual' | 'real'
  /** Of what is random in virtual time; default 1. */
  readonly seed?: number
  /** What file sources and sinks see; default: an empty file system in memory in virtual time, the disk in real time. */
  readonly files?: FileSystem
  /** For the job's id, which is `env.job`: the second cluster of a name in one process has `<name>.2`. Default 'tested'. */
  readonly name?: string
}

export interface StartOptions {
  /** Begins there; default: where this cluster's job is. */
  readonly from?: Savepoint
  /** State whose uid the job has no more is dropped; else refused. */
  readonly allowNonRestoredState?: boolean
  /** A drained savepoint is refused otherwise. */
  readonly allowDrained?: boolean
}

/** Opens a cluster in which nothing runs yet. Throws MR-L01 or MR-J02 for a job file that is none. */
export async function openMiniCluster(options: MiniClusterOptions): Promise<MiniCluster> {
  const { job } = options
  if (typeof job === 'object' && !(job instanceof URL)) return new MiniCluster(job, options)
  return new MiniCluster(await loadJob(typeof job === 'string' ? job : fileURLToPath(job)), options)
}

/** Clusters so far, by name: what sinks keep outside is told apart by job. */
const clusters = new Map<string, number>()

/** Verbs are awaited one after another; each lets the job run, and time pass, until what it says has happened. */
export class MiniCluster {
  /** Why the job restarted, each time. */
  readonly restarts: string[] = []
  /** Ids of completed checkpoints, oldest first. */
  readonly checkpoints: number[] = []
  readonly logLines: ClusterLogLine[] = []
  readonly jobId: JobId
  readonly #job: Job
  readonly #options: MiniClusterOptions
  readonly #time: TestTime
  readonly #world: ClusterWorld
  readonly #head = new WatchedHead()
  readonly #store = new MemoryObjectStore()
  readonly #failpoints = new PlannedFailpoints()
  readonly #failed: { readonly id: number; readonly detail: string }[] = []
  #parallelism: number | undefined
  #restore: LifeOptions['restore']
  #life: CoordinatorLife | undefined
  #lives = 0
  #restoredSavepoints = 0
  #busy = false

  constructor(job: Job, options: MiniClusterOptions) {
    this.#job = job
    this.#options = options
    this.#parallelism = options.parallelism
    const { name = 'tested', time = 'virtual', seed = 1, files } = options
    const number = (clusters.get(name) ?? 0) + 1
    clusters.set(name, number)
    this.jobId = localJobId(name, number)
    this.#time = time === 'virtual' ? virtualTime(seed) : realTime(() => undefined)
    this.#world = {
      host: {
        environment: this.#time.environment,
        createBudget: () => this.#time.createBudget(),
        hit: (failpoint: FailpointName, process: TestProcess) => this.#failpoints.hit(failpoint, process),
        log: (line: ClusterLogLine) => void this.logLines.push(line),
      },
      network: new MemoryNetwork(),
      store: this.#store,
      head: this.#head,
      files: files ?? (time === 'virtual' ? new MemoryFiles() : new NodeFiles()),
      savepoints: new MemoryFiles(),
    }
  }

  /** Until all subtasks run, or the job has ended. Throws MR-K02 when it runs or is over, and what is wrong in the job. */
  async start(options: StartOptions = {}): Promise<void> {
    const end = this.#head.now?.end.kind
    if (this.#life?.alive === true || end === 'finished' || end === 'failed' || end === 'cancelled')
      throw testkitError('MR-K02', `start(): ${stateOf(this.#life, this.#head.now)}`)
    const { from, allowNonRestoredState = false, allowDrained = false } = options
    const folder = `/restored-${++this.#restoredSavepoints}`
    this.#restore = {
      from: from && (await putDown(from, this.#world.savepoints, folder)),
      allowNonRestoredState,
      allowDrained,
    }
    await this.#startCoordinator()
  }

  /** Another coordinator on the same store, as after a crash or a suspension; until all subtasks run. */
  async restart(): Promise<void> {
    if (this.#life === undefined || this.#life.alive)
      throw testkitError('MR-K02', `restart(): ${stateOf(this.#life, this.#head.now)}`)
    // A start that goes on is where HEAD says.
    if (this.#restore !== undefined) this.#restore = { ...this.#restore, from: undefined }
    await this.#startCoordinator()
  }

  /** Stops with a savepoint, and goes on from it at this parallelism (operators that set theirs keep it). Returns the savepoint. */
  async rescale(parallelism: number): Promise<Savepoint> {
    const savepoint = await this.stop()
    this.#parallelism = parallelism
    await this.start()
    return savepoint
  }

  /** Time passes, ms. */
  async advance(ms: number): Promise<void> {
    await this.#pass(ms, () => false)
  }

  /** Until `condition`, looked at often, is true; throws MR-K01, which says what the job is at, when the time is over or the job does not run any more. */
  async until(condition: () => boolean, options: { readonly withinMs?: number } = {}): Promise<void> {
    await this.#until('until(): the condition', condition, options.withinMs)
  }

  /** Until the job has ended. Throws what its coordinator could not go on for, and MR-K01. */
  async untilEnd(options: { readonly withinMs?: number } = {}): Promise<JobOutcome> {
    await this.#until('untilEnd(): the end of the job', () => this.outcome !== undefined, options.withinMs)
    return this.outcome!
  }

  /** Until a checkpoint that begins now has completed and its commits are done. Returns its id. Throws MR-K03. */
  async checkpoint(): Promise<number> {
    const { coordinator } = this.#running('checkpoint()')
    const before = Math.max(coordinator.checkpoints?.pending?.id ?? 0, this.checkpoints.at(-1) ?? 0)
    const failures = this.#failed.length
    const completed = () => this.checkpoints.find((id) => id > before)
    const failed = () => this.#failed.slice(failures).find(({ id }) => id > before)
    coordinator.checkpoint()
    await this.#until('checkpoint(): its end', () => completed() !== undefined || failed() !== undefined)
    const id = completed()
    if (id === undefined) throw testkitError('MR-K03', `checkpoint(): ${failed()!.detail}.`)
    await this.#until('checkpoint(): its commits', () => this.#head.now?.unconfirmed === undefined)
    return id
  }

  /** A savepoint; the job runs on, and nothing is committed by it. Throws MR-K03. */
  async savepoint(): Promise<Savepoint> {
    return this.#answered('savepoint()', this.#running('savepoint()').coordinator.savepoint())
  }

  /**
   * Ends the job with a savepoint: what came before it is committed, and nothing comes behind it. `drain`: event time ends first, so that
   * timers fire and windows close, and the job is finished. Throws MR-K03; the job then runs on.
   */
  async stop({ drain = false }: { readonly drain?: boolean } = {}): Promise<Savepoint> {
    const { coordinator } = this.#running('stop()')
    const savepoint = await this.#answered('stop()', coordinator.stop({ drain }))
    await this.untilEnd()
    return savepoint
  }

  /** Ends the tasks; `restart()` goes on from the newest checkpoint, in a new start. */
  async suspend(): Promise<void> {
    this.#running('suspend()').coordinator.suspend()
    await this.untilEnd()
  }

  /** Ends the job for good, without a savepoint. */
  async cancel(): Promise<void> {
    this.#running('cancel()').coordinator.cancel()
    await this.untilEnd()
  }

  /** Kills one of the living slots, as SIGKILL would; the job restarts what ran there when time passes. Throws MR-K02 for one that is not there. */
  killSlot(index = 0): void {
    const { slots } = this.#running('killSlot()')
    const slot = slots[index]
    if (slot === undefined) throw testkitError('MR-K02', `killSlot(${index}): ${slots.length} slots live.`)
    slot.kill('killed by the test')
  }

  /** Kills the coordinator with its slots, as SIGKILL of `millrace run` would. */
  killCoordinator(): void {
    this.#running('killCoordinator()').kill()
  }

  /** The process that passes this point next dies there: a slot, or the coordinator with its slots. `skip`: after so many passages. */
  killAt(name: FailpointName, { skip = 0 }: { readonly skip?: number } = {}): ArmedFailpoint {
    return this.#failpoints.arm(name, { act: 'kill', skip })
  }

  /** Whatever passes this point next fails there with an error. */
  failAt(name: FailpointName, { skip = 0 }: { readonly skip?: number } = {}): ArmedFailpoint {
    return this.#failpoints.arm(name, { act: 'fail', skip })
  }

  /** Whether a coordinator lives: the job has not ended, and nobody killed it. */
  get running(): boolean {
    return this.#life?.alive === true
  }

  /** undefined: the job has not ended. */
  get outcome(): JobOutcome | undefined {
    return this.#life?.outcome
  }

  /** Living slots. */
  get slots(): number {
    return this.#life?.slots.length ?? 0
  }

  /** Milliseconds that have passed since the cluster was opened, in virtual time; of some clock in real time. */
  get nowMs(): number {
    return this.#time.environment.clock.nowMs()
  }

  /**
   * Per subtask of the chain that the operator of this uid is in, as last reported (twice a second, and at its end); the job's own stand
   * under `user/<uid>/…`. [] before the first report. Throws MR-K02 for an unknown uid.
   */
  metrics(uid: string): readonly Readonly<Record<string, number>>[] {
    const vertex = this.#life?.graph.vertices.find(({ chain }) => chain.some((operator) => operator.uid === uid))
    if (vertex === undefined) throw testkitError('MR-K02', `metrics(): no operator has the uid '${uid}'.`)
    return [...(this.#life!.coordinator.execution?.tasks.values() ?? [])]
      .filter(({ task, report }) => task.vertex === vertex.id && report !== undefined)
      .map(({ report }) => report!.metrics)
  }

  /** Ends everything at once. */
  close(): void {
    this.#life?.kill()
  }

  async #startCoordinator(): Promise<void> {
    const { args, maxParallelism, settings = {}, name = 'tested' } = this.#options
    const life = new CoordinatorLife({
      world: this.#world,
      number: ++this.#lives,
      job: this.#job,
      id: this.jobId,
      build: { args, name, job: this.jobId, parallelism: this.#parallelism, maxParallelism, settings },
      restore: this.#restore,
      observer: this.#observer(),
    })
    this.#life = life
    const runs = (): boolean => life.coordinator.execution?.allRunning === true || life.outcome !== undefined
    await this.#until('start(): all subtasks to run', runs)
  }

  #observer(): CoordinatorObserver {
    return {
      checkpointCompleted: ({ manifest }) => {
        if (manifest.kind === 'checkpoint') this.checkpoints.push(manifest.id)
      },
      checkpointFailed: ({ id, reason, detail }) => void this.#failed.push({ id, detail: `${reason}: ${detail}` }),
      restarting: ({ message }) => void this.restarts.push(message),
    }
  }

  #running(verb: string): CoordinatorLife {
    if (this.#life?.alive !== true) throw testkitError('MR-K02', `${verb}: ${stateOf(this.#life, this.#head.now)}`)
    return this.#life
  }

  async #answered(verb: string, asked: Promise<SavepointAnswer>): Promise<Savepoint> {
    const given: { answer?: SavepointAnswer; error?: { readonly cause: unknown } } = {}
    asked.then(
      (answer) => (given.answer = answer),
      (cause: unknown) => (given.error = { cause }),
    )
    await this.#until(`${verb}: its answer`, () => given.answer !== undefined || given.error !== undefined)
    if (given.error !== undefined) throw given.error.cause
    const answer = given.answer!
    if (answer.outcome !== 'completed') throw testkitError('MR-K03', `${verb}: ${answer.detail}.`)
    return takeOut(this.#store, answer.manifest)
  }

  async #until(what: string, condition: () => boolean, withinMs = this.#time.withinMs): Promise<void> {
    const life = this.#life
    await this.#pass(withinMs, () => condition() || life?.alive !== true)
    // Whatever was still to be heard of its end.
    if (life?.alive !== true) await this.#pass(0, condition)
    if (condition()) return
    if (life?.broken !== undefined && !(life.broken.error instanceof PlannedFailure)) throw life.broken.error
    const { restarts, logLines } = this
    const within = life?.alive === true ? ` within ${withinMs} ms` : ''
    const report = reportOf({ life, head: this.#head.now, restarts, logLines })
    throw testkitError('MR-K01', `${what} did not come${within}. ${report}`)
  }

  async #pass(ms: number, done: () => boolean): Promise<void> {
    if (this.#busy) throw testkitError('MR-K02', 'Two of its calls run at once.')
    this.#busy = true
    try {
      await this.#time.pass(ms, done)
    } finally {
      this.#busy = false
    }
  }
}
