// The account of a job's pods: no role is bound to it, and no token of it is mounted.

import { childMetadata } from './labels.ts'
import { accountName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import type { RenderedJob } from './pod-parts.ts'

/** undefined: the spec names one. */
export function serviceAccount({ job, revision, spec }: RenderedJob): KubernetesObject | undefined {
  if (spec.serviceAccountName !== undefined) return undefined
  return {
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: childMetadata({ job, component: 'account', name: accountName(job), revision }),
    automountServiceAccountToken: false,
  }
}
