// The operator as a whole: caches on every replica, the loop and the keys on the one that leads. Everything of the world comes in as arguments.

import type { Clock, Random } from '../runtime/base/environment.ts'
import { AccessMaker } from './access.ts'
import type { ActContext } from './act.ts'
import { Caches } from './caches.ts'
import { CodeReader } from './code-reader.ts'
import type { EffectiveSpec } from './contract.ts'
import { Controller } from './controller.ts'
import { Coordinators } from './coordinator-client.ts'
import type { CoordinatorDial } from './coordinator-client.ts'
import { decide } from './decide.ts'
import { decideSavepoint } from './decide-savepoint.ts'
import { Events } from './events.ts'
import { ForeignObjects } from './foreign-objects.ts'
import { readiness } from './health.ts'
import type { HealthAnswer } from './health.ts'
import type { KubeClient } from './kubernetes/contract.ts'
import { staleAfterMs } from './kubernetes/informer.ts'
import { Lease } from './kubernetes/lease.ts'
import { types } from './kubernetes/types.ts'
import { counted, OperatorMetrics } from './metrics.ts'
import { Namespaces } from './namespaces.ts'
import { NatsAccess } from './nats-access.ts'
import { Observer, revisionsOf, runningRevision, statusOf } from './observe.ts'
import { PodOutputs } from './pod-outputs.ts'
import { PodSources } from './pod-sources.ts'
import type { OperatorConfig } from './resources/operator-config.ts'
import { UnseenRevisions } from './unseen-revisions.ts'
import { validate } from './validate.ts'
import type { SpecDefaults } from './validate.ts'
import { webhookCertificate } from './webhook/certificate.ts'
import type { HeldCertificates } from './certificates.ts'
import { review } from './webhook/review.ts'
import type { ReviewedObject } from './webhook/review.ts'
import { Writer } from './writer.ts'

export interface OperatorOptions {
  readonly client: KubeClient
  readonly dial: CoordinatorDial
  readonly clock: Clock
  readonly random: Random
  /** Unpredictable: tokens are made of it. */
  readonly randomBytes: (count: number) => Uint8Array
  readonly config: OperatorConfig
  /** The operator's own: of its lease and Secrets. */
  readonly namespace: string
  /** This process, unlike any other: its pod's name and something random. */
  readonly holder: string
  readonly version: string
  readonly log: (
    level: 'debug' | 'info' | 'warn' | 'error',
    message: string,
    fields?: Readonly<Record<string, unknown>>,
  ) => void
  /** The webhook's certificate is there, or is another one. */
  readonly onCertificate?: (certificate: HeldCertificates) => void
}

/** Keys and certificates are looked after so often; after a failure sooner. */
const careMs = 60_000
const careAgainMs = 3_000

export class Operator {
  readonly metrics: OperatorMetrics
  readonly #options: OperatorOptions
  readonly #client: KubeClient
  readonly #caches: Caches
  readonly #lease: Lease
  readonly #controller: Controller
  readonly #nats: NatsAccess
  readonly #defaults: SpecDefaults
  #isFilled = false
  #isClosed = false
  #certificate: HeldCertificates | undefined
  #care: { cancel(): void } | undefined
  #isCaring = false

