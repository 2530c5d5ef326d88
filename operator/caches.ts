// What the operator knows of the cluster: caches of all types that it reads, and which job an object belongs to. Jobs are known by uid; an
// object of an earlier namesake is nobody's here.

import type { Clock, Random } from '../runtime/base/environment.ts'
import type { LostWorker } from './contract.ts'
import type { KubeClient, KubeObject, ResourceType } from './kubernetes/contract.ts'
import { Informer, keyOf } from './kubernetes/informer.ts'
import type { InformerOptions } from './kubernetes/informer.ts'
import { types } from './kubernetes/types.ts'
import { savepointLabel } from './resources/disposal-pod.ts'
import { componentLabel, jobLabel } from './resources/labels.ts'

/** `StreamJob/<namespace>/<name>` or `Savepoint/…`: what the queue works on. */
export type WorkKey = string

export function workKey(kind: 'StreamJob' | 'Savepoint', namespace: string | undefined, name: string): WorkKey {
  return `${kind}/${keyOf(namespace, name)}`
}

export interface CachesOptions {
  readonly client: KubeClient
  /** Empty: all. */
  readonly namespaces: readonly string[]
  readonly clock: Clock
  readonly random: Random
  readonly log: InformerOptions['log']
  /** Somebody is to look at it. */
  readonly wanted: (key: WorkKey) => void
}

/** A job, or a Savepoint. */
export interface Owner {
  readonly namespace: string | undefined
  readonly uid: string
}

/**
 * `<namespace>/<uid>`. A label is copied with its object: what carries a uid in another namespace, out of a backup or of somebody's own making,
 * is nobody's there.
 */
type OwnerKey = string

function ownerKey({ namespace, uid }: Owner): OwnerKey {
  return keyOf(namespace, uid)
}

function ownerOf({ metadata: { labels = {}, namespace } }: KubeObject): OwnerKey | undefined {
  const uid = labels[jobLabel] ?? labels[savepointLabel]
  return uid === undefined ? undefined : ownerKey({ namespace, uid })
}

/** Why a worker's pod is not there any more. */
const vanished = 'its pod is gone'

/** Types whose objects are a job's, by the label that carries its uid. */
export const ownTypes = [
  types.pod,
  types.deployment,
  types.statefulSet,
  types.service,
  types.configMap,
  types.secret,
  types.controllerRevision,
  types.serviceAccount,
  types.podDisruptionBudget,
  types.ingress,
  types.networkPolicy,
] as const

export class Caches {
  readonly #options: CachesOptions
  /** Those of one type: one, or one for each namespace. */
  readonly #own = new Map<string, readonly Informer[]>()
  readonly #userMaps: readonly Informer[]
  /** undefined: no right to read nodes, which are of no namespace. */
  readonly #nodes: Informer | undefined
  /** By the job (or Savepoint) and `Kind/name`. */
  readonly #byOwner = new Map<OwnerKey, Map<string, KubeObject>>()
  readonly #keyByOwner = new Map<OwnerKey, WorkKey>()
  /** By the job and the pod's name. */
  readonly #lostWorkers = new Map<OwnerKey, Map<string, LostWorker>>()
  readonly #nodesLost = new Set<string>()

