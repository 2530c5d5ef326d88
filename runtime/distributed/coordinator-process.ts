// A coordinator's process, put together: its config, its stores, its control connection to NATS, its workers, its REST, and the job.

import { pause } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import { MillraceError } from '../base/errors.ts'
import { linkDeadlineMs } from '../control/link.ts'
import type { CoordinatorObserver, JobOutcome, RestoreRequest } from '../coordinator/coordinator-contract.ts'
import { bothObservers } from '../coordinator/both-observers.ts'
import { coordinatorOver } from '../coordinator/coordinator-over-stores.ts'
import type { JobCoordinator } from '../coordinator/job-coordinator.ts'
import { placeTasks } from '../coordinator/placement.ts'
import { RemoteSlots } from '../coordinator/remote-slots.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Job } from '../job/define-job.ts'
import { loadedInTime } from '../job/loaded-in-time.ts'
import { loadJob } from '../local/job-module.ts'
import { findRestorePoint } from '../local/restore-path.ts'
import { controlSubjects } from '../network/subjects.ts'
import { connectNats } from '../network/nats/connect.ts'
import type { ControlledJob } from '../rest/controlled-job.ts'
import { restError } from '../rest/errors.ts'
import { NotAsked } from '../rest/health.ts'
import { HistoryKeeper } from '../rest/history-keeper.ts'
import { JobHistory } from '../rest/job-history.ts'
import { createRest } from '../rest/server.ts'
import type { Rest } from '../rest/server.ts'
import type { FileSystem, OpenedStores } from '../storage/contract.ts'
import type { Head } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { openStores } from '../storage/open-stores.ts'
import { snapshotPlace } from '../storage/paths.ts'
import type { NatsLink, ProcessConfig } from './contract.ts'
import { afterBackOff } from './after-back-off.ts'
import { AwaitedServices } from './awaited-services.ts'
import { buildOf } from './build-identity.ts'
import { CertificateRenewal } from './certificate-renewal.ts'
import type { Certificate } from './certificate-renewal.ts'
import { graphOf } from './job-graph.ts'
import { jobLog } from './job-log.ts'
import { lastKnown } from './last-known.ts'
import { listenForWorkers } from './platform/worker-listener.ts'
import type { WorkerListener } from './platform/worker-listener.ts'
import { isLoopback, parseAddress, readSecret } from './process-config.ts'

/** How long workers are waited for when the job has ended: they hear of it at once. */
const dismissMs = 5_000
/** Between two looks at whether they are gone. */
const lookMs = 20
/** From the beginning of the job to the first write of its history. */
const historyAfterMs = 1_000
/** Whoever asked for the end by REST must find it there. */
const restStaysMs = 2_000
/** As a person is told of them. */
const [objectStore, nats] = ['the object store', 'NATS']

export interface CoordinatorProcessOptions {
  readonly config: ProcessConfig
  readonly runtimeVersion: string
  readonly environment: Environment
  readonly files: FileSystem
  /** The one before was overtaken by another coordinator of its own start: so much is left of its back-off. */
  readonly backOffMs?: number | undefined
  /** It has raised the incarnation. */
  readonly onBegan?: () => void
}

export interface RunningCoordinator {
  /**
   * How the job ended. Rejects when the job cannot begin or go on, with one clear error for a store, NATS or a restore point that cannot be used;
   * what time may mend there (a store that is away) is waited for. The next process may go on.
   */
  readonly ended: Promise<JobOutcome>
  /** Such as http://127.0.0.1:8081. */
  readonly restAddress: string
  /** The job has ended and this process too: workers are sent home, REST closes. Never rejects. */
  close(): Promise<void>
  /** This process ends and the job does not: the slots run on, for the next coordinator. Never rejects. */
  leave(): Promise<void>
}

/**
 * Resolves once it answers probes and lets workers connect, whether or not store and NATS answer. Rejects with one clear error for a config, a
 * secret, an address or a job file that cannot be used.
 */
