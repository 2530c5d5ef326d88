// A job's children: revisions are stored with their code and their rendering, and renderings are applied. What is foreign is left alone.

import type { AccessMaker } from './access.ts'
import type { Caches } from './caches.ts'
import type { CodeFiles, CodeReader } from './code-reader.ts'
import { isAccess } from './child-facts.ts'
import type { Action, NatsSharing, Observed, Revision } from './contract.ts'
import type { ForeignObjects } from './foreign-objects.ts'
import { KubeError } from './kubernetes/contract.ts'
import type { KubeClient, KubeObject } from './kubernetes/contract.ts'
import { typeOf } from './kubernetes/types.ts'
import { clusterFactsOf, natsSharing } from './resources/cluster-facts.ts'
import { codeConfigMap, codeData } from './resources/code-config-map.ts'
import { controllerRevision } from './resources/controller-revision.ts'
import { componentLabel, isOwnedBy } from './resources/labels.ts'
import { keyOf } from './resources/objects.ts'
import type { KubernetesObject, OwnerJob } from './resources/objects.ts'
import type { OperatorConfig } from './resources/operator-config.ts'
import { fillIn, render, toApply } from './resources/rendering.ts'
import type { Writer } from './writer.ts'

export interface ChildrenContext {
  readonly job: OwnerJob
  readonly client: Pick<KubeClient, 'get'>
  readonly caches: Caches
  readonly code: Pick<CodeReader, 'filesOf'>
  readonly writer: Writer
  readonly foreign: ForeignObjects
  readonly access: AccessMaker
  readonly config: OperatorConfig
  readonly log: (level: 'debug' | 'info' | 'warn', message: string, fields?: Readonly<Record<string, unknown>>) => void
}

/** Its code first: where a revision is, there is its code. */
export async function storeRevision(
  context: ChildrenContext,
  observed: Observed,
  { revision }: Extract<Action, { type: 'storeRevision' }>,
): Promise<NatsSharing> {
  const { job, config } = context
  await codeOfRevision(context, observed, revision)
  const rendering = render(job, revision, clusterFactsOf(revision.spec, config))
  const sharing = natsSharing(revision.spec, config)
  await createOwned(context.writer, job, controllerRevision(job, { ...revision, rendering, natsSharing: sharing }))
  return sharing
}

/** Code that no other revision has goes after it; what an operator that died between has left goes with the next one. */
export async function deleteRevision({ job, caches, writer }: ChildrenContext, name: string): Promise<void> {
  const own = caches.ofOwner(job).filter((object) => isOwnedBy(object as KubernetesObject, job))
  const stored = own.filter(({ kind }) => kind === 'ControllerRevision')
  const found = stored.find(({ metadata }) => metadata.name === name)
  if (found === undefined) return
  await writer.delete(identityOf(found), { force: false })
  const used = new Set(stored.filter((other) => other !== found).map(codeMapOf))
  for (const object of own) {
    const { kind, metadata } = object
    const isCode = kind === 'ConfigMap' && metadata.labels?.[componentLabel] === 'code'
    if (isCode && !used.has(metadata.name)) await writer.delete(identityOf(object), { force: false })
  }
}

function codeMapOf({ data }: KubeObject): string | undefined {
  return (data as Revision | undefined)?.code?.configMap
}

/**
 * Once: it is immutable, named by its hash, and an operator that dies after each of its writes must come on. A short pod mounts it too. Where the
 * spec names other code by now, there is nothing that it could be made of.
 */
export async function codeOfRevision(context: ChildrenContext, observed: Observed, { code }: Revision): Promise<void> {
  if (code === undefined || observed.children[`ConfigMap/${code.configMap}`]?.ownedByJob === true) return
  const files = await filesOf(context, observed, code.hash)
  if (files === undefined) return
  await applyOne(context, { ...codeConfigMap(context.job, code), data: codeData(files) })
}

/** Kinds of which another revision may have none: what is left of them is taken away. */
const optional: ReadonlySet<string> = new Set(['ServiceAccount', 'NetworkPolicy', 'Ingress', 'PodDisruptionBudget'])

