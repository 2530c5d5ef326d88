// Whether a start can begin at a restore point that was asked for: found out before HEAD is written, so that what does not fit leaves
// the job as it was.

import { forEachBounded } from '../base/bounded.ts'
import { within } from '../base/deadline.ts'
import { MillraceError } from '../base/errors.ts'
import { assignRestore, committablesOf } from '../checkpoint/assignment.ts'
import { checkpointError } from '../checkpoint/errors.ts'
import { handlesOf } from '../checkpoint/handles.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import { snapshotError } from '../checkpoint/snapshot-errors.ts'
import type { ObjectKey } from '../storage/contract.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import type { RestoreRequest } from './coordinator-contract.ts'
import { coordinatorError } from './errors.ts'
import { readDeadlineMs, readManifest, storeOf } from './restore.ts'
import type { ManifestSources, RestoreSources } from './restore.ts'

export type CheckSources = Omit<RestoreSources, 'snapshotReader'>

export interface CheckedRestorePoint {
  /** It holds transactions that are not known to be committed: the swap that begins there permits them (rule 22). */
  readonly commitsPending: boolean
}

/**
 * Throws MR-C10 to MR-C18 for what does not fit, MR-C54 for a file that is missing or too short, MR-O20 for a manifest that is damaged.
 * What the files hold is checked against its checksums when subtasks read it, before they open.
 */
export async function checkRestorePoint(sources: CheckSources, from: ManifestRef): Promise<CheckedRestorePoint> {
  const manifest = await readManifest(sources, from)
  refuseDrained(manifest, from, sources.restore)
  const commitsPending = sources.restore?.committed !== true && committablesOf(manifest).size > 0
  assignRestore(manifest, sources.graph, {
    allowNonRestoredState: sources.restore?.allowNonRestoredState ?? false,
    commitsConfirmed: !commitsPending,
  })
  await refuseMissingFiles(sources, manifest)
  return { commitsPending }
}

/** Throws MR-C17. */
export function refuseDrained(
  { drained }: { readonly drained?: boolean },
  from: ManifestRef,
  restore: RestoreRequest | undefined,
): void {
  if (drained === true && restore?.allowDrained !== true) throw checkpointError('MR-C17', `${from.path}.`)
}

/** At the same time: a large savepoint has many objects, and a store answers each in its own time. */
const questionsMax = 16

/** One question an object: whether its last byte that the snapshot names is there. Throws MR-C54, MR-O21, or the store's own error. */
export async function refuseMissingFiles(sources: ManifestSources, manifest: Manifest): Promise<void> {
  const ends = new Map<string, number>()
  for (const { object, offset, length } of handlesOf(manifest)) {
    ends.set(object, Math.max(ends.get(object) ?? 0, offset + length))
  }
  await forEachBounded(ends, questionsMax, ([object, end]) => refuseMissingFile(sources, object as ObjectKey, end))
}

async function refuseMissingFile(sources: ManifestSources, object: ObjectKey, end: number): Promise<void> {
  const length = Math.min(end, 1)
  const late = () => coordinatorError('MR-O21', `${object}: no answer within ${readDeadlineMs} ms.`)
  try {
    const asked = storeOf(object, sources).readRange(object, end - length, length)
    const last = await within(sources.environment.clock, readDeadlineMs, asked, late)
    if (last === undefined) throw snapshotError('MR-C54', `${object} is not there.`)
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'MR-S03') throw snapshotError('MR-C54', error.message, error)
    throw error
  }
}
