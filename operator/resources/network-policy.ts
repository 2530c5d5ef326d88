// Who may reach a job's pods: its workers the coordinator's own port, everybody its REST (which has tokens), nobody a worker. What the job
// itself reaches is not limited.

import { childMetadata, selectorOf } from './labels.ts'
import { coordinatorName, workerName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import type { RenderedJob } from './pod-parts.ts'
import { ports } from './process-config.ts'

export function networkPolicies(rendered: RenderedJob): readonly KubernetesObject[] {
  return rendered.networkPolicy ? [coordinatorPolicy(rendered), workerPolicy(rendered)] : []
}

function coordinatorPolicy({ job, revision }: RenderedJob): KubernetesObject {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: childMetadata({ job, component: 'coordinator', name: coordinatorName(job), revision }),
    spec: {
      podSelector: { matchLabels: selectorOf(job, 'coordinator') },
      policyTypes: ['Ingress'],
      ingress: [
        { ports: [{ port: ports.rest, protocol: 'TCP' }] },
        {
          from: [{ podSelector: { matchLabels: selectorOf(job, 'worker') } }],
          ports: [{ port: ports.workers, protocol: 'TCP' }],
        },
      ],
    },
  }
}

function workerPolicy({ job, revision }: RenderedJob): KubernetesObject {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: childMetadata({ job, component: 'worker', name: workerName(job), revision }),
    spec: { podSelector: { matchLabels: selectorOf(job, 'worker') }, policyTypes: ['Ingress'] },
  }
}
