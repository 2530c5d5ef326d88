// The ConfigMap with process.json: one for each start, and immutable, so that a pod of an older start never reads a newer one's.

import { childMetadata } from './labels.ts'
import { configName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import type { RenderedJob } from './pod-parts.ts'
import { processConfig } from './process-config.ts'

export const processFile = 'process.json'

/** Without what a start adds. */
export function configConfigMap(rendered: RenderedJob, start: string): KubernetesObject {
  const { job, revision, code } = rendered
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: childMetadata({ job, component: 'config', name: configName(job, start), revision, start }),
    immutable: true,
    data: { [processFile]: JSON.stringify(processConfig({ ...rendered, codeKey: code?.key })) },
  }
}
