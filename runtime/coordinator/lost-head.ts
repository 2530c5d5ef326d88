// HEAD of a job of which nothing is known yet. None is believed only where no checkpoint and no savepoint lies either.

import type { MillraceError } from '../base/errors.ts'
import type { Environment } from '../base/environment.ts'
import type { ObjectKey, ObjectStore, SavepointStore } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { CHECKPOINTS_PREFIX, SAVEPOINTS_PREFIX, savepointOfKey } from '../storage/paths.ts'
import { listed } from './store-calls.ts'

interface SnapshotStores {
  readonly store: Pick<ObjectStore, 'list'>
  readonly savepoints?: (Pick<SavepointStore, 'nameOf'> & { readonly objects: Pick<ObjectStore, 'list'> }) | undefined
  readonly environment: Pick<Environment, 'clock'>
}

/**
 * undefined only if there positively is none, and no checkpoint or savepoint of the job either: a job that began from empty where it has
 * one would repeat what that holds, under ids that were used before (rule 6). Throws MR-S16 for a store that holds one and no HEAD, and MR-S19
 * without HEAD for a job that goes on.
 */
export async function readUnlessLost(
  keeper: Pick<HeadKeeper, 'read'>,
  {
    goesOn = false,
    ...stores
  }: SnapshotStores & {
    /** Whoever asks has seen its HEAD before. */
    readonly goesOn?: boolean | undefined
  },
): Promise<Head | undefined> {
  const head = await keeper.read()
  if (head !== undefined) return head
  const left = await anyOfSnapshots(stores)
  // Behind the list: another command's first start writes HEAD, and after that its first checkpoint or savepoint.
  const later = await keeper.read()
  if (later === undefined && goesOn) throw lostHead(left)
  if (later === undefined && left !== undefined) throw storageError('MR-S16', `The store holds ${left}.`)
  return later
}

/** Of a job whose HEAD was seen before. */
export function lostHead(left?: ObjectKey): MillraceError {
  return storageError('MR-S19', left === undefined ? 'The store holds no snapshot.' : `The store holds ${left}.`)
}

/** Savepoints as well: a job may take no others, and those outlive its checkpoints. One of another name may be anybody's copy. */
async function anyOfSnapshots({ store, savepoints, environment }: SnapshotStores): Promise<ObjectKey | undefined> {
  const [checkpoint] = await listed(store, CHECKPOINTS_PREFIX, environment)
  if (checkpoint !== undefined) return checkpoint
  const beside = await listed(store, SAVEPOINTS_PREFIX, environment)
  const savepoint = beside.find((key) => savepointOfKey(key) !== undefined)
  if (savepoint !== undefined || savepoints === undefined) return savepoint
  const elsewhere = await listed(savepoints.objects, SAVEPOINTS_PREFIX, environment)
  const other = elsewhere.find((key) => savepointOfKey(key) !== undefined)
  return other && savepoints.nameOf(other)
}
