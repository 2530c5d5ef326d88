// Drains take one worker at a time: each gives the job time to move its slots. The coordinator has no budget: with one pod it would block
// every drain, and its loss restarts nothing.

import { childMetadata, selectorOf } from './labels.ts'
import { workerName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import type { RenderedJob } from './pod-parts.ts'

export function workerDisruptionBudget({ job, revision }: RenderedJob): KubernetesObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: childMetadata({ job, component: 'worker', name: workerName(job), revision }),
    spec: {
      maxUnavailable: 1,
      // A pod that cannot become ready must not keep its node from being drained.
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
      selector: { matchLabels: selectorOf(job, 'worker') },
    },
  }
}