export async function startCoordinator(options: CoordinatorProcessOptions): Promise<RunningCoordinator> {
  const parts = new CoordinatorProcess(options)
  try {
    return await parts.start()
  } catch (error) {
    await parts.leave()
    throw error
  }
}

class CoordinatorProcess {
  readonly #options: CoordinatorProcessOptions
  readonly #history: JobHistory
  readonly #services: AwaitedServices
  #stores: OpenedStores | undefined
  #nats: NatsLink | undefined
  #slots: RemoteSlots | undefined
  #listener: WorkerListener | undefined
  #rest: Rest | undefined
  #renewal: CertificateRenewal | undefined
  #historyKeeper: HistoryKeeper | undefined
  #headKeeper: HeadKeeper | undefined
  #coordinator: JobCoordinator | undefined

  constructor(options: CoordinatorProcessOptions) {
    this.#options = options
    this.#history = new JobHistory(options.environment.clock)
    this.#services = new AwaitedServices(options.environment)
  }

  async start(): Promise<RunningCoordinator> {
    const { config, environment, files, backOffMs } = this.#options
    const { id, start } = config.job
    // What is wrong in the config or the job file is said before anything is asked of the servers.
    const tokens = await this.#tokens()
    const certificate = await this.#certificate()
    const job = await loadedInTime(environment.clock, loadJob(config.job.file))
    const graph = graphOf(job, config, undefined)
    const slots = new RemoteSlots({
      job: id,
      runtimeVersion: this.#options.runtimeVersion,
      build: await buildOf(config, files),
      token: tokens.worker,
      environment,
      linkDeadlineMs: linkDeadlineMs(graph.settings),
      openPort: (slot, incarnation) => {
        const subjects = controlSubjects(id, slot, incarnation)
        return this.#nats!.datagrams({ own: subjects.coordinator, peer: subjects.slot })
      },
    })
    this.#slots = slots
    // Before the first worker comes.
    if (backOffMs !== undefined) slots.sendOn(() => undefined)
    const { host, port } = parseAddress(config.coordinator.restAddress)!
    const rest = await createRest({
      job: controlled({
        known: () => this.#coordinator,
        asked: () => this.#coordinator ?? this.#notBegun(),
        built: graph,
        slots,
      }),
      graph,
      history: this.#history,
      instance: environment.random.id(),
      tokens: { owner: tokens.owner, reader: tokens.reader },
      listen: { host: config.coordinator.listenHost ?? ownHost(host) ?? '::', port, tls: certificate },
      identified: true,
      kubernetes: config.kubernetes,
      waitsFor: () => this.#services.waitsFor,
      pings: {
        storage: async () => (this.#stores ?? this.#notOpened(objectStore)).ping(),
        nats: async () => (this.#nats ?? this.#notOpened(nats)).ping(),
      },
      readHead: lastKnown(() => this.#readHead(), environment.clock),
      locate: ({ path }) => (this.#stores ?? this.#notBegun()).locate(path),
      clock: environment.clock,
      random: environment.random,
      log: environment.log,
    })
    this.#rest = rest
    const restAddress = await rest.listen()
    const listener = await this.#listen(slots, certificate)
    this.#listener = listener
    if (certificate !== undefined)
      this.#renewal = new CertificateRenewal({
        read: async () => (await this.#certificate())!,
        servers: [listener, rest],
        environment,
      })
    const { checkpoints, savepoints } = config.storage
    const stores = { checkpoints, ...(savepoints !== undefined && { savepoints }) }
    const fields = { job: id, start, rest: restAddress, ...stores, nats: config.nats.servers }
    environment.log('info', 'the coordinator looks for its store and NATS', fields)
    return {
      ended: this.#toItsEnd(job, graph, slots),
      restAddress,
      close: () => this.#close(),
      leave: () => this.leave(),
    }
  }

  async #toItsEnd(job: Job, graph: JobGraph, slots: RemoteSlots): Promise<JobOutcome> {
    const { config, environment, files, backOffMs } = this.#options
    const { id, start } = config.job
    const services = this.#services
    const [stores] = await Promise.all([
      services
        .opened(objectStore, async () => openStores({ storage: config.storage, files, environment, probe: true }))
        .then((opened) => (this.#stores = opened)),
      services.opened(nats, async () => this.#connect()).then((connected) => (this.#nats = connected)),
    ])
    const head = await services.answered('HEAD', () => HeadKeeper.open(stores.head, environment))
    this.#headKeeper = head
    const restore = await services.answered('the restore point that it is to begin from', () =>
      this.#restoreRequest(stores, head),
    )
    const coordinator = coordinatorOver({
      graph,
      graphAt: (parallelism) => graphOf(job, config, parallelism),
      job: id,
      start,
      environment,
      files,
      stores,
      slots,
      restore,
      observer: this.#observer(stores),
    })
    this.#coordinator = coordinator
    slots.onLeaving(({ slots: running }) => {
      if (running.length > 0) coordinator.move()
    })
    if (backOffMs !== undefined) {
      const watching = afterBackOff({ keeper: head, slots, start, backOffMs, environment })
      const other = await services.waiting('a sign that the other coordinator is gone', watching)
      if (other !== undefined) return { kind: 'fenced', head: other }
    }
    environment.log('info', 'the coordinator begins', { job: id, start })
    return coordinator.run()
  }

  #connect(): Promise<NatsLink> {
    const { config, environment, files } = this.#options
    return connectNats(config.nats, {
      job: config.job.id,
      name: 'coordinator',
      environment,
      log: environment.log,
      readSecret: (file) => readSecret('A secret of nats', file, files),
    })
  }

  #notOpened(what: string): never {
    const failure = this.#services.failureOf(what)
    throw failure === undefined ? new NotAsked(`${what} is being opened`) : new Error(failure)
  }

  #notBegun(): never {
    const { waitsFor } = this.#services
    throw restError('MR-H11', waitsFor === undefined ? 'It is about to.' : `It waits for ${waitsFor}.`)
  }

  /** Before its first beginning a job has no HEAD, and nothing is wrong with it. */
  async #readHead(): Promise<Head> {
    const keeper = this.#headKeeper ?? this.#notBegun()
    if (this.#history.sinceMs !== undefined) return keeper.readBegun()
    return (await keeper.read()) ?? this.#notBegun()
  }

  async leave(): Promise<void> {
    this.#services.close()
    this.#renewal?.close()
    this.#listener?.close()
    this.#slots?.abandon()
    await this.#end()
  }

  async #close(): Promise<void> {
    const { clock } = this.#options.environment
    this.#slots?.dismiss('the job has ended')
    const endMs = clock.nowMs() + dismissMs
    await pause(clock, restStaysMs)
    while (this.#slots!.workers.some(({ state }) => state !== 'lost') && clock.nowMs() < endMs)
      await pause(clock, lookMs)
    await this.leave()
  }

  async #end(): Promise<void> {
    await this.#historyKeeper?.close()
    const closing = [this.#rest, this.#nats, this.#stores].flatMap((part) => (part === undefined ? [] : [part.close()]))
    for (const result of await Promise.allSettled(closing)) {
      if (result.status === 'rejected')
        this.#options.environment.log('warn', 'a part was not closed in order', { error: String(result.reason) })
    }
  }

  async #tokens(): Promise<{ readonly worker: string; readonly owner: string; readonly reader: string }> {
    const { config, files } = this.#options
    const { workerFile, ownerFile, readerFile } = config.tokens
    return {
      worker: await readSecret('tokens.workerFile', workerFile, files),
      owner: await readSecret('tokens.ownerFile', ownerFile, files),
      reader: await readSecret('tokens.readerFile', readerFile, files),
    }
  }

  async #certificate(): Promise<Certificate | undefined> {
    const { config, files } = this.#options
    const { tls } = config.coordinator
    if (tls === undefined) return undefined
    return {
      cert: await readSecret('coordinator.tls.certFile', tls.certFile, files),
      key: await readSecret('coordinator.tls.keyFile', tls.keyFile, files),
    }
  }

