// The StatefulSet of a job's workers. Pods come back with their names; a new template reaches only pods made after it, which the operator
// sees to: an upgrade goes through no pods at all.

import { childMetadata, selectorOf } from './labels.ts'
import { mergePodTemplate } from './merge-pod-template.ts'
import { coordinatorName, workerName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import { podTemplate } from './pod-parts.ts'
import type { Json, RenderedJob } from './pod-parts.ts'
import { accessKeys, configFile, workerGraceMs } from './process-config.ts'

const defaultResources = { requests: { cpu: '250m', memory: '512Mi' } }

/** The worker's own grace, and time to end. */
const graceSeconds = workerGraceMs / 1_000 + 5

/** Without replicas: how many are wanted is filled in. No probe: what a worker needs may be away for minutes, and the supervisor restarts it. */
export function workerStatefulSet(rendered: RenderedJob, start: string): KubernetesObject {
  const { job, revision, spec } = rendered
  const selector = { matchLabels: selectorOf(job, 'worker') }
  const template = podTemplate(rendered, {
    component: 'worker',
    start,
    access: [accessKeys.workerToken, accessKeys.authority],
    graceSeconds,
    container: {
      name: 'worker',
      command: ['millrace', 'worker', '--config', configFile, '--name', '$(POD_NAME)', '--supervised'],
      env: [{ name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
      resources: spec.worker.resources ?? defaultResources,
    },
  })
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: childMetadata({ job, component: 'worker', name: workerName(job), revision, start }),
    spec: {
      // Nobody asks for a worker by name; the field must name a Service.
      serviceName: coordinatorName(job),
      podManagementPolicy: 'Parallel',
      updateStrategy: { type: 'OnDelete' },
      persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete', whenScaled: 'Delete' },
      revisionHistoryLimit: 1,
      selector,
      template: mergePodTemplate(spreadOverNodes(template, selector), spec.worker.podTemplate),
    },
  }
}

/** Where there is a choice: a lost node then takes few of them. */
function spreadOverNodes(template: Json, labelSelector: Json): Json {
  const constraint = {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector,
  }
  return { ...template, spec: { ...(template['spec'] as Json), topologySpreadConstraints: [constraint] } }
}
