// A distributed job of real processes: coordinator and workers, with a real NATS server, a real S3 server and the ledger beside them.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { LedgerProcess } from '../../../e2e/harness/ledger-process.ts'
import type { ProcessConfig } from '../../../runtime/distributed/contract.ts'
import type { StorageConfig } from '../../../runtime/storage/contract.ts'
import { parseAddress } from '../../../runtime/distributed/process-config.ts'
import { JobNetwork } from './job-network.ts'
import { startNats } from './nats-server.ts'
import type { NatsServer } from './nats-server.ts'
import { startS3Server } from './s3-server.ts'
import type { S3Server } from './s3-server.ts'
import { ServerProcess, freePorts, until } from './server-process.ts'

const entry = fileURLToPath(new URL('../../../runtime/cli/main.ts', import.meta.url))
const ledgerJob = fileURLToPath(new URL('../../../examples/ledger/job.ts', import.meta.url))
const tokens = { worker: 'worker-token', owner: 'owner-token', reader: 'reader-token' } as const
const requestDeadlineMs = 10_000
const readyDeadlineMs = 60_000

/** What jobs share; a bucket of its own for each. */
export interface Servers {
  readonly nats: NatsServer
  readonly s3: S3Server
  readonly ledger: LedgerProcess
  stop(): Promise<void>
}

export async function startServers(): Promise<Servers> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-ledger-'))
  const [nats, s3, ledger] = await Promise.all([startNats(), startS3Server(), LedgerProcess.start(folder)])
  return {
    nats,
    s3,
    ledger,
    stop: async () => {
      await Promise.all([nats.stop(), s3.stop(), ledger.stop()])
      await rm(folder, { recursive: true, force: true })
    },
  }
}

export interface DistributedJobOptions {
  readonly servers: Servers
  /** Unique in the test run: the job's uid, and its book in the ledger. */
  readonly id: string
  /** Of the ledger job, beside its url and book. */
  readonly args?: Readonly<Record<string, unknown>>
  /** Another job file, which gets `args` alone. */
  readonly file?: string
  readonly parallelism?: number
  readonly workers?: number
  /** Of each worker. */
  readonly slots?: number
  readonly graceMs?: number
  readonly settings?: Readonly<Record<string, unknown>>
  /** Default: a bucket of its own. */
  readonly storage?: StorageConfig
  /** Another server than the one that jobs share. */
  readonly nats?: NatsServer
  /** Each process has proxies of its own on its ways to NATS, S3 and the coordinator. */
  readonly network?: boolean
  /** First processes of containers: they start again by themselves. */
  readonly supervised?: boolean
  readonly restore?: ProcessConfig['job']['restore']
  readonly start?: number
  /** MILLRACE_FAILPOINTS of the first life of each. */
  readonly failpoints?: { readonly coordinator?: string; readonly worker?: string }
  readonly coordinatorWords?: readonly string[]
  /** Added to the environment of the process of that name: `coordinator`, or a worker's. */
  readonly env?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

export interface JobAnswer {
  readonly status: number
  // oxlint-disable-next-line no-explicit-any -- a test reads what it expects
  readonly body: any
}

export class DistributedJob {
  readonly id: string
  readonly folder: string
  readonly servers: Servers
  /** undefined: its processes speak to the servers and to each other directly. */
  readonly network: JobNetwork | undefined
  readonly workers = new Map<string, ServerProcess>()
  config: ProcessConfig
  coordinator!: ServerProcess
  readonly #options: DistributedJobOptions
  readonly #all: ServerProcess[] = []
  #requests = 0
  #coordinators = 0

  private constructor(
    options: DistributedJobOptions,
    folder: string,
    config: ProcessConfig,
    network: JobNetwork | undefined,
  ) {
    this.#options = options
    this.id = options.id
    this.servers = options.servers
    this.folder = folder
    this.config = config
    this.network = network
  }

  /** Resolves once the coordinator serves REST. */
  static async start(options: DistributedJobOptions): Promise<DistributedJob> {
    const job = await DistributedJob.prepare(options)
    try {
      await job.startAll()
      return job
    } catch (error) {
      await job.stop()
      throw error
    }
  }

