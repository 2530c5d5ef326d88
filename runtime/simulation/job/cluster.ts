// A job's processes and the outside that outlives them: coordinators under a supervisor that replaces the dead and the silent, slots,
// network, store, ledgers.

import { MillraceError } from '../../base/errors.ts'
import { formatAttempt, jobId, requestId, start, taskKey } from '../../base/ids.ts'
import type { RequestId, SlotId } from '../../base/ids.ts'
import { SnapshotDownloader } from '../../checkpoint/snapshot-reader.ts'
import { SnapshotUploader } from '../../checkpoint/snapshot-writer.ts'
import { MemoryLedger } from '../../connectors/memory-ledger.ts'
import type { LedgerSystem } from '../../connectors/ledger.ts'
import type { ControlLink, FromSlot, SlotProvider, SurvivingSlot, ToSlot } from '../../control/contract.ts'
import { createLink } from '../../control/link.ts'
import { SimConnections } from '../connections.ts'
import { JobCoordinator } from '../../coordinator/job-coordinator.ts'
import type { JobOutcome, SavepointAnswer } from '../../coordinator/coordinator-contract.ts'
import { placeTasks } from '../../coordinator/placement.ts'
import { afterBackOff } from '../../distributed/after-back-off.ts'
import type { RemoteSlots } from '../../coordinator/remote-slots.ts'
import type { JobGraph } from '../../job/contract.ts'
import type { ForeignObjects, ObjectKey, ObjectStore } from '../../storage/contract.ts'
import type { Head, ManifestRef } from '../../storage/head-contract.ts'
import { HeadKeeper } from '../../storage/head-keeper.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../../storage/memory-store.ts'
import { Slot } from '../../worker/slot.ts'
import { SimDisk, foreseeTrouble } from '../disk.ts'
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
import { ReportedSavepoints } from './reported-savepoints.ts'
import type { SavepointCut } from './savepoint-cut.ts'
import type { JobShape } from './shape.ts'
import { isSlowSlot, numberOf, slowed } from './slow-slot.ts'
import { watchedSlots } from './moments.ts'
import { SimSlots } from './slots.ts'
import type { SpawnedSlot } from './slots.ts'
import { Witness } from './witness.ts'
import { BeginWatch } from './begin-watch.ts'
import { WorkerPool } from './worker-pool.ts'
import { remoteSlots } from './workers.ts'
import type { JobNetwork } from './workers.ts'

/** Of the second ledger, which is slow: checkpoints complete while commits of older ones are still under way. Virtual ms. */
const slowCommitMsMean = 150
/** Names an object of another job's store. */
const foreignScheme = 'other:'
/** How often the supervisor looks whether its coordinator still answers, virtual ms. */
const watchMs = 1_000
/** A coordinator that has been silent for so long is replaced; it may wake up later. */
const silentMs = 3_000
/** What is left of the back-off of a coordinator that was overtaken, virtual ms: its supervisor starts it at once, and it waits. */
const backOffMsMax = 20_000

interface SlotRun {
  readonly slot: SlotId
  readonly shape: JobShape
  readonly control: ControlLink<FromSlot, ToSlot>
}

/** A coordinator whose job has ended waits so long for its workers to be gone, virtual ms. */
const dismissMs = 5_000
const dismissLookMs = 50

interface RunningCoordinator {
  readonly process: SimProcess
  readonly started: Start
  readonly remote: RemoteSlots | undefined
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
  /** This job lacks an operator that the other one had, and drops its state. */
  readonly drops: boolean
}

