// What is the case with one StreamJob, put together from the caches, the code that its spec names, and its coordinator. It changes nothing, and
// what could not be read is unknown, with why.

import type { Clock } from '../runtime/base/environment.ts'
import type { Access } from './resources/access-secret.ts'
import { readAccess } from './resources/access-secret.ts'
import { childFacts, isAccess, renderingOf } from './child-facts.ts'
import { codeMapOf, jobNameOf } from './caches.ts'
import type { Caches } from './caches.ts'
import type { CodeReader } from './code-reader.ts'
import type { CoordinatorAddress, Coordinators, Question } from './coordinator-client.ts'
import type { CodeFact, CoordinatorSays, Fact, Observed, PodFact, Revision, StreamJobStatus } from './contract.ts'
import type { ObservedSavepoint, SavepointOrigin } from './savepoint-contract.ts'
import type { ForeignObjects } from './foreign-objects.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { types } from './kubernetes/types.ts'
import type { Namespaces } from './namespaces.ts'
import type { PodOutputs } from './pod-outputs.ts'
import type { PodSources } from './pod-sources.ts'
import { podFact } from './pod-facts.ts'
import { readRevision } from './resources/controller-revision.ts'
import { savepointLabel } from './resources/disposal-pod.ts'
import { isOwnedBy } from './resources/labels.ts'
import type { KubernetesObject, OwnerJob } from './resources/objects.ts'
import { coordinatorHost, ports } from './resources/process-config.ts'
import { originByPath, originOfJob } from './resources/savepoint-origin.ts'
import { savepointFact } from './savepoint-facts.ts'
import { stateTraces } from './state-traces.ts'
import type { UnseenRevisions } from './unseen-revisions.ts'
import { validate } from './validate.ts'
import type { SpecDefaults } from './validate.ts'

export interface ObserverOptions {
  readonly caches: Caches
  readonly clock: Clock
  readonly code: CodeReader
  readonly coordinators: Coordinators
  readonly outputs: PodOutputs
  readonly sources: PodSources
  readonly foreign: ForeignObjects
  readonly namespaces: Namespaces
  readonly unseen: UnseenRevisions
  readonly defaults: SpecDefaults
  readonly operatorVersion: string
  /** Tokens, certificates and credentials are all there, and none is about to end. */
  readonly isAccessComplete: (secret: KubeObject, job: OwnerJob, revision: Revision | undefined) => boolean
}

export interface SeenJob {
  readonly observed: Observed
  readonly object: KubeObject
  readonly owner: OwnerJob
  /** undefined: it cannot be asked. */
  readonly coordinator: CoordinatorAddress | undefined
}

export interface SeenSavepoint {
  readonly observed: ObservedSavepoint
  readonly object: KubeObject
}

/** What is under way is looked at closely; a job that runs as it should, from time to time. */
const ageMsMax = { underWay: 400, asked: 900, settled: 15_000 } as const

export class Observer {
  readonly #options: ObserverOptions

  constructor(options: ObserverOptions) {
    this.#options = options
  }

