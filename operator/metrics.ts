// The operator's own figures, for Prometheus, in a registry of their own.

import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Caches } from './caches.ts'
import type { ErrorKind } from './controller.ts'
import type { KubeClient, ResourceType } from './kubernetes/contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import { statusOf } from './observe.ts'

export interface MetricsOptions {
  readonly queueLength: () => number
  readonly leading: () => boolean
  readonly caches: () => Caches | undefined
  readonly wallMs: () => number
}

export class OperatorMetrics {
  readonly #registry = new Registry()
  readonly #reconciles: Counter<'kind' | 'result'>
  readonly #seconds: Histogram<'kind'>
  readonly #errors: Counter<'kind'>
  readonly #requests: Counter<'verb' | 'kind' | 'code'>

  constructor({ queueLength, leading, caches, wallMs }: MetricsOptions) {
    const registers = [this.#registry]
    this.#reconciles = new Counter({
      name: 'millrace_operator_reconcile_total',
      help: 'Looks at one object, by how they went',
      labelNames: ['kind', 'result'],
      registers,
    })
    this.#seconds = new Histogram({
      name: 'millrace_operator_reconcile_seconds',
      help: 'Duration of a look',
      labelNames: ['kind'],
      buckets: [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers,
    })
    this.#errors = new Counter({
      name: 'millrace_operator_errors_total',
      help: 'Looks that failed, by what failed: not leading, api, millrace, other',
      labelNames: ['kind'],
      registers,
    })
    this.#requests = new Counter({
      name: 'millrace_operator_api_requests_total',
      help: 'Requests to the API server; of a watch its end',
      labelNames: ['verb', 'kind', 'code'],
      registers,
    })
    const gauge = (name: string, help: string, read: () => number): void => {
      const made: Gauge = new Gauge({ name, help, registers, collect: () => made.set(read()) })
    }
    gauge('millrace_operator_queue_length', 'Objects that wait or are looked at', queueLength)
    gauge('millrace_operator_leading', '1: this process leads', () => (leading() ? 1 : 0))
    gauge('process_resident_memory_bytes', 'Resident memory of the process', () => process.memoryUsage.rss())
    gauge('process_cpu_seconds_total', 'Processor time of the process', () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1e6
    })
    const age: Gauge<'kind'> = new Gauge({
      name: 'millrace_operator_cache_age_seconds',
      help: 'Since it was last heard that a cache misses nothing; the largest over namespaces',
      labelNames: ['kind'],
      registers,
      collect: () => {
        for (const [kind, ms] of Object.entries(caches()?.ages() ?? {}))
          age.set({ kind }, Number.isFinite(ms) ? ms / 1_000 : -1)
      },
    })
    this.#jobs(caches, wallMs)
  }

  #jobs(caches: MetricsOptions['caches'], wallMs: () => number): void {
    const registers = [this.#registry]
    // The first fills those behind it: they are of the same moment.
    const count: Gauge = new Gauge({
      name: 'millrace_jobs',
      help: 'StreamJobs',
      registers,
      collect: () => {
        const jobs = caches()?.all(types.streamJob) ?? []
        for (const each of [phase, restarts, parallelism, checkpoint, ready]) each.reset()
        count.set(jobs.length)
        for (const job of jobs) {
          const status = statusOf(job)
          const { namespace = '', name } = job.metadata
          if (status === undefined) continue
          const labels = { namespace, name }
          phase.set({ ...labels, phase: status.phase }, 1)
          restarts.set(labels, status.restarts)
          parallelism.set(labels, status.parallelism)
          const isReady = status.conditions.some((one) => one.type === 'Ready' && one.status === 'True')
          ready.set(labels, isReady ? 1 : 0)
          if (status.lastCheckpoint !== undefined)
            checkpoint.set(labels, Math.max(0, (wallMs() - Date.parse(status.lastCheckpoint.time)) / 1_000))
        }
      },
    })
    const labelNames = ['namespace', 'name'] as const
    const phase: Gauge<'namespace' | 'name' | 'phase'> = new Gauge({
      name: 'millrace_job_phase',
      help: '1 for the phase that the job is in',
      labelNames: [...labelNames, 'phase'],
      registers,
    })
    const perJob = (name: string, help: string) => new Gauge({ name, help, labelNames, registers })
    const restarts = perJob('millrace_job_restarts', 'Restarts in the current start')
    const parallelism = perJob('millrace_job_parallelism', 'Parallelism that the job runs with')
    const checkpoint = perJob('millrace_job_last_checkpoint_age_seconds', 'Since the last checkpoint that status shows')
    const ready = perJob('millrace_job_ready', '1: condition Ready is True')
  }

  reconciled(kind: string, result: 'ok' | 'error', ms: number): void {
    this.#reconciles.inc({ kind, result })
    this.#seconds.observe({ kind }, ms / 1_000)
  }

  failed(kind: ErrorKind): void {
    this.#errors.inc({ kind })
  }

  asked(verb: string, kind: string, code: string): void {
    this.#requests.inc({ verb, kind, code })
  }

  readonly contentType = 'text/plain; version=0.0.4; charset=utf-8'

  text(): Promise<string> {
    return this.#registry.metrics()
  }
}

/** The same client, whose requests are counted. */
export function counted(client: KubeClient, asked: OperatorMetrics['asked']): KubeClient {
  const told = async <Value>(
    verb: string,
    { kind }: Pick<ResourceType, 'kind'>,
    sent: Promise<Value>,
  ): Promise<Value> => {
    try {
      const answer = await sent
      asked(verb, kind, '2xx')
      return answer
    } catch (error) {
      asked(verb, kind, error instanceof KubeError ? String(error.status) : 'none')
      throw error
    }
  }
  return {
    get: (type, at, options) => told('get', type, client.get(type, at, options)),
    list: (type, options) => told('list', type, client.list(type, options)),
    watch: (type, options, onEvent) => {
      const watching = client.watch(type, options, onEvent)
      return { ended: told('watch', type, watching.ended), close: () => watching.close() }
    },
    create: (type, object) => told('create', type, client.create(type, object)),
    apply: (type, object, options) => told('apply', type, client.apply(type, object, options)),
    patch: (type, at, patch) => told('patch', type, client.patch(type, at, patch)),
    putStatus: (type, object, status) => told('status', type, client.putStatus(type, object, status)),
    delete: (type, at, options) => told('delete', type, client.delete(type, at, options)),
    logs: (at, options) => told('logs', types.pod, client.logs(at, options)),
  }
}
