// A place that is for savepoints alone, such as a bucket that is backed up: laid out as a job's store is, without a HEAD. Nothing in it but `owner`
// says whose it is, and ids of savepoints are each job's own: two jobs that share one by mistake would take each other's for what is left of failed
// ones. So the first coordinator that begins with it writes there where its HEAD lies, and one of another job is refused.

import { posix } from 'node:path'
import { MillraceError } from '../base/errors.ts'
import type { SnapshotKind } from '../record/element.ts'
import type { ObjectStore, SavepointStore, StorageConfig } from './contract.ts'
import { storageError, storageErrors } from './errors.ts'
import { OWNER_KEY, parseStorageAddress, storageAddressText } from './paths.ts'
import type { StorageAddress } from './paths.ts'

const FORMAT = 1

/** Where snapshots of a kind are written. */
export function storeOfKind(
  kind: SnapshotKind,
  { store, savepoints }: { readonly store: ObjectStore; readonly savepoints?: SavepointStore | undefined },
): SavepointStore {
  return kind === 'savepoint' && savepoints !== undefined ? savepoints : { objects: store, nameOf: (key) => key }
}

/** undefined: beside the checkpoints. Throws MR-S39. */
export function savepointsAddress(storage: StorageConfig): StorageAddress | undefined {
  const { savepoints } = storage
  if (savepoints === undefined) return undefined
  try {
    const address = plain(parseStorageAddress(savepoints))
    return storageAddressText(address) === storeAddress(storage) ? undefined : address
  } catch (error) {
    throw aboutSavepoints(error, savepoints)
  }
}

/** Where the job's HEAD is, as its place for savepoints names it. */
export function storeAddress({ checkpoints }: StorageConfig): string {
  return storageAddressText(plain(parseStorageAddress(checkpoints)))
}

/** One folder has one name, as HEAD's names of what lies there are compared with those that people give. */
function plain(address: StorageAddress): StorageAddress {
  return address.kind === 's3' ? address : { kind: 'file', folder: posix.normalize(address.folder) }
}

/** The same error, saying which field it is about: the other store may be well. */
export function aboutSavepoints(error: unknown, place: string): unknown {
  if (!(error instanceof MillraceError) || !Object.hasOwn(storageErrors, error.code)) return error
  const { meaning } = storageErrors[error.code as keyof typeof storageErrors]
  const detail = error.description.slice(`${error.code} ${meaning} `.length)
  return storageError(error.code as keyof typeof storageErrors, `storage.savepoints, ${place}: ${detail}`, error)
}

/** The address of the store that has the HEAD of the job whose savepoints these are. undefined: it says nothing, as a job's own store does. */
export async function ownerOf(objects: Pick<ObjectStore, 'read'>): Promise<string | undefined> {
  const bytes = await objects.read(OWNER_KEY)
  if (bytes === undefined) return undefined
  try {
    const owner = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) as Record<string, unknown>
    if (owner['format'] === FORMAT && typeof owner['store'] === 'string') return owner['store']
  } catch (error) {
    throw storageError('MR-S40', `Its ${OWNER_KEY} cannot be read.`, error)
  }
  throw storageError('MR-S40', `Its ${OWNER_KEY} is of another format than ${FORMAT}.`)
}

export interface Claim {
  readonly objects: ObjectStore
  /** Address of the store that has the job's HEAD. */
  readonly store: string
}

/** Before anything is written there. Throws MR-S40 for another job's. */
export async function claimSavepoints(claim: Claim): Promise<void> {
  const { objects, store } = claim
  const bytes = new TextEncoder().encode(JSON.stringify({ format: FORMAT, store }))
  if ((await objects.create(OWNER_KEY, bytes)) === 'created' || (await isClaimed(claim))) return
  throw storageError('MR-S01', `It says that ${OWNER_KEY} is there, and that it is not.`)
}

/** Throws MR-S40 for another job's. */
export async function isClaimed({ objects, store }: Claim): Promise<boolean> {
  const owner = await ownerOf(objects)
  if (owner === undefined || owner === store) return owner !== undefined
  throw storageError('MR-S40', `They are of the job in ${owner}; this one is in ${store}.`)
}
