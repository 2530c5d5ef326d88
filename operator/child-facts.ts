// What a job owns, as decisions see it: whose it is, of which revision and start, and whether it is as its revision's rendering says. Pure.

import type { ChildFact, Revision, StreamJobStatus } from './contract.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { asRendered } from './resources/as-rendered.ts'
import { componentLabel, isOwnedBy, revisionLabel, startLabel } from './resources/labels.ts'
import { keyOf } from './resources/objects.ts'
import type { KubernetesObject, OwnerJob } from './resources/objects.ts'
import { fillIn } from './resources/rendering.ts'
import type { Rendering } from './resources/rendering.ts'

/** Facts of their own, not children to be applied. */
const apart: ReadonlySet<string> = new Set(['Pod', 'ControllerRevision'])

export interface ChildrenView {
  readonly job: OwnerJob
  readonly objects: readonly KubeObject[]
  /** Of the running start; undefined: none is known. */
  readonly rendering: Rendering | undefined
  /** Of the Secret that is rendered without its contents. */
  readonly isAccessComplete: (secret: KubeObject) => boolean
}

export function childFacts({
  job,
  objects,
  rendering,
  isAccessComplete,
}: ChildrenView): Readonly<Record<string, ChildFact>> {
  const facts: Record<string, ChildFact> = {}
  for (const object of objects) {
    if (apart.has(object.kind)) continue
    const key = keyOf(object as KubernetesObject)
    const rendered = rendering?.[key]
    const isRight =
      rendered === undefined ||
      (asRendered(rendered, object as KubernetesObject) && (!isAccess(object) || isAccessComplete(object)))
    facts[key] = childFact(object, job, isRight)
  }
  return facts
}

export function childFact(object: KubeObject, job: OwnerJob, isRight: boolean): ChildFact {
  const { metadata, kind } = object
  const { labels = {} } = metadata
  const start = Number(labels[startLabel])
  const { replicas } = (object['spec'] ?? {}) as { readonly replicas?: number }
  const isWorkload = kind === 'Deployment' || kind === 'StatefulSet'
  return {
    kind,
    namespace: metadata.namespace!,
    name: metadata.name,
    uid: metadata.uid!,
    resourceVersion: metadata.resourceVersion!,
    revision: labels[revisionLabel],
    start: Number.isSafeInteger(start) ? start : undefined,
    replicas: isWorkload ? (replicas ?? 1) : undefined,
    podsRefused: podsRefused(object),
    podsMissing: podsMissing(object),
    asRendered: isRight,
    ownedByJob: isOwnedBy(object as KubernetesObject, job),
    deleting: metadata.deletionTimestamp !== undefined,
  }
}

/** A Deployment says so; a StatefulSet only in events. */
function podsRefused(object: KubeObject): string | undefined {
  const { conditions = [] } = (object['status'] ?? {}) as {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message?: string }[]
  }
  const failure = conditions.find(({ type, status }) => type === 'ReplicaFailure' && status === 'True')
  return failure && (failure.message ?? 'no reason was given')
}

/** Also more than none for a moment, behind each pod that goes. */
function podsMissing({ kind, metadata, ...object }: KubeObject): number {
  if (kind !== 'StatefulSet') return 0
  const { replicas: asked = 1 } = (object['spec'] ?? {}) as { readonly replicas?: number }
  const { replicas: made, observedGeneration } = (object['status'] ?? {}) as {
    readonly replicas?: number
    readonly observedGeneration?: number
  }
  const isKnown = made !== undefined && observedGeneration === metadata.generation
  return isKnown ? Math.max(0, asked - made) : 0
}

export function isAccess({ kind, metadata }: KubeObject): boolean {
  return kind === 'Secret' && metadata.labels?.[componentLabel] === 'access'
}

/** undefined: nothing has been started, or its revision is not there. */
export function renderingOf(
  revisions: readonly Revision[],
  status: StreamJobStatus | undefined,
): Rendering | undefined {
  if (status?.begin === undefined) return undefined
  const revision = revisions.find(({ name }) => name === status.revision)
  if (revision === undefined) return undefined
  const { start, begin, workers } = status
  return fillIn(revision.rendering, { start, begin, workers })
}
