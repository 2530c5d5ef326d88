// A job's processes and the outside that outlives them: coordinators under a supervisor that replaces the dead and the silent, slots,
// network, store, ledgers.

import { MillraceError } from '../../base/errors.ts'
import { jobId, requestId, start } from '../../base/ids.ts'
import type { SlotId } from '../../base/ids.ts'
import { SnapshotDownloader } from '../../checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../../checkpoint/snapshot-writer.ts'
import { MemoryLedger } from '../../connectors/memory-ledger.ts'
import type { LedgerSystem } from '../../connectors/ledger.ts'
import { createLink } from '../../control/link.ts'
import type { DatagramPort } from '../../control/link.ts'
import type { FromSlot, ToSlot } from '../../control/contract.ts'
import { JobCoordinator } from '../../coordinator/job-coordinator.ts'
import type { JobOutcome } from '../../coordinator/coordinator-contract.ts'
import { placeTasks } from '../../coordinator/placement.ts'
import type { JobGraph } from '../../job/contract.ts'
import type { ForeignObjects, ObjectKey, ObjectStore } from '../../storage/contract.ts'
import type { ManifestRef } from '../../storage/head-contract.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../../storage/memory-store.ts'
import { Slot } from '../../worker/slot.ts'
import { SimDisk } from '../disk.ts'
import { SimLedger } from '../ledger.ts'
import { SimNetwork } from '../network.ts'
import { InjectedFailure, ProcessDeath } from '../process.ts'
import type { Machine, SimProcess } from '../process.ts'
import type { SeededRandom } from '../random.ts'
import { SimStore } from '../store.ts'
import type { World } from '../world.ts'
import { Gate } from './gate.ts'
import { graphOf } from './graph.ts'
import { HeadHistory } from './head-history.ts'
import type { SavepointCut } from './savepoint-cut.ts'
import type { JobShape } from './shape.ts'
import { numberOf, slowed } from './slow-slot.ts'
import { SimSlots } from './slots.ts'
import type { SlotPlace } from './slots.ts'
import { Witness } from './witness.ts'

/** Of the second ledger, which is slow: checkpoints complete while commits of older ones are still under way. Virtual ms. */
const slowCommitMsMean = 150
/** Names an object of another job's store. */
const foreignScheme = 'other:'
/** How often the supervisor looks whether its coordinator still answers, virtual ms. */
const watchMs = 1_000
/** A coordinator that has been silent for so long is replaced; it may wake up later. */
const silentMs = 3_000

interface SlotStart {
  readonly slot: SlotId
  readonly shape: JobShape
  readonly port: DatagramPort
}

/** What a coordinator is started with. */
interface Start {
  readonly number: number
  readonly shape: JobShape
}

/** Another job's savepoint, from which this job begins. */
export interface Origin {
  readonly savepoint: ManifestRef
  readonly cut: SavepointCut
  readonly of: JobCluster
}

export class JobCluster {
  readonly world: World
  readonly shape: JobShape
  readonly origin: Origin | undefined
  readonly witness = new Witness()
  readonly history = new HeadHistory(new MemoryHeadStore())
  readonly objects = new MemoryObjectStore()
  readonly ledgers: readonly MemoryLedger[]
  readonly network: SimNetwork
  readonly services: readonly (SimStore | SimLedger)[]
  readonly gate: Gate
  /** What no run may show, whatever fails. */
  readonly failures: string[] = []
  /** How the job ended, by the last coordinator that said so. */
  outcome: JobOutcome | undefined
  /** Completed savepoints, those to stop with among them. */
  readonly savepoints = new Map<number, ManifestRef>()
  readonly #name: string
  restarts = 0
  partialRestarts = 0
  coordinators = 0
  readonly #random: SeededRandom
  readonly #store: SimStore
  readonly #systems: readonly SimLedger[]
  readonly #machines: Machine[] = []
  readonly #disks = new Map<Machine, SimDisk>()
  readonly #slots = new Set<SimProcess>()
  readonly #alive = new Map<SimProcess, JobCoordinator>()
  readonly #silent = new Set<SimProcess>()
  /** Slots die with their coordinator, as in one process tree. */
  readonly #tree: boolean
  readonly #ownMachines: boolean
  readonly #linkDeadlineMs: number
  readonly #zombies: number
  readonly #lossNoticeMs: number
  #current: Start
  /** The job is to be suspended and go on like this, in its next start. */
  #next: Start | undefined
  #lives = 0
  #stops = 0

