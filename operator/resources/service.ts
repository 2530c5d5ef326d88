// The Service by which workers and the operator find the coordinator.

import { childMetadata, selectorOf, startLabel } from './labels.ts'
import { coordinatorName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import type { RenderedJob } from './pod-parts.ts'
import { ports } from './process-config.ts'

export function coordinatorService({ job, revision }: RenderedJob, start: string): KubernetesObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: childMetadata({ job, component: 'coordinator', name: coordinatorName(job), revision, start }),
    spec: {
      type: 'ClusterIP',
      // A coordinator is ready when its workers have come, which come by this.
      publishNotReadyAddresses: true,
      selector: { ...selectorOf(job, 'coordinator'), [startLabel]: start },
      ports: [
        { name: 'rest', port: ports.rest, targetPort: 'rest', protocol: 'TCP' },
        { name: 'workers', port: ports.workers, targetPort: 'workers', protocol: 'TCP' },
      ],
    },
  }
}