  /** undefined: there is no such object. */
  async job(namespace: string, name: string): Promise<SeenJob | undefined> {
    const { caches, clock, defaults, operatorVersion, foreign, namespaces } = this.#options
    const object = caches.get(types.streamJob, namespace, name)
    if (object === undefined) return undefined
    const { metadata } = object
    const owner: OwnerJob = { namespace, name, uid: metadata.uid! }
    const own = caches.ofOwner(owner)
    const status = statusOf(object)
    const { revisions, unseen } = await this.#revisions(owner, own, status)
    const running = runningRevision(revisions, status)
    const begun = status !== undefined && status.start > 0 ? status : undefined
    const isDeleting = metadata.deletionTimestamp !== undefined
    const traces = begun && running === undefined ? stateTraces({ job: owner, status: begun, objects: own }) : undefined
    const spec = validate({
      document: object,
      defaults,
      running: begun && running?.spec,
      // Of one that is deleted HEAD is looked for where the spec says, if nothing else tells: nothing begins there.
      traces: isDeleting && traces?.checkpoints === undefined ? undefined : traces,
    })
    // Pods of workloads are owned by these: the label, which is in the workload's selector, says whose they are.
    const pods = own.filter(({ kind }) => kind === 'Pod')
    const secret = own.find((child) => isAccess(child) && isOwnedBy(child as KubernetesObject, owner))
    const access = readAccess(secret?.['data'] as Readonly<Record<string, string>> | undefined)
    const podFacts = await Promise.all(pods.map((pod) => this.#pod(pod)))
    const coordinator = addressOf(owner, access)
    const [code, answer, terminating, strangers] = await Promise.all([
      this.#code(namespace, object),
      this.#coordinator({ owner, status, podFacts, coordinator, running, isDeleting }),
      isDeleting ? namespaces.isTerminating(namespace) : false,
      foreign.of(owner),
    ])
    const children = childFacts({
      job: owner,
      objects: own,
      rendering: renderingOf(revisions, status),
      isAccessComplete: (one) => this.#options.isAccessComplete(one, owner, running),
    })
    const observed: Observed = {
      nowMs: clock.wallMs(),
      job: {
        kind: 'StreamJob',
        ...owner,
        resourceVersion: metadata.resourceVersion!,
        generation: metadata.generation ?? 0,
        deletingSince: metadata.deletionTimestamp,
        finalizers: metadata.finalizers ?? [],
      },
      namespaceTerminating: terminating,
      spec,
      code,
      status,
      revisions,
      unseen,
      children: { ...strangers, ...children },
      pods: podFacts,
      lostWorkers: caches.lostWorkers(owner),
      coordinator: answer,
      savepoints: caches.savepointsOf(namespace, name).map(savepointFact),
      operatorVersion,
    }
    return { observed, object, owner, coordinator }
  }

  /** undefined: there is no such object. */
  async savepoint(namespace: string, name: string): Promise<SeenSavepoint | undefined> {
    const { caches, clock, namespaces } = this.#options
    const object = caches.get(types.savepoint, namespace, name)
    if (object === undefined) return undefined
    const savepoint = savepointFact(object)
    const own = caches
      .ofOwner(savepoint)
      .find((child) => child.kind === 'Pod' && child.metadata.labels?.[savepointLabel] === savepoint.uid)
    const owner = caches.get(types.streamJob, namespace, jobNameOf(object))
    const jobStatus = owner && statusOf(owner)
    const observed: ObservedSavepoint = {
      nowMs: clock.wallMs(),
      savepoint,
      job: owner === undefined ? 'gone' : 'there',
      jobStatus,
      namespaceTerminating: savepoint.deleting ? await namespaces.isTerminating(namespace) : false,
      fallback: this.#originOf(savepoint.status?.path ?? savepoint.path, { namespace, job: owner }),
      isBeingTaken: jobStatus?.asked?.object === savepoint.uid,
      pod: own === undefined ? undefined : await this.#pod(own),
    }
    return { observed, object }
  }

  /** Those that status names are asked for by name where the caches do not show them. */
  async #revisions(
    owner: OwnerJob,
    own: readonly KubeObject[],
    status: StreamJobStatus | undefined,
  ): Promise<Pick<Observed, 'revisions' | 'unseen'>> {
    const seen = revisionsOf(own, owner)
    const named = new Set([status?.revision, status?.stableRevision])
    for (const { name } of seen) named.delete(name)
    const asked = [...named].filter((name) => name !== undefined)
    const answers = await Promise.all(asked.map((name) => this.#options.unseen.read(owner, name)))
    return {
      revisions: [...seen, ...answers.flatMap((answer) => (answer.kind === 'there' ? [answer.revision] : []))],
      unseen: answers.flatMap((answer) => (answer.kind === 'unseen' ? [answer.fact] : [])),
    }
  }

  async #pod(object: KubeObject): Promise<PodFact> {
    const { caches, outputs, sources } = this.#options
    const [output, missing] = await Promise.all([outputs.of(object), sources.missingOf(object)])
    return podFact({ object, output, missing, isNodeLost: (node) => caches.isNodeLost(node) })
  }

  #code(namespace: string, object: KubeObject): Fact<CodeFact> | Promise<Fact<CodeFact>> {
    const name = codeMapOf(object)
    if (name === undefined) return { known: true, value: { kind: 'image' } }
    return this.#options.code.read(namespace, name)
  }

  #coordinator({ owner, status, podFacts, coordinator, running, isDeleting }: ToAsk): Promise<CoordinatorSays> {
    const runs = podFacts.some(({ component, phase }) => component === 'coordinator' && phase === 'Running')
    const why =
      coordinator === undefined
        ? 'the Secret with its access is not there'
        : runs
          ? ''
          : 'no pod of the coordinator runs'
    return this.#options.coordinators.ask({
      uid: owner.uid,
      address: why === '' ? coordinator : undefined,
      why,
      requests: requestsOf(status),
      hasInterval: running?.spec.checkpointing.interval !== undefined,
      ageMsMax: freshness(status, isDeleting),
    })
  }

  /** Of a savepoint that says no origin. */
  #originOf(
    path: string | undefined,
    { namespace, job }: { readonly namespace: string; readonly job: KubeObject | undefined },
  ): SavepointOrigin | undefined {
    const { defaults, caches } = this.#options
    if (job === undefined) return originByPath(path, { namespace, defaults, ofJob: undefined })
    const owner: OwnerJob = { namespace, name: job.metadata.name, uid: job.metadata.uid! }
    const running = runningRevision(revisionsOf(caches.ofOwner(owner), owner), statusOf(job))
    return originByPath(path, { namespace, defaults, ofJob: originOfJob(owner, running) })
  }
}