  constructor(world: World, shape: JobShape, origin?: Origin) {
    this.world = world
    this.shape = shape
    this.origin = origin
    this.#current = { number: 1, shape }
    this.#name = origin === undefined ? 'simulated' : 'copy'
    const of = origin === undefined ? '' : ' of the copy'
    this.#random = world.random.split(`cluster${of}`)
    const random = this.#random
    this.#tree = random.chance(0.3)
    // Who is to find a file on the disk must be on the machine.
    this.#ownMachines = !shape.files && random.chance(0.5)
    this.#linkDeadlineMs = random.pick([3_000, 10_000])
    this.#zombies = random.pick([0, 0.3, 0.8])
    this.#lossNoticeMs = random.pick([0, 0, 10_000])
    this.network = origin?.of.network ?? new SimNetwork(world)
    this.gate = new Gate(world)
    this.ledgers = Array.from({ length: shape.flow === 'regions' || shape.slowSink ? 2 : 1 }, () => new MemoryLedger())
    this.#store = new SimStore(world, { objects: this.objects, head: this.history }, `store${of}`)
    this.#systems = this.ledgers.map((ledger, index) =>
      index === 1 && shape.slowSink
        ? new SimLedger(world, ledger, { name: 'slow ledger', latencyMsMean: slowCommitMsMean })
        : new SimLedger(world, ledger, { name: `ledger${of}` }),
    )
    this.services = [this.#store, ...this.#systems]
    for (const name of shape.files ? ['a'] : ['a', 'b', 'c']) this.#machines.push(world.machine(`host ${name}${of}`))
  }

  /** The supervisor starts a coordinator and keeps one running until the job has ended. */
  begin(): void {
    this.#startCoordinator()
    this.#watch()
  }