export class JobCluster {
  readonly world: World
  readonly shape: JobShape
  readonly origin: Origin | undefined
  readonly witness = new Witness()
  readonly objects = new MemoryObjectStore()
  readonly savepoints = new ReportedSavepoints(this.objects)
  readonly history = new HeadHistory(new MemoryHeadStore(), this.savepoints)
  readonly ledgers: readonly MemoryLedger[]
  readonly network: SimNetwork
  readonly services: readonly (SimStore | SimLedger)[]
  readonly gate: Gate
  /** What no run may show, whatever fails. */
  readonly failures: string[] = []
  readonly #beginWatch = new BeginWatch((what) => void this.failures.push(what))
  /** How the job ended, by the last coordinator that said so. */
  outcome: JobOutcome | undefined
  readonly #name: string
  restarts = 0
  partialRestarts = 0
  /** In place. */
  rescales = 0
  /** Coordinators that took over everything, and some of it. */
  adoptions = 0
  partialAdoptions = 0
  /** Coordinators that were overtaken and came back: who began again, and who found another one. */
  returns = 0
  waysGiven = 0
  coordinators = 0
  /** Nothing has gone back to a restore point: each slot of a start, and of its sizes, was started once. */
  undisturbed = true
  /** Hears what kind of message a coordinator sends or hears. */
  onWord: ((coordinator: SimProcess, type: FromSlot['type'] | ToSlot['type']) => void) | undefined
  readonly #random: SeededRandom
  readonly #store: SimStore
  readonly #systems: readonly SimLedger[]
  readonly #machines: Machine[] = []
  readonly #disks = new Map<Machine, SimDisk>()
  readonly #slots = new Set<SimProcess>()
  readonly #workers = new Set<SimProcess>()
  readonly #alive = new Map<SimProcess, JobCoordinator>()
  /** Those too that only send their workers home. */
  readonly #coordinators = new Set<SimProcess>()
  readonly #silent = new Set<SimProcess>()
  /**
   * tree: slots die with their coordinator, as in one process tree. apart: each has a host, and ends when it has lost its coordinator.
   * workers: they outlive their coordinator, and the next one takes them over.
   */
  readonly kind: 'tree' | 'apart' | 'workers'
  readonly connections: SimConnections
  readonly #ownMachines: boolean
  readonly #linkDeadlineMs: number
  readonly #zombies: number
  readonly #lossNoticeMs: number
  readonly #slotsStarted = new Set<string>()
  #pool: WorkerPool | undefined
  #hosts = 0
  #current: Start
  /** The job is to be suspended and go on like this, in its next start. */
  #next: Start | undefined
  #lives = 0
  #stops = 0
  #rescaleTries = 0

  constructor(world: World, shape: JobShape, origin?: Origin) {
    this.world = world
    this.shape = shape
    this.origin = origin
    this.#current = { number: 1, shape }
    this.#name = origin === undefined ? 'simulated' : 'copy'
    const of = origin === undefined ? '' : ' of the copy'
    this.#random = world.random.split(`cluster${of}`)
    const random = this.#random
    const tree = random.chance(0.2)
    // Who is to find a file on the disk must be on the machine.
    this.#ownMachines = !shape.files && random.chance(0.5)
    this.#linkDeadlineMs = random.pick([3_000, 10_000])
    this.#zombies = random.pick([0, 0.3, 0.8])
    this.#lossNoticeMs = random.pick([0, 0, 10_000])
    const adopts = world.random
      .split(`adoption${of}`)
      .chance(shape.flow === 'regions' || shape.flow === 'pipes' ? 0.95 : 0.75)
    this.kind = shape.trial !== undefined ? 'workers' : tree ? 'tree' : adopts ? 'workers' : 'apart'
    this.network = origin?.of.network ?? new SimNetwork(world)
    this.connections = new SimConnections(this.network, world.random.split(`connections${of}`))
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
    this.#startWorkers(this.#startCoordinator())
    this.#watch()
  }

