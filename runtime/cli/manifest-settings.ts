// What a StreamJob's spec means to a job on this machine, and which of its fields mean nothing here.

import { settingsOfSpec } from '../../crds/job-settings.ts'
import type { StreamJob } from '../../crds/stream-job.ts'
import type { JobSettings } from '../job/contract.ts'

/** Only what the manifest says: the rest is the job's own. */
export function settingsOfManifest(spec: StreamJob['spec']): Partial<JobSettings> {
  const { tolerableFailures, ...said } = settingsOfSpec(spec)
  if (tolerableFailures === undefined) return said
  return {
    ...said,
    tolerableFailures: tolerableFailures === 'unlimited' ? Number.POSITIVE_INFINITY : tolerableFailures,
  }
}

/** A folder; buckets are for a cluster, as those of the checkpoints are. */
export function savepointsOfManifest({ storage }: Pick<StreamJob['spec'], 'storage'>): string | undefined {
  return isFolder(storage?.savepoints) ? storage.savepoints : undefined
}

function isFolder(address: unknown): address is string {
  return typeof address === 'string' && address.startsWith('file:///')
}

/** Whatever is not here is said not to be used: a field that is added to the schema is never silently ignored. */
const usedHere: ReadonlySet<string> = new Set([
  'state',
  'program.module',
  'program.args',
  'parallelism',
  'maxParallelism',
  'restoreFrom',
  // The only value that there is, and what local mode does.
  'restoreMode',
  'allowNonRestoredState',
  'checkpointing',
  // Likewise.
  'stateBackend',
  'restartStrategy',
  'failoverStrategy',
])

/** These are told field by field. */
const groups: ReadonlySet<string> = new Set(['program', 'storage', 'coordinator', 'worker'])

/** `spec` as it is written: the fields that say something to a cluster alone, in their order. */
export function unusedFields(spec: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(spec)
    .flatMap(([name, value]) =>
      groups.has(name) && typeof value === 'object' && value !== null
        ? Object.entries(value)
            .filter(([inner, address]) => name !== 'storage' || inner !== 'savepoints' || !isFolder(address))
            .map(([inner]) => `${name}.${inner}`)
        : [name],
    )
    .filter((field) => !usedHere.has(field))
}