export async function applyChildren(
  context: ChildrenContext,
  observed: Observed,
  { revision: name, start, workers, begin }: Extract<Action, { type: 'applyChildren' }>,
): Promise<void> {
  const { job, caches, writer, access, log } = context
  const revision = observed.revisions.find((one) => one.name === name)
  if (revision === undefined) throw new Error(`revision ${name} is not there`)
  const rendering = fillIn(revision.rendering, { start, begin, workers })
  for (const child of Object.values(observed.children))
    if (
      optional.has(child.kind) &&
      child.ownedByJob &&
      !child.deleting &&
      rendering[`${child.kind}/${child.name}`] === undefined
    )
      await writer.delete(child, { force: false })
  const secret = caches.ofOwner(job).find(isAccess)
  const { code } = revision
  const stored = code && observed.children[`ConfigMap/${code.configMap}`]
  const isDue = code !== undefined && stored?.asRendered !== true
  const files = isDue ? await filesOf(context, observed, code.hash) : undefined
  const contents = { access: await access.make(secret, job, revision.spec), files }
  if (isDue && files === undefined && stored === undefined)
    log('warn', 'the code of a revision is gone, and the spec names other code', { revision: name })
  for (const object of toApply(job, rendering, contents)) {
    const child = observed.children[keyOf(object)]
    const isRight =
      child?.asRendered === true &&
      (child.revision === undefined || child.revision === name) &&
      (child.start === undefined || child.start === start) &&
      (child.kind !== 'StatefulSet' || child.replicas === workers)
    if (isRight || child?.deleting === true || child?.ownedByJob === false) continue
    await applyOne(context, object)
  }
}

/** undefined: the spec names other code. */
async function filesOf(
  { code: reader, job }: ChildrenContext,
  { code }: Observed,
  hash: string,
): Promise<CodeFiles | undefined> {
  if (!code.known || code.value.kind !== 'files' || code.value.hash !== hash) return undefined
  return reader.filesOf(job.namespace, code.value.configMap, hash)
}

/**
 * Server-side apply of an object that is the job's, or is not there. What is in the caches is changed under its version; what is not is looked
 * for first, as a name may be somebody else's, and then made without overriding anybody.
 */
async function applyOne(context: ChildrenContext, object: KubernetesObject): Promise<void> {
  const { job, client, caches, writer, foreign, log } = context
  const type = typeOf(object)!
  const { namespace, name } = object.metadata
  const known = caches.get(type, namespace, name)
  if (known === undefined) {
    const there = await client.get(type, { namespace, name })
    if (there === undefined) return void (await writer.apply(object, { force: false }))
    // Ours, and the cache is behind: the next look sees it. Or not ours.
    if (isOwnedBy(there as KubernetesObject, job)) caches.wrote(type, there)
    else foreign.met(job, there)
    return
  }
  if (!isOwnedBy(known as KubernetesObject, job)) return foreign.met(job, known)
  const { uid, resourceVersion } = known.metadata
  const conditional = { ...object, metadata: { ...object.metadata, uid, resourceVersion } } as KubeObject
  try {
    await writer.apply(conditional, { force: true })
  } catch (error) {
    if (!(error instanceof KubeError && error.invalid)) throw error
    // A field that cannot change: it is made anew.
    log('warn', 'an object cannot be changed and is replaced', { object: keyOf(object), error: error.message })
    await writer.delete(identityOf(known), { force: false })
  }
}

/** Made once, and never changed: a revision, a pod. Throws MR-P06. */
export function createOwned(writer: Writer, owner: OwnerJob, object: KubernetesObject): Promise<void> {
  return writer.create(object, (there) => isOwnedBy(there as KubernetesObject, owner))
}

function identityOf({ kind, metadata }: KubeObject) {
  const { namespace, name, uid, resourceVersion } = metadata
  return { kind, namespace: namespace!, name, uid: uid!, resourceVersion: resourceVersion! }
}