interface ToAsk {
  readonly owner: OwnerJob
  readonly status: StreamJobStatus | undefined
  readonly podFacts: readonly PodFact[]
  readonly coordinator: CoordinatorAddress | undefined
  readonly running: Revision | undefined
  readonly isDeleting: boolean
}

function freshness(status: StreamJobStatus | undefined, isDeleting: boolean): number {
  if (isDeleting || status?.transition !== undefined) return ageMsMax.underWay
  const isSettled = status?.asked === undefined && status?.phase !== 'RESTARTING'
  return isSettled ? ageMsMax.settled : ageMsMax.asked
}

/** One that was never written, or was emptied, says nothing. */
export function statusOf(job: KubeObject): StreamJobStatus | undefined {
  const status = job['status'] as StreamJobStatus | undefined
  return typeof status?.version === 'number' ? withRefusedSize(status) : undefined
}

/** The operator of before kept a refused size where a refused spec stands, and forgot one for the other. */
function withRefusedSize(status: StreamJobStatus): StreamJobStatus {
  if (status.blocked?.reason !== 'RescaleRefused') return status
  const { blocked, ...rest } = status
  const parallelism = Number(/^parallelism-(\d+)$/.exec(blocked.key)?.[1])
  return { ...rest, refusedSize: { parallelism, message: blocked.message } }
}

export function revisionsOf(own: readonly KubeObject[], owner: OwnerJob): readonly Revision[] {
  return own.flatMap((object) => {
    if (object.kind !== 'ControllerRevision' || !isOwnedBy(object as KubernetesObject, owner)) return []
    const revision = readRevision(object as KubernetesObject)
    return revision === undefined || object.metadata.deletionTimestamp !== undefined ? [] : [revision]
  })
}

/** What status says that it runs by. */
export function runningRevision(
  revisions: readonly Revision[],
  status: StreamJobStatus | undefined,
): Revision | undefined {
  return revisions.find(({ name }) => name === status?.revision)
}

function addressOf(owner: OwnerJob, access: Access | undefined): CoordinatorAddress | undefined {
  if (access === undefined) return undefined
  return {
    host: coordinatorHost(owner),
    port: ports.rest,
    token: access.ownerToken,
    authority: access.authority,
  }
}

/** Those that status names: of each the coordinator tells how it went. */
function requestsOf(status: StreamJobStatus | undefined): Question['requests'] {
  const { transition, asked } = status ?? {}
  return [
    ...(transition?.step === 'closing' ? [{ name: transition.request, kind: 'savepoint' as const }] : []),
    ...(transition?.step === 'rescaling' ? [{ name: transition.request, kind: 'rescale' as const }] : []),
    ...(asked === undefined ? [] : [{ name: asked.request, kind: asked.kind }]),
  ]
}
