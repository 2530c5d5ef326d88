// A world around operators for tests: a cluster behind a client (in memory or a real API server), nodes and coordinators that are not there, and
// time that may run faster. Operators are started, cut off and killed in it.

import type { Clock } from '../../runtime/base/environment.ts'
import { SeededRandom } from '../../runtime/testkit/manual-clock.ts'
import { ownTypes } from '../caches.ts'
import type { StreamJobStatus } from '../contract.ts'
import type { KubeClient, KubeObject } from '../kubernetes/contract.ts'
import { types } from '../kubernetes/types.ts'
import { statusOf } from '../observe.ts'
import { Operator } from '../operator.ts'
import type { OperatorConfig } from '../resources/operator-config.ts'
import { FakeCoordinators } from './fake-coordinators.ts'
import { kubeletPass } from './stub-kubelet.ts'

export const testConfig: OperatorConfig = {
  version: 1,
  namespaces: [],
  defaults: {
    image: 'millrace:1',
    storage: { checkpoints: 's3://bucket/jobs', s3: { endpoint: 'http://s3:7070', credentialsSecret: 's3' } },
    nats: { url: 'nats://nats:4222', tls: false },
  },
  natsAccess: { kind: 'shared' },
  networkPolicy: false,
  lease: 'millrace-operator',
  port: 8080,
  logLevel: 'debug',
}

export interface Line {
  readonly operator: string
  readonly level: string
  readonly message: string
  readonly fields: unknown
}

export interface WorldOptions {
  /** The test's own: no operator's fault reaches it. */
  readonly client: KubeClient
  readonly clock: Clock
  readonly makesPods: boolean
  readonly namespace: string
  readonly deadlineMs: number
  /** Of its operators; default: all namespaces. */
  readonly config?: OperatorConfig
}

/** Real time, and `times` as fast; wall time begins now. */
export function fastClock(times: number): Clock {
  const startMs = performance.now()
  const wallMs = Date.now()
  const nowMs = (): number => (performance.now() - startMs) * times
  return {
    nowMs,
    wallMs: () => wallMs + nowMs(),
    timer: (delayMs, callback) => {
      const timer = setTimeout(callback, Math.min(delayMs / times, 2 ** 31 - 1))
      return { cancel: () => clearTimeout(timer) }
    },
  }
}

export class OperatorWorld {
  readonly options: WorldOptions
  readonly coordinators: FakeCoordinators
  readonly lines: Line[] = []
  ignores: (pod: KubeObject) => boolean = () => false
  readonly #operators: Operator[] = []

  constructor(options: WorldOptions) {
    this.options = options
    this.coordinators = new FakeCoordinators(options.client, options.namespace, () => options.clock.wallMs())
  }

  /** Resolves when it is started; leading may come later. */
  async operate(
    name: string,
    {
      client,
      config = this.options.config ?? testConfig,
    }: { readonly client: KubeClient; readonly config?: OperatorConfig },
  ): Promise<Operator> {
    const { clock, namespace } = this.options
    const operator = new Operator({
      client,
      dial: this.coordinators.dial,
      clock,
      random: new SeededRandom(name.length),
      randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
      config,
      namespace,
      holder: name,
      version: '1.0.0',
      log: (level, message, fields) => {
        this.lines.push({ operator: name, level, message, fields })
      },
    })
    this.#operators.push(operator)
    await operator.start()
    return operator
  }

