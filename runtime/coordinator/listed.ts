// What lies in a store, where its list may lag behind what was written.

import { within } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import type { ObjectKey, ObjectStore } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { isSavepointManifest, manifestKey, savepointOfKey } from '../storage/paths.ts'
import { readDeadlineMs } from './restore.ts'

/** Throws MR-S01 when there is no answer in time. */
export function listed(
  objects: Pick<ObjectStore, 'list'>,
  prefix: string,
  { clock }: Pick<Environment, 'clock'>,
): Promise<ObjectKey[]> {
  const late = () => storageError('MR-S01', `Listing ${prefix}…: no answer within ${readDeadlineMs} ms.`)
  return within(clock, readDeadlineMs, objects.list(prefix), late)
}

/**
 * Of savepoints without a manifest in the list, those that have one all the same. It is written last, so that a list which lags behind shows the
 * data of a savepoint that has just completed and not what makes it one.
 */
export async function unlistedManifests(
  store: Pick<ObjectStore, 'read'>,
  keys: readonly ObjectKey[],
  environment: Pick<Environment, 'clock'>,
): Promise<ObjectKey[]> {
  const complete = new Set(keys.filter(isSavepointManifest).map(savepointOfKey))
  const ids = new Set(keys.flatMap((key) => savepointOfKey(key) ?? []))
  const there: ObjectKey[] = []
  for (const id of ids) {
    const manifest = manifestKey(id, 'savepoint')
    if (!complete.has(id) && (await isThere(store, manifest, environment))) there.push(manifest)
  }
  return there
}

/** Throws MR-S01 when there is no answer in time. */
export async function isThere(
  store: Pick<ObjectStore, 'read'>,
  path: ObjectKey,
  { clock }: Pick<Environment, 'clock'>,
): Promise<boolean> {
  const late = () => storageError('MR-S01', `Reading ${path}: no answer within ${readDeadlineMs} ms.`)
  return (await within(clock, readDeadlineMs, store.read(path), late)) !== undefined
}
