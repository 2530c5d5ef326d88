// A pod that runs one command of the job and ends: admin work on HEAD and the store, or the preflight of a revision. It is the coordinator's
// pod of that revision's rendering with another command, so it has the same image, code, credentials and restrictions. Its process.json
// travels in an annotation: one object, made once.

import { invariant } from '../../runtime/base/errors.ts'
import type { PodPurpose, StartBegin } from '../contract.ts'
import { processFile } from './config-config-map.ts'
import { childMetadata, purposeLabel, requestAnnotation } from './labels.ts'
import { accountName, coordinatorName, shortPodName } from './names.ts'
import type { KubernetesObject, OwnerJob } from './objects.ts'
import { shortContainer } from './origin-template.ts'
import { volumeNames } from './pod-parts.ts'
import type { Json } from './pod-parts.ts'
import { configFile } from './process-config.ts'
import { configTextOf, fillIn } from './rendering.ts'

const configAnnotation = 'millrace.dev/process-config'

export const shortPodLimits = {
  /** Small: a preflight must not be what the quota has no room for. */
  resources: { requests: { cpu: '50m', memory: '192Mi' } },
  /** From its creation to its end, pulling the image included. */
  deadlineSeconds: { preflight: 60, admin: 150 },
  graceSeconds: 5,
} as const

export interface ShortPodOptions {
  readonly job: OwnerJob
  readonly purpose: PodPurpose
  readonly request: string
  readonly revision: string
  readonly rendering: Readonly<Record<string, unknown>>
  readonly start: number
  readonly begin: StartBegin
  /** After `millrace`, before `--config`. */
  readonly arguments: readonly string[]
}

export function shortPod(options: ShortPodOptions): KubernetesObject {
  const { job, purpose, request, revision, rendering, start, begin } = options
  const filled = fillIn(rendering, { start, begin, workers: 0 })
  const deployment = filled[`Deployment/${coordinatorName(job)}`]
  invariant(deployment !== undefined, `the rendering of ${revision} has no coordinator`)
  const { template } = deployment['spec'] as { readonly template: { readonly spec: Json } }
  const { serviceAccountName, ...podSpec } = template.spec
  const component = purpose === 'preflight' ? 'preflight' : 'admin'
  const metadata = childMetadata({
    job,
    component,
    name: shortPodName(job, purpose, request),
    revision,
    start: String(start),
    annotations: {
      [requestAnnotation]: request,
      [configAnnotation]: configTextOf(filled),
    },
  })
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, labels: { ...metadata.labels, [purposeLabel]: purpose } },
    spec: {
      ...podSpec,
      // The job's own account may not be there yet; the namespace's does as well without a token.
      ...(serviceAccountName !== accountName(job) && { serviceAccountName }),
      restartPolicy: 'Never',
      activeDeadlineSeconds: shortPodLimits.deadlineSeconds[component],
      terminationGracePeriodSeconds: shortPodLimits.graceSeconds,
      containers: [commandContainer(template.spec, options.arguments)],
      volumes: (template.spec['volumes'] as readonly Json[]).filter(isMounted).map(volumeOfShortPod),
    },
  }
}

/** The coordinator's container without what belongs to a server. Sidecars would keep the pod from ending. */
function commandContainer(spec: Json, words: readonly string[]): Json {
  const coordinator = (spec['containers'] as readonly Json[]).find(({ name }) => name === 'coordinator')
  invariant(coordinator !== undefined, 'a coordinator without its container')
  const { ports: _, startupProbe: _s, livenessProbe: _l, readinessProbe: _r, lifecycle: _c, ...container } = coordinator
  const mounts = (container['volumeMounts'] as readonly Json[]).filter(isMounted)
  return {
    ...container,
    name: shortContainer,
    command: ['millrace', ...words, '--config', configFile],
    volumeMounts: mounts,
    resources: shortPodLimits.resources,
  }
}

/** It serves nobody and connects to no NATS: it needs none of their secrets, and runs without them. */
function isMounted({ name }: Json): boolean {
  return name !== volumeNames.access && name !== volumeNames.nats
}

function volumeOfShortPod(volume: Json): Json {
  if (volume['name'] !== volumeNames.config) return volume
  const fieldPath = `metadata.annotations['${configAnnotation}']`
  return { name: volumeNames.config, downwardAPI: { items: [{ path: processFile, fieldRef: { fieldPath } }] } }
}
