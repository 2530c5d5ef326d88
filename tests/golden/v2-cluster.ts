// Runs the job of tests/golden/v2 in one thread, in virtual time, on stores that were filled or are to be kept.

import type { FailpointName } from '../../runtime/base/failpoints.ts'
import { localJobId } from '../../runtime/storage/paths.ts'
import type { JobOutcome, RestoreRequest } from '../../runtime/coordinator/coordinator-contract.ts'
import { linesOfFile } from './v2-files.ts'
import type { HeadStore, ObjectStore } from '../../runtime/storage/contract.ts'
import { MemoryFiles } from '../../runtime/storage/memory-files.ts'
import { CoordinatorLife } from '../../runtime/testkit/coordinator-life.ts'
import { MemoryNetwork } from '../../runtime/testkit/memory-links.ts'
import { PlannedFailpoints } from '../../runtime/testkit/planned-failpoints.ts'
import { virtualTime } from '../../runtime/testkit/test-time.ts'
import type { TestProcess } from '../../runtime/testkit/test-process.ts'
import { goldenJob, outputFolder, processingEndMs } from './v2-job.ts'
import { perSplit } from './v2-outside.ts'
import type { Outside } from './v2-outside.ts'

export interface GoldenClusterOptions {
  readonly name: string
  readonly outside: Outside
  readonly store: ObjectStore
  readonly head: HeadStore
  /** What sources and sinks see. */
  readonly files: MemoryFiles
  /** Where savepoints of other jobs lie. */
  readonly savepoints?: MemoryFiles
  readonly parallelism: number
  readonly restore?: RestoreRequest
}

/** Nothing here waits longer. */
const withinMs = 600_000

export class GoldenCluster {
  readonly failpoints = new PlannedFailpoints()
  readonly restarts: string[] = []
  readonly completed: number[] = []
  readonly life: CoordinatorLife
  readonly #time = virtualTime(1)
  readonly #options: GoldenClusterOptions

  constructor(options: GoldenClusterOptions) {
    const { name, outside, store, head, files, savepoints = new MemoryFiles(), parallelism, restore } = options
    this.#options = options
    const id = localJobId(name, 1)
    this.life = new CoordinatorLife({
      world: {
        host: {
          environment: this.#time.environment,
          createBudget: () => this.#time.createBudget(),
          hit: (failpoint: FailpointName, process: TestProcess) => this.failpoints.hit(failpoint, process),
          log: () => undefined,
        },
        network: new MemoryNetwork(),
        store,
        head,
        files,
        savepoints,
      },
      number: 1,
      job: goldenJob(outside),
      id,
      build: { name, job: id, parallelism, settings: {} },
      restore,
      observer: {
        restarting: ({ message }) => void this.restarts.push(message),
        checkpointCompleted: ({ manifest }) => void this.completed.push(manifest.id),
      },
    })
  }

  async until(what: string, isTrue: () => boolean): Promise<void> {
    const { life } = this
    await this.#time.pass(withinMs, () => isTrue() || !life.alive)
    if (life.broken !== undefined) throw life.broken.error
    if (!isTrue())
      throw new Error(`${what} did not come; ${this.restarts.length} restarts, last for: ${this.restarts.at(-1)}`)
  }

  async advance(ms: number): Promise<void> {
    await this.#time.pass(ms, () => false)
  }

  /** Until each source has read so many records of each of its splits, and what follows from them is done. */
  async readUntil(limit: number): Promise<void> {
    this.#options.outside.limit = limit
    await this.advance(400)
  }

  get nowMs(): number {
    return this.#time.environment.clock.nowMs()
  }

  /** From wherever it is: all records but the last ones, then all timers of the wall clock, then the end. Gives all results, those of before too. */
  async toItsEnd(): Promise<{ readonly outcome: JobOutcome; readonly results: readonly string[] }> {
    const { outside, files } = this.#options
    await this.until('all subtasks to run', () => this.life.coordinator.execution?.allRunning === true)
    outside.answerAll()
    await this.readUntil(perSplit - 1)
    if (this.nowMs > processingEndMs / 5) throw new Error(`The wall clock is at ${this.nowMs} ms already.`)
    await this.advance(2 * processingEndMs)
    outside.limit = Infinity
    // Windows of the wall clock that its last records began would not fire at the end of data.
    await this.until('the end', () => this.life.outcome !== undefined)
    const lines = await linesOfFile(files, outputFolder)
    const held = [...outside.committed.values()].flat()
    return { outcome: this.life.outcome!, results: [...lines, ...held].toSorted() }
  }

  kill(): void {
    this.life.kill()
  }
}
