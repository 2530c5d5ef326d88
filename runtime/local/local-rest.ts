// REST of a job that this process runs, until its end. The job runs as well without it.

import type { Environment, Timer } from '../base/environment.ts'
import { bothObservers } from '../coordinator/both-observers.ts'
import type { CoordinatorObserver } from '../coordinator/coordinator-contract.ts'
import type { JobGraph } from '../job/contract.ts'
import type { ControlledJob } from '../rest/controlled-job.ts'
import { HistoryKeeper } from '../rest/history-keeper.ts'
import { JobHistory } from '../rest/job-history.ts'
import { createRest } from '../rest/server.ts'
import type { Rest } from '../rest/server.ts'
import type { FileSystem } from '../storage/contract.ts'
import { attachLocalStores } from '../storage/local-stores.ts'
import { headKeeperOf, snapshotFolderIn } from './local-jobs.ts'
import type { StoredJob } from './local-jobs.ts'
import { removeRestAddress, writeRestAddress } from './platform/rest-file.ts'

/**
 * The server is loaded once all subtasks run, so that it takes no time from the start of a job; or so long after a start that does not
 * come to its end, which may be just what somebody wants to ask about.
 */
const servedAfterMs = 1_000
/** A job that ends sooner leaves no history: writing it would take longer than the rest of its end. */
const historyAfterMs = 10_000

export interface LocalRestOptions {
  readonly environment: Environment
  readonly files: FileSystem
  readonly pid: number
}

export interface RunningJob extends StoredJob {
  readonly coordinator: ControlledJob
  readonly graph: JobGraph
}

export class LocalRest {
  readonly #options: LocalRestOptions
  readonly #history: JobHistory
  readonly #instance: string
  #job: RunningJob | undefined
  #timer: Timer | undefined
  #isServed = false
  #isClosed = false
  #listening: Promise<Rest> | undefined
  #keeper: HistoryKeeper | undefined

  constructor(options: LocalRestOptions) {
    this.#options = options
    this.#history = new JobHistory(options.environment.clock)
    this.#instance = options.environment.random.id()
  }

  /** The observer to run the job with: it tells `other`, too. */
  watching(other: CoordinatorObserver): Required<CoordinatorObserver> {
    const serving: CoordinatorObserver = {
      began: () => {
        this.#timer = this.#options.environment.clock.timer(servedAfterMs, () => void this.#serve())
      },
      running: () => void this.#serve(),
    }
    return bothObservers(this.#history.observer, bothObservers(serving, other))
  }

  /** Which job it is, before it runs. */
  serve(job: RunningJob): void {
    this.#job = job
  }

  /** Never rejects. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#keeper?.close()
    try {
      const rest = await this.#listening
      if (rest === undefined) return
      await removeRestAddress(this.#job!.storeFolder, this.#instance)
      await rest.close()
    } catch (error) {
      this.#warn('the REST server of the job was not closed in order', error)
    }
  }

  /** Once. Never rejects: a job that nobody can ask is still a job. */
  async #serve(): Promise<void> {
    if (this.#isServed || this.#isClosed) return
    this.#isServed = true
    try {
      const { token, rest } = await this.#create()
      if (this.#isClosed) return
      this.#listening = this.#listen(rest, token)
      await this.#listening
    } catch (error) {
      this.#warn('millrace status, savepoint, stop and cancel will not reach this job', error)
    }
  }

  async #create(): Promise<{ readonly token: string; readonly rest: Rest }> {
    const { environment, files } = this.#options
    const { coordinator, graph, ...stored } = this.#job!
    const keeper = await headKeeperOf(stored, { files, environment })
    this.#keepHistory(stored)
    const token = `${environment.random.id()}${environment.random.id()}`
    const rest = await createRest({
      job: coordinator,
      graph,
      history: this.#history,
      instance: this.#instance,
      tokens: { owner: token },
      listen: { host: '127.0.0.1', port: 0 },
      // Its one user is at the terminal, and sees which job it is.
      identified: false,
      pings: {
        storage: async () => {
          await keeper.readBegun()
        },
      },
      readHead: () => keeper.readBegun(),
      locate: snapshotFolderIn(stored.storeFolder),
      clock: environment.clock,
      random: environment.random,
      log: (level, message, fields) => environment.log(level, message, fields),
    })
    return { token, rest }
  }

  #keepHistory({ storeFolder }: StoredJob): void {
    const { files, environment } = this.#options
    if (this.#isClosed) return
    const { objects } = attachLocalStores({ files, folder: storeFolder, environment })
    this.#keeper = new HistoryKeeper({
      history: this.#history,
      store: objects,
      environment,
      firstWriteAfterMs: historyAfterMs,
    })
    void this.#keeper.load()
  }

  /** The address is written when it can be called. */
  async #listen(rest: Rest, token: string): Promise<Rest> {
    const { storeFolder, id } = this.#job!
    const { pid } = this.#options
    try {
      const address = await rest.listen()
      await writeRestAddress(storeFolder, { version: 1, pid, job: id, instance: this.#instance, address, token })
      return rest
    } catch (error) {
      // Nobody would find it.
      await rest.close()
      throw error
    }
  }

  #warn(what: string, error: unknown): void {
    this.#options.environment.log('warn', what, { error: error instanceof Error ? error.message : String(error) })
  }
}