  /** Everybody who may die or freeze. */
  processes(): readonly SimProcess[] {
    return [...this.#alive.keys(), ...this.#slots].filter(({ alive }) => alive)
  }

  slots(): readonly SimProcess[] {
    return [...this.#slots].filter(({ alive }) => alive)
  }

  machines(): readonly Machine[] {
    return this.world.machines.filter(({ processes }) => processes.length > 0)
  }

  get machinesOfJob(): readonly Machine[] {
    return this.#machines
  }

  /** Where file sinks write. */
  disks(): readonly SimDisk[] {
    return this.shape.files ? [...this.#disks.values()] : []
  }

  /** Asks the newest coordinator to suspend the job; to be asked again until the job has ended. */
  suspend(): void {
    this.#ask('suspend', (coordinator) => coordinator.suspend())
  }

  /** Likewise; it is not to go on ever. */
  cancel(): void {
    this.#ask('cancel', (coordinator) => coordinator.cancel())
  }

  /** Likewise with a savepoint. */
  stop(drain: boolean): void {
    const request = requestId(`stop ${this.#current.number}.${this.#stops}`)
    this.#ask('stop', (coordinator, process) => {
      void coordinator.stop({ drain, request }).then((answer) => {
        // The same request would be answered so for ever.
        if (process.alive && answer.outcome === 'failed') this.#stops++
      })
    })
  }

  /** A savepoint; what it was answered is found in `savepoints`. */
  savepoint(number: number): void {
    const request = requestId(`savepoint ${number}`)
    this.#ask('savepoint', (coordinator) => void coordinator.savepoint(request))
  }

  #ask(what: string, ask: (coordinator: JobCoordinator, process: SimProcess) => void): void {
    const newest = [...this.#alive].findLast(([process]) => process.alive)
    if (newest === undefined) return
    const [process, coordinator] = newest
    this.world.after(0, what, () => ask(coordinator, process), { owner: process })
  }

  /** Another coordinator, whether or not one is running: two at once must not harm. */
  startAnother(): boolean {
    if (this.outcome !== undefined) return false
    this.#startCoordinator()
    return true
  }

  /** Ends this start, to be asked again until it has happened; the next one goes on in this shape. */
  rescale(shape: JobShape): void {
    if (this.ended || this.#current.shape === shape) return
    this.#next ??= { number: this.#current.number + 1, shape }
    if (shape.rescaledBy === 'stop') this.stop(false)
    else this.suspend()
  }

  get starts(): number {
    return this.#current.number
  }

  /** Once more for the ended start: only the permitted commits may be left to do. */
  finishCommits(): void {
    this.outcome = undefined
    this.#startCoordinator()
  }

  get ended(): boolean {
    return this.outcome !== undefined
  }

  // ---- coordinators ----

  #startCoordinator(): void {
    const machine = this.#machines[this.#random.below(this.#machines.length)]!
    const process = machine.spawn(`coordinator ${++this.#lives}`)
    this.coordinators++
    const started = this.#current
    process.environment.executor.post(() => this.#runCoordinator(process, started))
    process.onExit(undefined, () => {
      this.#alive.delete(process)
      if (!this.ended && this.#alive.size === 0) this.#restartIn(this.#random.between(10, 500))
    })
  }

  #restartIn(delayMs: number): void {
    this.world.after(delayMs, 'supervisor', () => {
      if (!this.ended && this.#alive.size === 0) this.#startCoordinator()
    })
  }

  /** A coordinator that is silent, not dead: another one is started beside it. */
  #watch(): void {
    this.world.after(watchMs, 'supervisor looks', () => {
      if (!this.ended) {
        const newest = [...this.#alive.keys()].at(-1)
        if (newest !== undefined && newest.wakesInMs > silentMs && !this.#silent.has(newest)) {
          this.#silent.add(newest)
          this.world.tell(() => `${newest.name} does not answer: another one is started`)
          this.#startCoordinator()
        }
      }
      this.#watch()
    })
  }

  #runCoordinator(process: SimProcess, started: Start): void {
    const { environment } = process
    const graph = this.#graph(process, started.shape)
    const store = this.#store.objects(process)
    const foreign = this.#foreign(process)
    const coordinator = new JobCoordinator({
      graph,
      job: jobId(this.#name),
      start: start(started.number),
      environment,
      files: this.#disk(process.machine).handle(process),
      store,
      head: this.#store.head(process),
      slots: new SimSlots({
        coordinator: process,
        random: this.#random.split(`slots of ${process.name}`),
        linkDeadlineMs: this.#linkDeadlineMs,
        zombies: this.#tree ? 0 : this.#zombies,
        lossNoticeMs: () => this.#lossNoticeMs,
        spawn: (slot, parent) => this.#spawnSlot(slot, parent, started.shape),
        onTrigger: (id, incarnation) => this.history.triggered(id, incarnation),
      }),
      snapshotWriters: new SnapshotUploader({ store, environment, writers: 4 }),
      snapshotReader: new SnapshotDownloader({ store, environment, ...foreign }),
      ...foreign,
      ...this.#restore(started),
      observer: {
        checkpointCompleted: ({ manifest }) => {
          if (manifest.kind === 'savepoint') this.savepoints.set(manifest.id, manifest)
        },
        restarting: ({ tasks }) => {
          this.restarts++
          if (tasks < graph.vertices.reduce((sum, { parallelism }) => sum + parallelism, 0)) this.partialRestarts++
        },
      },
    })
    this.#alive.set(process, coordinator)
    coordinator.run().then(
      (outcome) => process.alive && this.#coordinatorEnded(process, started, outcome),
      (error: unknown) => process.alive && this.#coordinatorBroke(process, error),
    )
  }

  #coordinatorEnded(process: SimProcess, started: Start, outcome: JobOutcome): void {
    this.world.tell(() => `${process.name} ends: ${outcome.kind}`)
    process.kill(`its job: ${outcome.kind}`)
    if (outcome.kind === 'fenced' || started !== this.#current) return
    const end = outcome.kind === 'ended' ? outcome.head.end.kind : outcome.kind
    if ((end === 'suspended' || end === 'stopped') && this.#next !== undefined) {
      this.#current = this.#next
      this.#next = undefined
      this.#startCoordinator()
      return
    }
    if (outcome.kind === 'failed') this.failures.push(`The job failed: ${outcome.reason}`)
    this.outcome = outcome
  }

  /** It cannot go on; the supervisor starts another. What a new process does not mend is a failure. */
  #coordinatorBroke(process: SimProcess, error: unknown): void {
    this.world.tell(
      () => `${process.name} breaks: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
    )
    const passes =
      error instanceof InjectedFailure ||
      error instanceof ProcessDeath ||
      (error instanceof MillraceError && error.retry)
    if (!passes) {
      const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
      this.failures.push(`${process.name} broke: ${reason}`)
      this.outcome = { kind: 'failed', reason }
    }
    process.kill('broken')
  }

  // ---- slots ----

  #spawnSlot(slot: SlotId, coordinator: SimProcess, shape: JobShape): SlotPlace {
    const machine = this.#tree
      ? coordinator.machine
      : this.#ownMachines
        ? this.world.machine(`host of ${slot} ${this.#slots.size}`)
        : this.#machines[this.#random.below(this.#machines.length)]!
    const process = machine.spawn(`slot ${slot}`, this.#tree ? coordinator : undefined)
    this.#slots.add(process)
    process.onExit(undefined, () => void this.#slots.delete(process))
    const [atCoordinator, atSlot] = this.network.pair(coordinator, process)
    process.environment.executor.post(() => this.#runSlot(process, { slot, shape, port: atSlot }))
    const deadlineMs = this.#linkDeadlineMs
    return {
      process,
      connect: () =>
        createLink<ToSlot, FromSlot>({ port: atCoordinator, environment: coordinator.environment, deadlineMs }),
    }
  }

  #runSlot(process: SimProcess, { slot, shape, port }: SlotStart): void {
    const graph = this.#graph(process, shape)
    const environment = this.#isSlow(slot, shape, graph) ? slowed(process, shape.slowTurnMs!) : process.environment
    const store = this.#store.objects(process)
    const link = createLink<FromSlot, ToSlot>({ port, environment, deadlineMs: this.#linkDeadlineMs })
    void new Slot({
      slot,
      job: jobId(this.#name),
      graph,
      environment,
      files: this.#disk(process.machine).handle(process),
      transport: this.network.transport(process),
      control: {
        ...link,
        // A slot without its coordinator has nothing left to do: its process ends.
        onLost: (callback) =>
          link.onLost((reason) => {
            callback(reason)
            process.kill(`lost its coordinator: ${reason}`)
          }),
      },
      snapshotWriters: new SnapshotUploader({ store, environment, writers: 4 }),
      snapshotReader: new SnapshotDownloader({ store, environment, ...this.#foreign(process) }),
      ...(shape.creditBytes === undefined ? {} : { creditBytes: shape.creditBytes }),
    })
  }

  #isSlow(slot: SlotId, shape: JobShape, graph: JobGraph): boolean {
    if (shape.slowTurnMs === undefined) return false
    const number = numberOf(slot)
    if (!shape.sudden) return this.#random.split(`slowness of ${number}`).chance(0.5)
    const sources = new Set(graph.vertices.filter(({ inputs }) => inputs.length === 0).map(({ id }) => id))
    return !placeTasks(graph).tasks.some(({ task, slot: at }) => at === number && sources.has(task.vertex))
  }

  #graph(process: SimProcess, shape: JobShape): JobGraph {
    const ledgers: LedgerSystem[] = this.#systems.map((system) => system.handle(process))
    const { environment } = process
    return graphOf({
      shape,
      environment,
      ledgers,
      gate: this.gate.handle(process),
      witness: this.witness.sink(process),
    })
  }

  /** The other job goes on, and commits what its savepoint holds itself: this one has a ledger of its own. */
  #restore({ number }: Start) {
    if (this.origin === undefined || number > 1) return {}
    const { savepoint } = this.origin
    const from = { ...savepoint, path: `${foreignScheme}${savepoint.path}` as ObjectKey }
    return { restore: { from, committed: true, allowNonRestoredState: false, allowDrained: false } }
  }

  #foreign(process: SimProcess): { readonly foreign?: ForeignObjects } {
    if (this.origin === undefined) return {}
    const store: ObjectStore = this.origin.of.#store.objects(process)
    const own = (key: ObjectKey) => key.slice(foreignScheme.length) as ObjectKey
    return {
      foreign: {
        read: (key) => store.read(own(key)),
        readRange: (key, offset, length) => store.readRange(own(key), offset, length),
      },
    }
  }

  #disk(machine: Machine): SimDisk {
    let disk = this.#disks.get(machine)
    if (disk === undefined) {
      disk = new SimDisk(machine)
      this.#disks.set(machine, disk)
    }
    return disk
  }
}
