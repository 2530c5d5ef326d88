// Carries out `discarding`: only a completing swap put manifests there, and only that permits deletion (rule 7).

import type { CheckpointId } from '../base/ids.ts'
import { invariant, InvariantError } from '../base/errors.ts'
import type { Environment } from '../base/environment.ts'
import type { ObjectKey, ObjectStore } from './contract.ts'
import { isPinned } from './head.ts'
import type { Head, ManifestRef } from './head-contract.ts'
import { snapshotFolder } from './paths.ts'

export interface Discarding {
  /** A settled HEAD: never one whose swap is unclear (rule 4). */
  readonly head: Head
  readonly store: ObjectStore
  /** What a manifest names, of this job's own objects; throws for a manifest that it cannot read. */
  readonly objectsOf: (manifest: Uint8Array) => readonly ObjectKey[]
  /** What snapshots that HEAD names use, and finished subtasks' final states. Why a pending one uses nothing else that is older: coordinator/orphans.ts. */
  readonly stillUsed: ReadonlySet<ObjectKey>
  /** Asked before each manifest: what there is no time for stays for the next time. */
  readonly mayGoOn: () => boolean
  /** For who may not wait for the end of it. */
  readonly onGone?: (id: CheckpointId) => void
  readonly environment: Pick<Environment, 'log'>
}

/**
 * Deletes what may be deleted and resolves to the ids whose files are gone: the caller swaps `discarded(head, ids)`. What fails is logged
 * and left for the next time; a repeat after a crash finishes what was begun.
 */
export async function discardFiles({
  head,
  store,
  objectsOf,
  stillUsed,
  mayGoOn,
  onGone,
  environment,
}: Discarding): Promise<CheckpointId[]> {
  const gone: CheckpointId[] = []
  for (const manifest of head.discarding) {
    if (!mayGoOn()) break
    invariant(manifest.kind === 'checkpoint', `${manifest.path} belongs to the user, not to the job`)
    invariant(!isPinned(head, manifest), `${manifest.path} is needed`)
    try {
      await discardOne(manifest, { store, objectsOf, stillUsed })
      gone.push(manifest.id)
      onGone?.(manifest.id)
    } catch (error) {
      if (error instanceof InvariantError) throw error
      environment.log('warn', 'files of a dropped checkpoint could not be deleted; tried again later', {
        manifest: manifest.path,
        error: String(error),
      })
    }
  }
  return gone
}

async function discardOne(
  manifest: ManifestRef,
  { store, objectsOf, stillUsed }: Pick<Discarding, 'store' | 'objectsOf' | 'stillUsed'>,
): Promise<void> {
  const bytes = await store.read(manifest.path)
  const folder = `${snapshotFolder(manifest.id, manifest.kind)}/`
  // Also what nobody names: uploads of subtasks that were told to stop, or whose answer was lost.
  const data = new Set(await store.list(folder))
  if (bytes !== undefined) for (const key of objectsOf(bytes)) data.add(key)
  data.delete(manifest.path)
  // Data first, manifest last: a crash between leaves the list of what remains to be deleted.
  await store.delete([...data].filter((key) => !stillUsed.has(key)))
  await store.delete([manifest.path])
}