  /** The config and its secrets alone. */
  static async prepare(options: DistributedJobOptions): Promise<DistributedJob> {
    const { servers, id, file = ledgerJob, parallelism = 2, slots = 1, graceMs, settings, restore, start = 1 } = options
    const folder = await mkdtemp(join(tmpdir(), 'millrace-distributed-'))
    const [workersPort, restPort] = (await freePorts(2)) as [number, number]
    const secret = async (name: keyof typeof tokens): Promise<string> => {
      const path = join(folder, name)
      await writeFile(path, tokens[name], { mode: 0o600 })
      return path
    }
    const storage = options.storage ?? servers.s3.storage(await servers.s3.makeBucket(), id)
    const args = options.file === undefined ? { url: servers.ledger.url, book: id, ...options.args } : options.args
    const nats = options.nats ?? servers.nats
    const config = {
      version: 1,
      job: { id, name: id, start, file, args, parallelism, settings, ...(restore !== undefined && { restore }) },
      storage,
      nats: { servers: [nats.url] },
      coordinator: { workersAddress: `127.0.0.1:${workersPort}`, restAddress: `127.0.0.1:${restPort}` },
      tokens: {
        workerFile: await secret('worker'),
        ownerFile: await secret('owner'),
        readerFile: await secret('reader'),
      },
      worker: { slots, ...(graceMs !== undefined && { graceMs }) },
      logLevel: 'info',
    } as unknown as ProcessConfig
    const network = options.network === true ? new JobNetwork({ nats, s3: servers.s3 }) : undefined
    const job = new DistributedJob(options, folder, config, network)
    await job.writeConfig(config)
    return job
  }

  /** Coordinator and workers, the same as before if there were any. */
  async startAll(): Promise<void> {
    const { failpoints, workers = 2 } = this.#options
    const first = Array.from({ length: workers }, (_, index) => `worker-${index}`)
    const names = this.workers.size === 0 ? first : [...this.workers.keys()]
    await Promise.all([
      this.startCoordinator(failpoints?.coordinator),
      ...names.map((name) => this.startWorker(name, failpoints?.worker)),
    ])
  }

  get configFile(): string {
    return join(this.folder, 'process.json')
  }

  async writeConfig(config: ProcessConfig): Promise<void> {
    this.config = config
    await writeFile(this.configFile, JSON.stringify(config))
  }

  /** Of processes that start from now on. */
  async changeJob(change: Partial<Record<keyof ProcessConfig['job'], unknown>>): Promise<void> {
    await this.writeConfig({ ...this.config, job: { ...this.config.job, ...change } as ProcessConfig['job'] })
  }