  constructor(options: CachesOptions) {
    this.#options = options
    this.#add(types.streamJob, {}, (object, gone) => this.#objectChanged('StreamJob', object, gone))
    this.#add(types.savepoint, {}, (object, gone) => this.#objectChanged('Savepoint', object, gone))
    for (const type of ownTypes) {
      const labelSelector = type === types.pod ? 'app.kubernetes.io/managed-by=millrace' : jobLabel
      this.#add(type, { labelSelector }, (object, gone) => this.#childChanged(object, gone))
    }
    this.#userMaps = this.#make(types.configMap, { metadataOnly: true, keep: identityOf }, ({ metadata }) =>
      this.#userMapChanged(metadata.namespace, metadata.name),
    )
    if (options.namespaces.length === 0)
      this.#nodes = this.#informer(types.node, {}, (object, gone) => this.#nodeChanged(object, gone))
  }

  start(): void {
    for (const informer of this.#all()) informer.start()
  }

  /** All first lists are there. */
  async ready(): Promise<void> {
    await Promise.all(this.#all().map((informer) => informer.ready))
  }

  close(): void {
    for (const informer of this.#all()) informer.close()
  }

  /** By kind: for how long it was not heard that nothing is missing, ms; Infinity before the first list. */
  ages(): Readonly<Record<string, number>> {
    const ages: Record<string, number> = {}
    for (const informer of this.#all()) ages[informer.name] = Math.max(ages[informer.name] ?? 0, informer.ageMs)
    return ages
  }

  get(type: ResourceType, namespace: string | undefined, name: string): KubeObject | undefined {
    for (const informer of this.#own.get(type.kind) ?? []) {
      const found = informer.get(namespace, name)
      if (found !== undefined) return found
    }
    return undefined
  }

  all(type: ResourceType): readonly KubeObject[] {
    return (this.#own.get(type.kind) ?? []).flatMap((informer) => informer.all())
  }

  /** Everything in the owner's namespace that carries its uid in the label. */
  ofOwner(owner: Owner): readonly KubeObject[] {
    return [...(this.#byOwner.get(ownerKey(owner))?.values() ?? [])]
  }

  /** Of a ConfigMap of whosoever: that it is there, and in which version. */
  userMap(namespace: string, name: string): KubeObject | undefined {
    for (const informer of this.#userMaps) {
      const found = informer.get(namespace, name)
      if (found !== undefined) return found
    }
    return undefined
  }

  /** Savepoints that name this job, or an earlier namesake. */
  savepointsOf(namespace: string, job: string): readonly KubeObject[] {
    return this.all(types.savepoint).filter(
      (object) => object.metadata.namespace === namespace && jobNameOf(object) === job,
    )
  }

  lostWorkers(job: Owner): readonly LostWorker[] {
    return [...(this.#lostWorkers.get(ownerKey(job))?.values() ?? [])]
  }

  /** Its node is gone or does not answer; false also where nodes cannot be read. */
  isNodeLost(name: string): boolean {
    return this.#nodesLost.has(name)
  }

  wrote(type: ResourceType, object: KubeObject): void {
    this.#informerOf(type, object)?.wrote(object)
  }

  removed(type: ResourceType, object: KubeObject): void {
    this.#informerOf(type, object)?.removed(object)
  }

  #informerOf(type: ResourceType, { metadata }: KubeObject): Informer | undefined {
    return (this.#own.get(type.kind) ?? []).find(
      ({ namespace }) => namespace === undefined || namespace === metadata.namespace,
    )
  }

  #all(): readonly Informer[] {
    return [...[...this.#own.values()].flat(), ...this.#userMaps, ...(this.#nodes === undefined ? [] : [this.#nodes])]
  }

  #add(type: ResourceType, list: Pick<InformerOptions, 'labelSelector'>, onChange: InformerOptions['onChange']): void {
    this.#own.set(type.kind, this.#make(type, list, onChange))
  }

  #make(
    type: ResourceType,
    list: Pick<InformerOptions, 'labelSelector' | 'metadataOnly' | 'keep'>,
    onChange: InformerOptions['onChange'],
  ): readonly Informer[] {
    const { namespaces } = this.#options
    if (namespaces.length === 0) return [this.#informer(type, list, onChange)]
    return namespaces.map((namespace) => this.#informer(type, { ...list, namespace }, onChange))
  }

  #informer(
    type: ResourceType,
    list: Pick<InformerOptions, 'labelSelector' | 'metadataOnly' | 'keep' | 'namespace'>,
    onChange: InformerOptions['onChange'],
  ): Informer {
    const { client, clock, random, log } = this.#options
    return new Informer({ client, type, clock, random, log, onChange, keep, ...list })
  }

  #objectChanged(kind: 'StreamJob' | 'Savepoint', object: KubeObject, gone: boolean): void {
    const { namespace, name, uid } = object.metadata
    const key = workKey(kind, namespace, name)
    const owner = ownerKey({ namespace, uid: uid! })
    if (!gone) this.#keyByOwner.set(owner, key)
    else {
      this.#keyByOwner.delete(owner)
      this.#lostWorkers.delete(owner)
    }
    this.#options.wanted(key)
    if (kind === 'Savepoint') this.#options.wanted(workKey('StreamJob', namespace, jobNameOf(object)))
    else
      for (const savepoint of this.savepointsOf(namespace!, name))
        this.#options.wanted(workKey('Savepoint', namespace, savepoint.metadata.name))
  }

  #childChanged(object: KubeObject, gone: boolean): void {
    const { labels = {}, namespace, name } = object.metadata
    const owner = ownerOf(object)
    if (owner === undefined) return
    const type = { apiVersion: object.apiVersion, kind: object.kind, plural: '' }
    // Of two namesakes the cache holds one.
    const current = gone ? this.get(type, namespace, name) : object
    const own = this.#byOwner.get(owner) ?? new Map<string, KubeObject>()
    this.#byOwner.set(owner, own)
    const key = `${object.kind}/${name}`
    if (current === undefined || ownerOf(current) !== owner) own.delete(key)
    else own.set(key, current)
    if (own.size === 0) this.#byOwner.delete(owner)
    if (object.kind === 'Pod' && labels[componentLabel] === 'worker') this.#workerChanged(owner, object, current)
    const wanted = this.#keyByOwner.get(owner)
    if (wanted !== undefined) this.#options.wanted(wanted)
  }

  #workerChanged(owner: OwnerKey, { metadata }: KubeObject, current: KubeObject | undefined): void {
    const { name } = metadata
    const lost = this.#lostWorkers.get(owner) ?? new Map<string, LostWorker>()
    if (current === undefined) lost.set(name, { name, uid: metadata.uid!, reason: vanished })
    else lost.delete(name)
    if (lost.size > 0 && this.#keyByOwner.has(owner)) this.#lostWorkers.set(owner, lost)
    else this.#lostWorkers.delete(owner)
  }

  #userMapChanged(namespace: string | undefined, name: string): void {
    for (const job of this.all(types.streamJob))
      if (job.metadata.namespace === namespace && codeMapOf(job) === name)
        this.#options.wanted(workKey('StreamJob', namespace, job.metadata.name))
  }

  #nodeChanged(object: KubeObject, gone: boolean): void {
    const { name } = object.metadata
    const isLost = gone || !answers(object)
    if (isLost === this.#nodesLost.has(name)) return
    if (isLost) this.#nodesLost.add(name)
    else this.#nodesLost.delete(name)
    for (const pod of this.all(types.pod)) {
      const owner = ownerOf(pod)
      const key = owner === undefined ? undefined : this.#keyByOwner.get(owner)
      const { nodeName } = (pod['spec'] ?? {}) as { readonly nodeName?: string }
      if (key !== undefined && nodeName === name) this.#options.wanted(key)
    }
  }
}

export function jobNameOf(savepoint: KubeObject): string {
  const { job } = (savepoint['spec'] ?? {}) as { readonly job?: { readonly name?: string } }
  return job?.name ?? ''
}

/** The ConfigMap that a job's spec, as it was written, has its code in. */
export function codeMapOf(job: KubeObject): string | undefined {
  const { program } = (job['spec'] ?? {}) as {
    readonly program?: { readonly module?: { readonly configMap?: { readonly name?: unknown } } }
  }
  const name = program?.module?.configMap?.name
  return typeof name === 'string' ? name : undefined
}

/** A node that was just made has not said anything yet. */
function answers(node: KubeObject): boolean {
  const { conditions = [] } = (node['status'] ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
  return conditions.find(({ type }) => type === 'Ready')?.status !== 'Unknown'
}

/** Who manages which field is long, and nobody reads it here; nor is copied code read again, and of nodes only whether they answer. */
function keep(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata
  const isCode = object.kind === 'ConfigMap' && metadata.labels?.[componentLabel] === 'code'
  if (isCode) {
    const { data: _d, binaryData: _b, ...rest } = object
    return { ...rest, metadata }
  }
  if (object.kind === 'Node') {
    const { status } = object as { readonly status?: { readonly conditions?: unknown } }
    return { ...identityOf(object), status: { conditions: status?.conditions } }
  }
  return { ...object, metadata }
}

/** Annotations of other people's objects may hold all of their data once more (kubectl apply). */
function identityOf({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { namespace, name, uid, resourceVersion } = metadata
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace !== undefined && { namespace }),
      ...(uid !== undefined && { uid }),
      ...(resourceVersion !== undefined && { resourceVersion }),
    },
  }
}