  #listen(slots: RemoteSlots, certificate: Certificate | undefined): Promise<WorkerListener> {
    const { config, environment } = this.#options
    const { workersAddress, listenHost } = config.coordinator
    const { host, port } = parseAddress(workersAddress)!
    return listenForWorkers({
      host: listenHost ?? ownHost(host),
      port,
      certificate,
      log: environment.log,
      accept: (connection) => slots.accept(connection),
    })
  }

  /** Only a start that begins anew looks there: one that goes on may have outlived the savepoint that it began from. */
  async #restoreRequest(stores: OpenedStores, keeper: HeadKeeper): Promise<RestoreRequest> {
    const { config, files, environment } = this.#options
    const { restore = {} } = config.job
    const { from, empty = false, goesOn = false, allowNonRestoredState = false, allowDrained = false } = restore
    const rest = { empty, goesOn, allowNonRestoredState, allowDrained }
    if (from === undefined) return rest
    const head = await keeper.read()
    if (head !== undefined && head.start >= config.job.start) return rest
    const { storage } = config
    const { ref, committed } = await findRestorePoint({
      place: snapshotPlace(from),
      storage,
      stores,
      files,
      environment,
    })
    return { ...rest, from: ref, committed }
  }

  /** History first, so that whoever is told of something finds it there. */
  #observer(stores: OpenedStores): CoordinatorObserver {
    const { environment } = this.#options
    const all = bothObservers(this.#history.observer, jobLog(environment.log))
    return {
      ...all,
      began: (head, restorePoint) => {
        all.began(head, restorePoint)
        this.#options.onBegan?.()
        void stores.removeLeftovers()
        if (this.#historyKeeper !== undefined) return
        this.#historyKeeper = new HistoryKeeper({
          history: this.#history,
          store: stores.objects,
          environment,
          firstWriteAfterMs: historyAfterMs,
        })
        void this.#historyKeeper.load()
      },
    }
  }
}

