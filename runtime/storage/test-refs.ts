// What HEAD says of checkpoints, for tests.

import { checkpointId, start } from '../base/ids.ts'
import type { ManifestRef } from './head-contract.ts'
import { manifestKey } from './paths.ts'

/** Of start 1. */
export function checkpointRef(id: number): ManifestRef {
  return {
    id: checkpointId(id),
    kind: 'checkpoint',
    path: manifestKey(checkpointId(id), 'checkpoint'),
    start: start(1),
    completedAtMs: 0,
    bytes: 1,
  }
}