  constructor(options: OperatorOptions) {
    this.#options = options
    const { clock, random, config, namespace, holder, version, log, dial, randomBytes } = options
    const wallMs = (): number => clock.wallMs()
    this.metrics = new OperatorMetrics({
      queueLength: () => this.#controller.queueLength,
      leading: () => this.#lease.leading,
      caches: () => (this.#isFilled ? this.#caches : undefined),
      wallMs,
    })
    const client = counted(options.client, (verb, kind, code) => this.metrics.asked(verb, kind, code))
    this.#client = client
    this.#defaults = config.defaults
    this.#caches = new Caches({
      client,
      namespaces: config.namespaces,
      clock,
      random,
      log,
      wanted: (key) => this.#controller.wanted(key),
    })
    this.#lease = new Lease({
      client,
      namespace,
      name: config.lease,
      holder,
      clock,
      random,
      log,
      onLeading: () => this.#led(),
      onLost: (reason) => {
        log('warn', 'this operator does not lead any more', { reason })
        this.#controller.stop()
      },
    })
    this.#nats = new NatsAccess({ client, namespace, access: config.natsAccess, wallMs })
    const access = new AccessMaker({
      config,
      randomBytes,
      wallMs,
      signer: () => this.#nats.signer,
      signerProblem: () => this.#nats.problem,
    })
    const coordinators = new Coordinators({ dial, clock, random })
    const foreign = new ForeignObjects(client, clock)
    const outputs = new PodOutputs(client, clock)
    const code = new CodeReader(client, (of, name) => this.#caches.userMap(of, name))
    const writer = new Writer({ client, caches: this.#caches, leading: () => this.#lease.leading })
    const context: ActContext = {
      client,
      caches: this.#caches,
      code,
      writer,
      foreign,
      access,
      config,
      log,
      coordinators,
      events: new Events({ client, clock, instance: holder, log }),
    }
    const observer = new Observer({
      caches: this.#caches,
      clock,
      code,
      coordinators,
      outputs,
      sources: new PodSources(client, this.#caches, clock),
      foreign,
      namespaces: new Namespaces(client, clock),
      unseen: new UnseenRevisions(client, clock),
      defaults: this.#defaults,
      operatorVersion: version,
      isAccessComplete: (secret, job, revision) => access.isComplete(secret, job, revision?.spec),
    })
    this.#controller = new Controller({
      context,
      observer,
      decide,
      decideSavepoint,
      clock,
      random,
      metrics: this.metrics,
      log,
      forget: (uid) => {
        coordinators.forget(uid)
        foreign.forget(uid)
        access.forget(uid)
      },
      tidy: ({ maps, pods }) => {
        code.keepOnly(maps)
        outputs.keepOnly(pods)
      },
    })
  }

  get leading(): boolean {
    return this.#lease.leading
  }

  /** Resolves when the caches are filled; the lease is asked for then. */
  async start(): Promise<void> {
    this.#caches.start()
    await this.#caches.ready()
    this.#isFilled = true
    if (this.#isClosed) return
    this.#lease.start()
    if (this.#options.config.webhook !== undefined) void this.#careFor()
  }

  /** No write is begun after it; the lease is given back. */
  async stop(): Promise<void> {
    this.#isClosed = true
    this.#controller.stop()
    this.#care?.cancel()
    await this.#lease.release()
    this.#caches.close()
  }

  readiness(): HealthAnswer {
    const ages = Object.entries(this.#caches.ages())
    return readiness({
      isFilled: this.#isFilled,
      // Before the first list it is Infinity.
      stale: ages.filter(([, ms]) => ms > staleAfterMs).map(([kind]) => kind),
      isLeaseKnown: this.#lease.known,
    })
  }

  /** Of the webhook. undefined: it is no AdmissionReview. */
  review(body: unknown): object | undefined {
    return review(body, {
      validate: (document, running) => validate({ document, running, defaults: this.#defaults }),
      runningOf: (object) => this.#runningOf(object),
    })
  }

  #runningOf({ metadata }: ReviewedObject): EffectiveSpec | undefined {
    const { namespace, name } = metadata ?? {}
    if (namespace === undefined || name === undefined || !this.#isFilled) return undefined
    const job = this.#caches.get(types.streamJob, namespace, name)
    const uid = job?.metadata.uid
    if (job === undefined || uid === undefined) return undefined
    const status = statusOf(job)
    if (status === undefined || status.start === 0) return undefined
    const owner = { namespace, name, uid }
    const revisions = revisionsOf(this.#caches.ofOwner(owner), owner)
    return runningRevision(revisions, status)?.spec
  }

  #led(): void {
    this.#options.log('info', 'this operator leads', { holder: this.#options.holder })
    this.#care?.cancel()
    void this.#careFor()
    this.#controller.start()
  }

  /** Never rejects. */
  async #careFor(): Promise<void> {
    if (this.#isCaring || this.#isClosed) return
    this.#isCaring = true
    let againMs = careMs
    const leads = this.#lease.leading
    try {
      if (leads) await this.#nats.ensure()
      const isHeld = await this.#careForCertificate()
      if (!isHeld) againMs = careAgainMs
    } catch (error) {
      this.#options.log('warn', 'keys and certificates could not be seen to', { error: String(error) })
      againMs = careAgainMs
    } finally {
      this.#isCaring = false
    }
    // It began to lead meanwhile.
    if (!leads && this.#lease.leading) againMs = 0
    if (!this.#isClosed) this.#care = this.#options.clock.timer(againMs, () => void this.#careFor())
  }

  /** false: there is none yet. */
  async #careForCertificate(): Promise<boolean> {
    const { config, namespace, clock, onCertificate } = this.#options
    if (config.webhook === undefined) return true
    const options = { client: this.#client, namespace, names: config.webhook, wallMs: () => clock.wallMs() }
    const held = await webhookCertificate(options, this.#lease.leading)
    if (held === undefined) return false
    if (held.certificate !== this.#certificate?.certificate) onCertificate?.(held)
    this.#certificate = held
    return true
  }
}
