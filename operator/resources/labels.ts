// Labels of what a StreamJob owns. Identity is the uid; names are for people.

import { API_VERSION } from '../../crds/resource.ts'
import type { Component, KubernetesObject, ObjectMetadata, OwnerJob } from './objects.ts'

export const jobLabel = 'millrace.dev/job'
export const revisionLabel = 'millrace.dev/revision'
export const startLabel = 'millrace.dev/start'
export const purposeLabel = 'millrace.dev/purpose'
export const componentLabel = 'app.kubernetes.io/component'
/** What a short pod was asked for under; an annotation, since it may be long. */
export const requestAnnotation = 'millrace.dev/request'

const labelMax = 63

/** What selects pods of one component, and never those of a namesake. */
export function selectorOf({ uid }: OwnerJob, component: Component): Readonly<Record<string, string>> {
  return { [jobLabel]: uid, [componentLabel]: component }
}

/** As status.labelSelector has it. */
export function selectorText(job: OwnerJob, component: Component): string {
  return Object.entries(selectorOf(job, component))
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
}

export function labelsOf(
  job: OwnerJob,
  component: Component,
  { revision, start }: { readonly revision: string | undefined; readonly start: string | undefined },
): Readonly<Record<string, string>> {
  return {
    'app.kubernetes.io/name': 'millrace',
    'app.kubernetes.io/instance': job.name.slice(0, labelMax).replace(/[^a-z0-9]+$/, ''),
    'app.kubernetes.io/managed-by': 'millrace',
    ...selectorOf(job, component),
    ...(revision !== undefined && { [revisionLabel]: revision }),
    ...(start !== undefined && { [startLabel]: start }),
  }
}

export interface ChildOptions {
  readonly job: OwnerJob
  readonly component: Component
  readonly name: string
  readonly revision?: string
  readonly start?: string
  readonly annotations?: Readonly<Record<string, string>>
}

/** Of an object that goes with its StreamJob. */
export function childMetadata({ job, component, name, revision, start, annotations }: ChildOptions): ObjectMetadata {
  return {
    name,
    namespace: job.namespace,
    labels: labelsOf(job, component, { revision, start }),
    ...(annotations !== undefined && { annotations }),
    ownerReferences: [
      {
        apiVersion: API_VERSION,
        kind: 'StreamJob',
        name: job.name,
        uid: job.uid,
        controller: true,
        blockOwnerDeletion: true,
      },
    ],
  }
}

/** Whether it is of this very job, not of a namesake. */
export function isOwnedBy({ metadata }: Pick<KubernetesObject, 'metadata'>, { uid }: OwnerJob): boolean {
  return metadata.ownerReferences?.some((owner) => owner.uid === uid) === true
}