/** An address of this machine alone is listened at alone; any other, such as a Service's, is not one of ours: undefined, all of them. */
function ownHost(host: string): string | undefined {
  return isLoopback(host) ? host : undefined
}

interface Controlled {
  /** undefined: it waits for a service. */
  readonly known: () => JobCoordinator | undefined
  /** Throws for one that is not known. */
  readonly asked: () => JobCoordinator
  readonly built: JobGraph
  readonly slots: RemoteSlots
}

function controlled({ known, asked, built, slots }: Controlled): ControlledJob {
  return {
    savepoint: async (request) => asked().savepoint(request),
    stop: async (how) => asked().stop(how),
    rescale: async (parallelism, request) => asked().rescale(parallelism, request),
    suspend: () => asked().suspend(),
    cancel: () => asked().cancel(),
    checkpoint: () => asked().checkpoint(),
    get graph() {
      return known()?.graph
    },
    get rescaledTo() {
      return known()?.rescaledTo
    },
    get execution() {
      return known()?.execution
    },
    get checkpoints() {
      return known()?.checkpoints
    },
    workers: {
      get slotsNeeded() {
        return placeTasks(known()?.graph ?? built).slotCount
      },
      get slotsOffered() {
        return slots.slotsOffered
      },
      get workers() {
        return slots.workers
      },
      reportLost: (worker, reason) => slots.reportLost(worker, reason),
    },
  }
}

/** Whether another process of the same start may do better. */
export function mayGoBetter(error: unknown): boolean {
  return !(error instanceof MillraceError) || error.retry
}
