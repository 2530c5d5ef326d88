// Calls of a store that each have a deadline, and what lies there where its list may lag behind what was written.

import { within } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import type { ObjectKey, ObjectStore } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { isCheckpointManifest, isSavepointManifest, manifestKey, savepointOfKey } from '../storage/paths.ts'
import { readDeadlineMs } from './restore.ts'

/** Deleted by one call of the store, which is one request of S3. */
export const deletedAtOnce = 1000

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

/** What is there and what is not; throws MR-S01 when there is no answer in time. */
export async function deleteAll(
  objects: Pick<ObjectStore, 'delete'>,
  keys: readonly ObjectKey[],
  { clock }: Pick<Environment, 'clock'>,
): Promise<void> {
  for (let first = 0; first < keys.length; first += deletedAtOnce) {
    const some = keys.slice(first, first + deletedAtOnce)
    const late = () => storageError('MR-S01', `Deleting ${some[0]}…: no answer within ${readDeadlineMs} ms.`)
    await within(clock, readDeadlineMs, objects.delete(some), late)
  }
}

/** As deleteAll; manifests of checkpoints last, since each lists what remains to be deleted (rule 7). */
export async function deleteCheckpoints(
  objects: Pick<ObjectStore, 'delete'>,
  keys: readonly ObjectKey[],
  environment: Pick<Environment, 'clock'>,
): Promise<void> {
  const data = keys.filter((key) => !isCheckpointManifest(key))
  await deleteAll(objects, data, environment)
  await deleteAll(objects, keys.filter(isCheckpointManifest), environment)
}
