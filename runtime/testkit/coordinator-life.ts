// One coordinator of a mini cluster with the slots that it started: the real ones, in one thread, dying together.

import type { JobId, SlotId } from '../base/ids.ts'
import { SnapshotDownloader } from '../checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../checkpoint/snapshot-writer.ts'
import type { SlotProvider } from '../control/contract.ts'
import { serializeError } from '../control/serialized-error.ts'
import type { CoordinatorObserver, JobOutcome, RestoreRequest } from '../coordinator/coordinator-contract.ts'
import { JobCoordinator } from '../coordinator/job-coordinator.ts'
import { placeTasks } from '../coordinator/placement.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { BuildOptions } from '../job/build-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Job } from '../job/define-job.ts'
import type { FileSystem, HeadStore, ObjectStore } from '../storage/contract.ts'
import { ForeignFiles } from '../storage/foreign-files.ts'
import { Slot } from '../worker/slot.ts'
import { linkBetween } from './memory-links.ts'
import type { MemoryNetwork } from './memory-links.ts'
import { TestProcess } from './test-process.ts'
import type { TestHost } from './test-process.ts'

/** What outlives coordinators and slots. */
export interface ClusterWorld {
  readonly host: TestHost
  readonly network: MemoryNetwork
  readonly store: ObjectStore
  readonly head: HeadStore
  /** What sources and sinks see. */
  readonly files: FileSystem
  /** Where savepoints of other clusters lie. */
  readonly savepoints: FileSystem
}

export interface LifeOptions {
  readonly world: ClusterWorld
  /** Tells coordinators apart: 1, 2, 3 … */
  readonly number: number
  readonly job: Job
  readonly id: JobId
  readonly build: BuildOptions
  readonly restore: RestoreRequest | undefined
  readonly observer: CoordinatorObserver
}

export class CoordinatorLife {
  readonly graph: JobGraph
  readonly coordinator: JobCoordinator
  readonly #options: LifeOptions
  readonly #process: TestProcess
  readonly #slots = new Map<SlotId, TestProcess>()
  #outcome: JobOutcome | undefined
  #broken: { readonly error: unknown } | undefined

  /** Throws MR-J… for what is wrong in the job. It begins to run in the next turns. */
  constructor(options: LifeOptions) {
    this.#options = options
    const { world, job, build, id, restore, observer } = options
    this.graph = buildGraph(job, build)
    this.#process = new TestProcess(`coordinator ${options.number}`, world.host)
    this.#process.onExit((reason) => {
      for (const slot of this.#slots.values()) slot.kill(reason)
    })
    this.coordinator = new JobCoordinator({
      ...this.#handsOf(this.#process),
      graph: this.graph,
      job: id,
      start: undefined,
      head: this.#process.callsTo(world.head),
      slots: this.#slotProvider(),
      restore,
      observer,
    })
    this.coordinator.run().then(
      (outcome) => this.#end(() => (this.#outcome = outcome)),
      (error: unknown) => this.#end(() => (this.#broken = { error })),
    )
  }

  get alive(): boolean {
    return this.#process.alive
  }

  /** How the job ended, if this coordinator saw it end. */
  get outcome(): JobOutcome | undefined {
    return this.#outcome
  }

  /** Why it could not go on, if so; the job has not ended by that. */
  get broken(): { readonly error: unknown } | undefined {
    return this.#broken
  }

  /** Living slots, by number. */
  get slots(): readonly TestProcess[] {
    return [...this.#slots]
      .filter(([, slot]) => slot.alive)
      .toSorted(([left], [right]) => Number.parseInt(left, 10) - Number.parseInt(right, 10))
      .map(([, slot]) => slot)
  }

  kill(): void {
    this.#process.kill('killed by the test')
  }

  #end(note: () => void): void {
    // What a dead process still works out nobody hears.
    if (!this.#process.alive) return
    note()
    this.#process.kill('its coordinator has ended')
  }

  #slotProvider(): SlotProvider {
    return {
      start: (id) => {
        const slot = new TestProcess(`slot ${id}`, this.#options.world.host)
        const { near, far } = linkBetween(this.#process, slot)
        this.#slots.set(id, slot)
        slot.onExit(() => void this.#slots.delete(id))
        slot.environment.executor.post(() => this.#runSlot(id, slot, far))
        return near
      },
      terminate: async (id) => this.#slots.get(id)?.kill('ended by its coordinator'),
    }
  }

  /** Builds its own graph, as a thread or another machine would. */
  #runSlot(id: SlotId, process: TestProcess, control: ConstructorParameters<typeof Slot>[0]['control']): void {
    const { world, job, build } = this.#options
    try {
      void new Slot({
        ...this.#handsOf(process),
        slot: id,
        job: this.#options.id,
        graph: buildGraph(job, build),
        transport: world.network.of(process),
        control,
      })
    } catch (error) {
      control.send({ type: 'failed', task: undefined, attempt: undefined, error: serializeError(error) })
    }
  }

  #handsOf(process: TestProcess) {
    const { world } = this.#options
    const { environment } = process
    const store = process.callsTo(world.store)
    const foreign = new ForeignFiles(process.callsTo(world.savepoints))
    const writers = placeTasks(this.graph).slotCount + 1
    return {
      environment,
      files: process.callsTo(world.files),
      store,
      foreign,
      snapshotWriters: new SnapshotUploader({ store, environment, writers }),
      snapshotReader: new SnapshotDownloader({ store, foreign, environment }),
    }
  }
}
