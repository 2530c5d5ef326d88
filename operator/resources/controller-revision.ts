// Everything that a start was made with, kept for as long as it is the current or the last stable one.

import type { Revision } from '../contract.ts'
import { childMetadata } from './labels.ts'
import type { KubernetesObject, OwnerJob } from './objects.ts'

export function controllerRevision(job: OwnerJob, revision: Revision): KubernetesObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'ControllerRevision',
    metadata: childMetadata({ job, component: 'revision', name: revision.name, revision: revision.name }),
    revision: revision.number,
    data: revision,
  }
}

/** undefined: it is of another version, or not ours. */
export function readRevision({ data }: KubernetesObject): Revision | undefined {
  const isOurs = typeof data === 'object' && data !== null && (data as { readonly version?: unknown }).version === 1
  if (!isOurs) return undefined
  // JSON has no undefined.
  const revision = data as Revision
  return { ...revision, code: revision.code ?? undefined }
}