  async close(): Promise<void> {
    for (const operator of this.#operators) await operator.stop()
  }

  /** Nodes and coordinators do their part until it is so. */
  async until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
    const { client, makesPods, deadlineMs } = this.options
    const untilMs = performance.now() + deadlineMs
    for (;;) {
      await kubeletPass({
        client,
        namespace: this.options.namespace,
        makesPods,
        answer: (pod) => this.coordinators.answerOf(pod),
        ignores: (pod) => this.ignores(pod),
      })
      await this.coordinators.pass()
      if (await isSo()) return
      if (performance.now() > untilMs) throw new Error(`not in time: ${what}\n${await this.describe()}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  /** For so long, by the test's own clock. */
  async during(ms: number): Promise<void> {
    const endMs = performance.now() + ms
    await this.until('time passes', () => performance.now() >= endMs)
  }

  // ---- the user ----

  async createJob(name: string, spec: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const { client, namespace } = this.options
    const made = await client.create(types.streamJob, {
      apiVersion: types.streamJob.apiVersion,
      kind: 'StreamJob',
      metadata: { name, namespace },
      spec: { program: { module: { path: '/opt/job/job.ts' } }, ...spec },
    })
    return made.metadata.uid!
  }

  edit(name: string, spec: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    const { client, namespace } = this.options
    return client.patch(types.streamJob, { namespace, name }, { spec })
  }

  async delete(name: string): Promise<void> {
    const { client, namespace } = this.options
    const { uid } = (await this.job(name))!.metadata
    await client.delete(types.streamJob, { namespace, name }, { precondition: { uid: uid! } })
  }

  job(name: string): Promise<KubeObject | undefined> {
    const { client, namespace } = this.options
    return client.get(types.streamJob, { namespace, name })
  }

  async status(name: string): Promise<StreamJobStatus | undefined> {
    const job = await this.job(name)
    return job && statusOf(job)
  }

  /** Nothing is under way, at this generation. */
  async isSettled(name: string, phase: StreamJobStatus['phase'] = 'RUNNING'): Promise<boolean> {
    const job = await this.job(name)
    const status = job && statusOf(job)
    return (
      status?.phase === phase &&
      status.transition === undefined &&
      status.observedGeneration === job?.metadata.generation
    )
  }

  async condition(name: string, type: string): Promise<string> {
    const status = await this.status(name)
    const found = status?.conditions.find((one) => one.type === type)
    return `${found?.status} ${found?.reason}: ${found?.message}`
  }

  /** Of what belongs to jobs: `Kind/name`. */
  async owned(uid: string): Promise<readonly string[]> {
    const { client, namespace } = this.options
    const found: string[] = []
    for (const type of ownTypes) {
      const { items } = await client.list(type, { namespace, labelSelector: `millrace.dev/job=${uid}` })
      for (const { metadata } of items) found.push(`${type.kind}/${metadata.name}`)
    }
    return found
  }

  async describe(): Promise<string> {
    const { client, namespace } = this.options
    const jobs = (await client.list(types.streamJob, { namespace })).items
    const pods = (await client.list(types.pod, { namespace })).items
    return [
      ...jobs.map(
        ({ metadata, status }) => `${metadata.name} ${metadata.deletionTimestamp ?? ''} ${JSON.stringify(status)}`,
      ),
      ...pods.map(({ metadata, status }) => `${metadata.name} ${(status as { phase?: string } | undefined)?.phase}`),
      ...this.lines
        .filter(({ level, message }) => level !== 'debug' || !message.startsWith('savepoint:'))
        .slice(-40)
        .map(({ operator, level, message, fields }) => `${operator} ${level} ${message} ${JSON.stringify(fields)}`),
    ].join('\n')
  }
}

export interface CutClient {
  readonly client: KubeClient
  /** Writes so far, leases and events apart. */
  readonly count: () => number
  readonly isCut: () => boolean
  cut(): void
}

/**
 * A connection that is cut right behind write `after`; nothing comes or goes from then on. `change`: behind the first write that changes anything,
 * so not behind the proof that comes before an act (O17): whatever operators write in a row, each write is then the last of one of them.
 */
export function cuttingClient(inner: KubeClient, after: number | 'change'): CutClient {
  let writes = 0
  let isCut = false
  const open = new Set<{ close(): void }>()
  const cut = (): void => {
    isCut = true
    for (const watching of open) watching.close()
  }
  const passed = async <Value>(send: () => Promise<Value>): Promise<Value> => {
    if (isCut) throw new Error('the connection is cut')
    const value = await send()
    // The answer is lost with it.
    if (isCut) throw new Error('the connection is cut')
    return value
  }
  const write = <Value>(
    kind: string,
    send: () => Promise<Value>,
    isChange: (value: Value) => boolean = () => true,
  ): Promise<Value> =>
    passed(async () => {
      const value = await send()
      if (kind === 'Lease' || kind === 'Event') return value
      writes++
      if (after === 'change' ? isChange(value) : writes >= after) cut()
      return value
    })
  return {
    count: () => writes,
    isCut: () => isCut,
    cut,
    client: {
      get: (type, at) => passed(() => inner.get(type, at)),
      list: (type, options) => passed(() => inner.list(type, options)),
      watch: (type, options, onEvent) => {
        const watching = inner.watch(type, options, (event) => {
          if (!isCut) onEvent(event)
        })
        open.add(watching)
        return watching
      },
      logs: (at, options) => passed(() => inner.logs(at, options)),
      create: (type, object) => write(type.kind, () => inner.create(type, object)),
      apply: (type, object, options) => write(type.kind, () => inner.apply(type, object, options)),
      patch: (type, at, patch) => write(type.kind, () => inner.patch(type, at, patch)),
      putStatus: (type, object, status) =>
        write(
          type.kind,
          () => inner.putStatus(type, object, status),
          ({ metadata }) => metadata.resourceVersion !== object.metadata.resourceVersion,
        ),
      delete: (type, at, options) => write(type.kind, () => inner.delete(type, at, options)),
    },
  }
}