  /** Whether a list has shown anybody what was not, or not what was. */
  get staleLists(): boolean {
    return (this.#store.weather.counts.get('stale') ?? 0) > 0
  }

  /** Everybody who may die or freeze. */
  processes(): readonly SimProcess[] {
    return [...this.#alive.keys(), ...this.#workers, ...this.#slots].filter(({ alive }) => alive)
  }

  coordinatorsAlive(): readonly SimProcess[] {
    return [...this.#alive.keys()].filter(({ alive }) => alive)
  }

  /** Whether slots outlive their coordinator. */
  get adopts(): boolean {
    return this.kind === 'workers'
  }

  workers(): readonly SimProcess[] {
    return [...this.#workers].filter(({ alive }) => alive)
  }

  get takeovers(): number {
    return this.adoptions + this.partialAdoptions
  }

  /** Whether all subtasks run, by the word of the newest coordinator. */
  get runs(): boolean {
    const process = this.newestCoordinator
    return process !== undefined && this.#alive.get(process)?.execution?.allRunning === true
  }

  /** Whether some of it runs, and the rest waits for room or is on its way. */
  get halfRuns(): boolean {
    const process = this.newestCoordinator
    const tasks = [...((process && this.#alive.get(process)?.execution?.tasks.values()) ?? [])]
    return tasks.some(({ status }) => status === 'running') && tasks.some(({ status }) => status === 'deploying')
  }

  /** A worker is told to end: its slots are to move. */
  leave(worker: SimProcess): void {
    this.#pool?.leave(worker)
  }

  /** Who was started last of those that live. */
  get newestCoordinator(): SimProcess | undefined {
    return this.coordinatorsAlive().at(-1)
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
        this.#told(process, request, answer)
      })
    })
  }

  /** A savepoint; what it was answered is judged with `savepoints`. */
  savepoint(number: number): void {
    const request = requestId(`savepoint ${number}`)
    this.#ask('savepoint', (coordinator, process) => {
      void coordinator.savepoint(request).then((answer) => this.#told(process, request, answer))
    })
  }

  #told({ name }: SimProcess, request: RequestId, answer: SavepointAnswer): void {
    if (answer.outcome === 'completed') this.savepoints.answered(request, answer.manifest, name)
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

  /** Everything is to run elsewhere. */
  move(): boolean {
    if (this.ended || this.#alive.size === 0) return false
    this.#ask('move', (coordinator) => coordinator.move())
    return true
  }

  /** Ends this start, to be asked again until it has happened; the next one, or the same one in place, goes on in this shape. */
  rescale(shape: JobShape): void {
    if (this.ended || this.#current.shape === shape) return
    if (shape.rescaledBy === 'place') {
      const request = requestId(`rescale ${this.#rescaleTries}`)
      return this.#ask('rescale', (coordinator, process) => {
        void coordinator.rescale(sizeOf(shape), request).then((answer) => {
          // The same request would be answered so for ever.
          if (process.alive && answer.outcome === 'failed') this.#rescaleTries++
        })
      })
    }
    this.#next ??= { number: this.#current.number + 1, shape }
    if (shape.rescaledBy === 'stop') this.stop(false)
    else this.suspend()
  }

  /** Whether the rescale that was asked for has happened. */
  get rescaled(): boolean {
    return this.#current.number > 1 || this.history.newest?.rescaledTo !== undefined
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

  #startCoordinator(backOffMs?: number): SimProcess {
    const machine = this.#machines[this.#random.below(this.#machines.length)]!
    const process = machine.spawn(`coordinator ${++this.#lives}`)
    this.coordinators++
    this.#keep(this.#coordinators, process)
    const started = this.#current
    process.environment.executor.post(() => this.#runCoordinator(process, started, backOffMs))
    process.onExit(undefined, () => {
      this.#alive.delete(process)
      if (!this.ended && this.#alive.size === 0) this.#restartIn(this.#random.between(10, 500))
    })
    return process
  }

  #restartIn(delayMs: number): void {
    this.world.after(delayMs, 'supervisor', () => {
      if (!this.ended && this.#alive.size === 0) void this.#startCoordinator()
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

  /** By its own supervisor, which knows of no other coordinator. */
  #comeBack(): void {
    this.world.after(this.#random.between(10, 500), 'supervisor of the overtaken', () => {
      if (!this.ended) this.#startCoordinator(this.#random.between(0, backOffMsMax))
    })
  }

  #runCoordinator(process: SimProcess, started: Start, backOffMs: number | undefined): void {
    const { environment } = process
    const graph = this.#graph(process, started.shape)
    const store = this.#store.objects(process)
    const foreign = this.#foreign(process)
    const remote = this.kind === 'workers' ? remoteSlots(process, this.#jobNetwork) : undefined
    const coordinator = new JobCoordinator({
      graph,
      graphAt: (parallelism) => this.#graph(process, at(started.shape, parallelism)),
      job: jobId(this.#name),
      start: start(started.number),
      environment,
      files: this.#disk(process.machine).handle(process),
      store,
      head: this.#store.head(process),
      slots: this.#watched(process, started, remote ?? this.#slotsOf(process, started)),
      snapshotWriters: new SnapshotUploader({ store, environment, writers: 4 }),
      snapshotReader: new SnapshotDownloader({ store, environment, ...foreign }),
      ...foreign,
      ...this.#restore(started),
      observer: {
        running: () => this.#beginWatch.allRun(this.#slots),
        adopted: ({ restarting }) => {
          if (restarting === 0) this.adoptions++
          else this.partialAdoptions++
        },
        rescaled: () => void this.rescales++,
        restarting: ({ tasks }) => {
          this.restarts++
          if (tasks < graph.vertices.reduce((sum, { parallelism }) => sum + parallelism, 0)) this.partialRestarts++
        },
      },
    })
    remote?.onLeaving(({ slots }) => {
      if (slots.length > 0) coordinator.move()
    })
    const begin = (): Promise<JobOutcome> => {
      this.#alive.set(process, coordinator)
      return coordinator.run()
    }
    const running =
      backOffMs === undefined || remote === undefined
        ? begin()
        : this.#waits(process, remote, { started, backOffMs }).then((other): JobOutcome | Promise<JobOutcome> =>
            other === undefined ? begin() : { kind: 'fenced', head: other },
          )
    running.then(
      (outcome) => process.alive && this.#coordinatorEnded({ process, started, remote }, outcome),
      (error: unknown) => process.alive && this.#coordinatorBroke(process, error),
    )
  }

  /** As its process does. HEAD of the coordinator that lives; undefined: this one begins. */
  async #waits(
    process: SimProcess,
    slots: RemoteSlots,
    { started, backOffMs }: { readonly started: Start; readonly backOffMs: number },
  ): Promise<Head | undefined> {
    const { environment } = process
    slots.sendOn(() => undefined)
    const keeper = await HeadKeeper.open(this.#store.head(process), environment)
    const other = await afterBackOff({ keeper, slots, start: start(started.number), backOffMs, environment })
    this.world.tell(() => `${process.name}, once overtaken, ${other === undefined ? 'begins' : 'gives way'}`)
    if (other === undefined) this.returns++
    else this.waysGiven++
    return other
  }

  #slotsOf(process: SimProcess, { shape }: Start): SlotProvider {
    return new SimSlots({
      coordinator: process,
      random: this.#random.split(`slots of ${process.name}`),
      zombies: this.kind === 'tree' ? 0 : this.#zombies,
      lossNoticeMs: () => this.#lossNoticeMs,
      spawn: (slot, begin) => this.#spawnSlot(slot, process, at(shape, begin.parallelism)),
    })
  }

  #watched(process: SimProcess, started: Start, slots: SlotProvider): SlotProvider {
    return watchedSlots(slots, {
      started: (slot, parallelism) => this.#slotStarted(`${started.number} ${parallelism ?? ''} ${numberOf(slot)}`),
      sent: (message, incarnation) => {
        if (message.type === 'trigger') this.history.triggered(message.id, incarnation)
        this.onWord?.(process, message.type)
      },
      heard: ({ type }) => this.onWord?.(process, type),
      found: (survivors) =>
        this.world.tell(() => `${process.name} finds: ${survivors.map(textOf).join('; ') || 'nobody'}`),
    })
  }

  #slotStarted(what: string): void {
    if (this.#slotsStarted.has(what)) this.undisturbed = false
    this.#slotsStarted.add(what)
  }

  #coordinatorEnded({ process, started, remote }: RunningCoordinator, outcome: JobOutcome): void {
    this.world.tell(() => `${process.name} ends: ${outcome.kind}`)
    this.#alive.delete(process)
    if (remote !== undefined && outcome.kind !== 'fenced') this.#dismiss(process, remote)
    else process.kill(`its job: ${outcome.kind}`)
    if (started !== this.#current) return
    if (outcome.kind === 'fenced') {
      if (remote !== undefined) this.#comeBack()
      return
    }
    const end = outcome.kind === 'ended' ? outcome.head.end.kind : outcome.kind
    if ((end === 'suspended' || end === 'stopped') && this.#next !== undefined) {
      this.#current = this.#next
      this.#next = undefined
      // Whoever runs the next start takes the pods of this one away first.
      this.#pool?.kill('its start has ended')
      this.#startWorkers(this.#startCoordinator())
      return
    }
    this.#pool?.close()
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

  /** As its process does: it stays for a while, and tells whoever comes that all is over. */
  #dismiss(process: SimProcess, remote: RemoteSlots): void {
    remote.dismiss('the job has ended')
    const { clock } = process.environment
    const untilMs = clock.nowMs() + dismissMs
    const look = (): void => {
      const gone = remote.workers.every(({ state }) => state === 'lost')
      if (clock.nowMs() < untilMs && !(gone && this.workers().length === 0))
        return void clock.timer(dismissLookMs, look)
      remote.abandon()
      process.kill('its job has ended')
    }
    look()
  }

  /** Of a job that has ended: whoever still looks for its coordinator finds one, which knows that all is over. */
  sayGoodbye(): void {
    for (const process of this.#coordinators) process.kill('its pod is deleted')
    if (this.workers().length > 0) this.#startCoordinator()
  }

  /** Of a job that has ended: what still runs of it. Its pods are deleted then. */
  leftWorkers(): readonly string[] {
    const left = this.workers().map(({ name }) => name)
    this.#pool?.kill('the job has ended')
    return left
  }

  // ---- slots and workers ----

  get #jobNetwork(): JobNetwork {
    return { job: jobId(this.#name), network: this.network, connections: this.connections }
  }

  /** `coordinator`: any process, to build a graph with. */
  #startWorkers(coordinator: SimProcess): void {
    if (this.kind !== 'workers') return
    const started = this.#current
    const random = this.#random.split(`workers of start ${started.number}`)
    this.#pool = new WorkerPool({
      ...this.#jobNetwork,
      world: this.world,
      random,
      slotsNeeded: this.#slotsNeeded(coordinator, started.shape),
      machineOf: (worker) =>
        this.#ownMachines
          ? this.world.machine(`host of ${worker} ${++this.#hosts}`)
          : this.#machines[random.below(this.#machines.length)]!,
      onWorker: (process) => this.#keep(this.#workers, process),
      onSlot: (process) => this.#keep(this.#slots, process),
      run: (process, slot, { parallelism }, control) =>
        this.#runSlot(process, { slot, shape: at(started.shape, parallelism), control }),
      fail: (what) => void this.failures.push(what),
    })
  }

  #keep(where: Set<SimProcess>, process: SimProcess): void {
    where.add(process)
    process.onExit(undefined, () => void where.delete(process))
  }

  /** At its largest. */
  #slotsNeeded(process: SimProcess, shape: JobShape): number {
    const sizes = shape.rescaled === undefined || shape.rescaledBy !== 'place' ? [shape] : [shape, at(shape, 1)]
    return Math.max(...sizes.map((each) => placeTasks(this.#graph(process, each)).slotCount))
  }

  #spawnSlot(slot: SlotId, coordinator: SimProcess, shape: JobShape): SpawnedSlot {
    const tree = this.kind === 'tree'
    const machine = tree
      ? coordinator.machine
      : this.#ownMachines
        ? this.world.machine(`host of ${slot} ${++this.#hosts}`)
        : this.#machines[this.#random.below(this.#machines.length)]!
    const process = machine.spawn(`slot ${slot}`, tree ? coordinator : undefined)
    this.#keep(this.#slots, process)
    const [atCoordinator, atSlot] = this.network.pair(coordinator, process)
    const deadlineMs = this.#linkDeadlineMs
    process.environment.executor.post(() => {
      const link = createLink<FromSlot, ToSlot>({ port: atSlot, environment: process.environment, deadlineMs })
      const control: ControlLink<FromSlot, ToSlot> = {
        ...link,
        // A slot without its coordinator has nothing left to do: its process ends.
        onLost: (callback) =>
          link.onLost((reason) => {
            callback(reason)
            process.kill(`lost its coordinator: ${reason}`)
          }),
      }
      this.#runSlot(process, { slot, shape, control })
    })
    const { environment } = coordinator
    return { process, link: createLink<ToSlot, FromSlot>({ port: atCoordinator, environment, deadlineMs }) }
  }

  #runSlot(process: SimProcess, { slot, shape, control }: SlotRun): Slot {
    const graph = this.#graph(process, shape)
    const isSlow = isSlowSlot(slot, { shape, graph, random: this.#random })
    const environment = isSlow ? slowed(process, shape.slowTurnMs!) : process.environment
    const store = this.#store.objects(process)
    return new Slot({
      slot,
      job: jobId(this.#name),
      graph,
      environment,
      files: this.#disk(process.machine).handle(process),
      transport: this.network.transport(process),
      control,
      outlivesCoordinator: this.kind === 'workers',
      snapshotWriters: new SnapshotUploader({ store, environment, writers: 4 }),
      snapshotReader: new SnapshotDownloader({ store, environment, ...this.#foreign(process) }),
      ...(shape.creditBytes === undefined ? {} : { creditBytes: shape.creditBytes }),
    })
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
      onRead: this.#beginWatch.handle(process),
    })
  }

  /** The other job goes on, and commits what its savepoint holds itself: this one has a ledger of its own. */
  #restore({ number }: Start) {
    if (this.origin === undefined || number > 1) return {}
    const { savepoint, drops } = this.origin
    const from = { ...savepoint, path: `${foreignScheme}${savepoint.path}` as ObjectKey }
    return { restore: { from, committed: true, allowNonRestoredState: drops, allowDrained: false } }
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
      if (this.shape.trial === undefined) foreseeTrouble(disk, this.world.random.split(`trouble of ${machine.name}`))
      this.#disks.set(machine, disk)
    }
    return disk
  }
}

/** The size of a job of many operators is one number to its coordinator: there is one other size that it may be asked for. */
function at(shape: JobShape, parallelism: number | undefined): JobShape {
  return parallelism === undefined ? shape : { ...shape, parallelism: shape.rescaled! }
}

function sizeOf({ parallelism: { source, keyed, sink } }: JobShape): number {
  return Math.max(source, keyed, sink)
}

function textOf({ slot, registered: { tasks } }: SurvivingSlot): string {
  const of = tasks.map(({ task, attempt, status }) => `${taskKey(task)} ${formatAttempt(attempt)} ${status}`)
  return `slot ${slot} with ${of.join(', ') || 'nothing'}`
}
