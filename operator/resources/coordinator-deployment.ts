// The Deployment of a job's coordinator: one pod, and never two by a rollout.

import { childMetadata, selectorOf } from './labels.ts'
import { mergePodTemplate } from './merge-pod-template.ts'
import { coordinatorName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import { podTemplate } from './pod-parts.ts'
import type { RenderedJob } from './pod-parts.ts'
import { accessKeys, configFile, ports } from './process-config.ts'

const defaultResources = { requests: { cpu: '100m', memory: '256Mi' } }

/** It leaves at once; its slots run on. */
const graceSeconds = 30

/** It answers before it asks stores and NATS; a busy node takes its time to load it. */
const startProbe = { periodSeconds: 2, failureThreshold: 60 }
/** The supervisor restarts a coordinator that ends; this is for one that hangs. */
const liveProbe = { periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 12 }
const readyProbe = { periodSeconds: 2, timeoutSeconds: 2 }

export function coordinatorDeployment(rendered: RenderedJob, start: string): KubernetesObject {
  const { job, revision, spec } = rendered
  const name = coordinatorName(job)
  const template = podTemplate(rendered, {
    component: 'coordinator',
    start,
    access: [
      accessKeys.workerToken,
      accessKeys.ownerToken,
      accessKeys.readerToken,
      accessKeys.authority,
      accessKeys.certificate,
      accessKeys.certificateKey,
    ],
    graceSeconds,
    container: {
      name: 'coordinator',
      command: ['millrace', 'coordinator', '--config', configFile, '--supervised', '--stay'],
      ports: [
        { name: 'rest', containerPort: ports.rest, protocol: 'TCP' },
        { name: 'workers', containerPort: ports.workers, protocol: 'TCP' },
      ],
      startupProbe: { ...probe('/livez'), ...startProbe },
      livenessProbe: { ...probe('/livez'), ...liveProbe },
      readinessProbe: { ...probe('/readyz'), ...readyProbe },
      resources: spec.coordinator.resources ?? defaultResources,
    },
  })
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: childMetadata({ job, component: 'coordinator', name, revision, start }),
    spec: {
      replicas: 1,
      revisionHistoryLimit: 1,
      strategy: { type: 'Recreate' },
      selector: { matchLabels: selectorOf(job, 'coordinator') },
      template: mergePodTemplate(template, spec.coordinator.podTemplate),
    },
  }
}

function probe(path: string): object {
  return { httpGet: { path, port: 'rest', scheme: 'HTTPS' } }
}
