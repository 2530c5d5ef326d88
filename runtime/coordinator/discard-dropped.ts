// What HEAD of an ended job is discarding is deleted, and what is gone then taken out of HEAD (rule 7).

import type { Environment } from '../base/environment.ts'
import type { CheckpointId } from '../base/ids.ts'
import { decodeManifest, objectsOf } from '../checkpoint/manifest.ts'
import type { ObjectKey, ObjectStore } from '../storage/contract.ts'
import { discardFiles } from '../storage/garbage.ts'
import { discarded } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { isAbsoluteKey } from '../storage/paths.ts'
import { cleanupDeadlineMs, timeFor, withinCleanup } from './cleanup.ts'
import { readManifest } from './restore.ts'
import type { ManifestSources } from './restore.ts'

export interface Dropped {
  /** Settled. */
  readonly head: Head
  readonly keeper: HeadKeeper
  readonly store: ObjectStore
  readonly environment: Environment
  readonly stillUsed: ReadonlySet<ObjectKey>
  /** What the manifests are of, for messages. */
  readonly of: string
}

/**
 * Resolves to the ids whose files are gone. Throws MR-S01 where one call takes too long; HEAD is told of what went before that as well, so that
 * each further try in a slow store comes further.
 */
export async function discardDropped(dropped: Dropped): Promise<readonly CheckpointId[]> {
  const { head, keeper, store, environment, stillUsed, of } = dropped
  const gone: CheckpointId[] = []
  const deleting = discardFiles({
    head,
    store,
    objectsOf: (bytes) => [...objectsOf(decodeManifest(bytes, of))],
    stillUsed,
    mayGoOn: timeFor(environment.clock, cleanupDeadlineMs),
    environment,
    onGone: (id) => void gone.push(id),
  })
  try {
    await withinCleanup(environment.clock, deleting)
  } finally {
    if (gone.length > 0) await keeper.amend((newest) => discarded(newest, gone))
  }
  return gone
}

/** In the job's own store: the manifests, and all that they name. */
export async function objectsNeededBy(
  sources: ManifestSources,
  manifests: readonly ManifestRef[],
): Promise<ReadonlySet<ObjectKey>> {
  const needed = new Set<ObjectKey>()
  for (const ref of manifests) {
    if (isAbsoluteKey(ref.path) || needed.has(ref.path)) continue
    needed.add(ref.path)
    for (const object of objectsOf(await readManifest(sources, ref))) needed.add(object)
  }
  return needed
}
