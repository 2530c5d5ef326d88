// What the starts of a job have left of where its state is, for when the revision that says so is not there. Pure.

import type { StreamJobStatus } from './contract.ts'
import type { KubeObject } from './kubernetes/contract.ts'
import { processFile } from './resources/config-config-map.ts'
import { isOwnedBy } from './resources/labels.ts'
import { configName } from './resources/names.ts'
import type { KubernetesObject, OwnerJob } from './resources/objects.ts'
import { checkpointsOf } from './resources/process-config.ts'
import type { StateTraces } from './validate.ts'

export interface ToTrace {
  readonly job: OwnerJob
  readonly status: StreamJobStatus
  readonly objects: readonly KubeObject[]
}

export function stateTraces({ job, status, objects }: ToTrace): StateTraces {
  const config = startConfig({ job, status, objects })
  const { restorePoint, rollbackPoint, lastCheckpoint } = status
  // A savepoint may be anywhere.
  const paths = [restorePoint, rollbackPoint, lastCheckpoint].map((at) =>
    at?.kind === 'checkpoint' ? at.path : undefined,
  )
  const places = [config?.storage?.checkpoints, ...paths].map((place) => place && checkpointsOf(job, place))
  return {
    checkpoints: places.find((place) => place !== undefined),
    maxParallelism: config?.job?.maxParallelism,
  }
}

interface StartConfig {
  readonly job?: { readonly maxParallelism?: number }
  readonly storage?: { readonly checkpoints?: string }
}

/** What the pods of the start read. */
function startConfig({ job, status, objects }: ToTrace): StartConfig | undefined {
  const name = configName(job, String(status.start))
  const map = objects.find(
    (object) =>
      object.kind === 'ConfigMap' && object.metadata.name === name && isOwnedBy(object as KubernetesObject, job),
  )
  const text = (map?.['data'] as Readonly<Record<string, string>> | undefined)?.[processFile]
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as StartConfig
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return undefined
  }
}