  async launchCoordinator(failpoints?: string): Promise<ServerProcess> {
    const config = await this.#configOf('coordinator', `coordinator-${++this.#coordinators}`)
    const words = ['coordinator', '--config', config, ...(this.#options.coordinatorWords ?? [])]
    this.coordinator = this.#launch('coordinator', words, failpoints, () => this.#lives())
    return this.coordinator
  }

  /** Resolves once it serves REST. */
  async startCoordinator(failpoints?: string): Promise<void> {
    await (await this.launchCoordinator(failpoints)).untilReady()
  }

  async startWorker(name: string, failpoints?: string): Promise<void> {
    if (this.workers.get(name)?.running === true) throw new Error(`${name} runs already`)
    const config = await this.#configOf(name)
    const words = ['worker', '--config', config, '--name', name]
    this.workers.set(
      name,
      this.#launch(name, words, failpoints, async () => true),
    )
  }

  /** kill -9, and the next one at once, as a supervisor does. Resolves once REST is served again. */
  async replaceCoordinator(): Promise<void> {
    await this.coordinator.kill()
    await this.startCoordinator()
  }

  async replaceWorker(name: string): Promise<void> {
    await this.workers.get(name)!.kill()
    await this.startWorker(name)
  }

  /**
   * Another coordinator at ports of its own, where workers find it from now on, as behind a Service; the former runs on. Resolves with the
   * former once the new one serves REST. Only with `network`.
   */
  async rival(): Promise<ServerProcess> {
    const former = this.coordinator
    const [workersPort, restPort] = (await freePorts(2)) as [number, number]
    const coordinator = { workersAddress: `127.0.0.1:${workersPort}`, restAddress: `127.0.0.1:${restPort}` }
    await this.writeConfig({ ...this.config, coordinator: { ...this.config.coordinator, ...coordinator } })
    this.network!.coordinatorAt(workersPort)
    await this.startCoordinator()
    return former
  }

  /** A coordinator that runs already, at its own place, is the job's from now on, for workers too. Only with `network`. */
  async takeOver(coordinator: ServerProcess, place: ProcessConfig['coordinator']): Promise<void> {
    this.coordinator = coordinator
    this.network!.coordinatorAt(parseAddress(place.workersAddress)!.port)
    await this.writeConfig({ ...this.config, coordinator: place })
  }

  async request(
    method: 'GET' | 'POST',
    path: string,
    body?: unknown,
    token: keyof typeof tokens = 'owner',
  ): Promise<JobAnswer> {
    const response = await fetch(`${this.restUrl}${path}`, {
      method,
      signal: AbortSignal.timeout(requestDeadlineMs),
      headers: {
        authorization: `Bearer ${tokens[token]}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    return { status: response.status, body: text === '' ? undefined : JSON.parse(text) }
  }

  get restUrl(): string {
    return `http://${this.config.coordinator.restAddress}`
  }

  /** A change of this start under a new request id, made again until it is answered and taken. */
  async ask(path: string, words: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const request = `request-${++this.#requests}`
    await this.until(`POST ${path} to be taken`, async () => {
      const answer = await this.answer('POST', path, { start: this.config.job.start, request, ...words })
      if (answer !== undefined && answer.status < 500 && answer.status >= 400 && answer.status !== 409)
        throw new Error(`POST ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
      return answer?.status === 200 || answer?.status === 202
    })
    return request
  }

  /** As `request`; undefined: nobody answers. */
  async answer(method: 'GET' | 'POST', path: string, body?: unknown): Promise<JobAnswer | undefined> {
    try {
      return await this.request(method, path, body)
    } catch {
      return undefined
    }
  }

  /** GET /v1/job; undefined while nobody answers. */
  // oxlint-disable-next-line no-explicit-any -- a test reads what it expects
  async status(): Promise<any> {
    const answer = await this.answer('GET', '/v1/job')
    return answer?.status === 200 ? answer.body : undefined
  }

  async running(deadlineMs = 60_000): Promise<void> {
    await this.until('the job to run', async () => (await this.status())?.state === 'running', deadlineMs)
  }

  /** Resolves once so many checkpoints more have completed. */
  async checkpoints(more: number, deadlineMs = 60_000): Promise<void> {
    let seen: number | undefined
    let count = 0
    await this.until(
      `${more} more checkpoints`,
      async () => {
        const id = await this.newestCheckpoint()
        if (id !== undefined && seen !== undefined && id > seen) count++
        seen = id ?? seen
        return count >= more
      },
      deadlineMs,
    )
  }

  /** Its id, 0: there is none; undefined while nobody answers. */
  async newestCheckpoint(): Promise<number | undefined> {
    const answer = await this.answer('GET', '/v1/checkpoints')
    if (answer?.status !== 200) return undefined
    const { retained } = answer.body as { readonly retained: readonly { readonly id: number }[] }
    return retained.at(-1)?.id ?? 0
  }

  /** The sum of a metric over all labels, of /metrics, which reads no HEAD. Rejects while nobody answers. */
  async metric(name: string): Promise<number> {
    const response = await fetch(`${this.restUrl}/metrics`, {
      signal: AbortSignal.timeout(requestDeadlineMs),
      headers: { authorization: `Bearer ${tokens.owner}` },
    })
    const values = [...(await response.text()).matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\S+)$`, 'gm'))]
    if (values.length === 0) throw new Error(`there is no metric ${name}`)
    return values.reduce((sum, [, value]) => sum + Number(value), 0)
  }

  async until(what: string, isTrue: () => Promise<boolean> | boolean, deadlineMs = 60_000): Promise<void> {
    try {
      await until(what, isTrue, deadlineMs)
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${this.words()}`, { cause: error })
    }
  }

  /** Resolves once all processes have ended by themselves. */
  async left(deadlineMs = 60_000): Promise<void> {
    const newest = (): readonly ServerProcess[] => [this.coordinator, ...this.workers.values()]
    await this.until('everybody to leave', () => newest().every((process) => !process.running), deadlineMs)
  }

  /** The end of what each process said. */
  words(): string {
    const all = [this.coordinator, ...this.workers.values()]
    return all
      .filter((process) => process !== undefined)
      .map((process) => `${process.name}\n${process.output.split('\n').slice(-25).join('\n')}`)
      .join('\n---\n')
  }

  async stop(): Promise<void> {
    for (const process of this.#all) process.thaw()
    await Promise.all(this.#all.map((process) => process.kill()))
    await this.network?.close()
    await rm(this.folder, { recursive: true, force: true })
  }

  /** A file of that name is its process's own, also when another one is started elsewhere meanwhile. */
  async #configOf(process: string, name = process): Promise<string> {
    if (this.network === undefined) return this.configFile
    const file = join(this.folder, `${name}.json`)
    await writeFile(file, JSON.stringify(await this.network.configOf(process, this.config)))
    return file
  }

  async #lives(): Promise<boolean> {
    return (await fetch(`${this.restUrl}/livez`, { signal: AbortSignal.timeout(1_000) })).ok
  }

  #launch(
    name: string,
    words: readonly string[],
    failpoints: string | undefined,
    ready: () => Promise<boolean>,
  ): ServerProcess {
    const supervised = this.#options.supervised === true ? ['--supervised'] : []
    const options = {
      name: `${name} of ${this.id}`,
      command: process.execPath,
      args: () => [entry, ...words, ...supervised],
      env: { MILLRACE_FAILPOINTS: failpoints ?? '', ...this.#options.env?.[name] },
      ready,
      readyDeadlineMs,
    }
    const launched = new ServerProcess(options, [])
    this.#all.push(launched)
    launched.launch()
    return launched
  }
}
