// What a start is to begin from (`--from PATH`, `job.restore.from`): what lies there, and whether a job may begin from it. Read only: what it
// finds belongs to somebody else.

import type { Environment } from '../base/environment.ts'
import { decodeManifest } from '../checkpoint/manifest.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import type { FileSystem, OpenedStores, StorageConfig } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { inFirstLook } from '../storage/first-look.ts'
import { savepointOfEnd } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { decodeHead } from '../storage/head-format.ts'
import { openStores } from '../storage/open-stores.ts'
import {
  fileKey,
  isAbsoluteKey,
  isSnapshotFolder,
  manifestKey,
  parentOf,
  parseFileKey,
  parseS3Key,
  snapshotFolder,
} from '../storage/paths.ts'
import type { SnapshotPlace } from '../storage/paths.ts'
import { ownerOf } from '../storage/savepoint-place.ts'

export interface FoundRestorePoint {
  /** `path`: as HEAD of the job that is to begin there names it. */
  readonly ref: ManifestRef
  /** HEAD of its own job shows that its transactions are committed. */
  readonly committed: boolean
}

export interface RestorePath {
  /** By the folder of a savepoint or checkpoint, or the `_metadata` in it. */
  readonly place: SnapshotPlace
  /** Of the job that is to begin there. */
  readonly storage: StorageConfig
  readonly stores: Pick<OpenedStores, 'foreign' | 'locate'>
  readonly files: FileSystem
  readonly environment: Environment
}

/** Throws MR-S17 (nothing there to begin from), MR-S18 (a checkpoint that no HEAD retains), MR-C01 to MR-C04 (its manifest), MR-S39, MR-S01. */
export function findRestorePoint(at: RestorePath): Promise<FoundRestorePoint> {
  return inFirstLook(at.environment.clock, `Looking at ${nameOf(at.place)}`, restorePointAt(at))
}

async function restorePointAt(at: RestorePath): Promise<FoundRestorePoint> {
  const manifest = await manifestAt(at)
  const head = await headAround(at, manifest)
  const key = manifestKey(manifest.id, manifest.kind)
  const retained = head?.retained.find(({ path }) => path === key)
  if (manifest.kind === 'checkpoint' && retained === undefined) throw notRetained(nameOf(at.place), manifest, head)
  // HEAD names what lies in the job's own store by its key there.
  const isOwn = at.stores.locate(key) === parentOf(nameOf(at.place))
  return refTo({ manifest, retained, head, path: isOwn ? key : at.place.manifest, where: at.place.manifest })
}

/** `retained`: as the HEAD of the job that made it names it. `path`: as the job that begins there is to name it. `where`: absolute. */
function refTo({
  manifest,
  retained,
  head,
  path,
  where,
}: {
  readonly manifest: Manifest
  readonly retained: ManifestRef | undefined
  readonly head: Head | undefined
  readonly path: ManifestRef['path']
  readonly where: ManifestRef['path']
}): FoundRestorePoint {
  const { id, kind, start, bytes, drained } = manifest
  // When a savepoint completed stands in its job's HEAD alone, and may be known no more.
  const completedAtMs = retained?.completedAtMs ?? 0
  return {
    ref: { id, kind, path, start, completedAtMs, bytes, ...(drained === true && { drained }) },
    committed:
      head !== undefined && head.unconfirmed === undefined && wasPermitted(head, [manifestKey(id, kind), where]),
  }
}

async function manifestAt({ place, stores }: RestorePath): Promise<Manifest> {
  const path = nameOf(place)
  const bytes = await stores.foreign.read(place.manifest)
  if (bytes === undefined) throw storageError('MR-S17', `${path} is not there.`)
  const manifest = decodeManifest(bytes, path)
  const folder = snapshotFolder(manifest.id, manifest.kind)
  if (place.storeFolder !== undefined && isSnapshotFolder(place.folder) && place.folder !== folder)
    throw storageError('MR-S17', `${path} is that of ${folder}: give the copy a name that no snapshot of the job has.`)
  return manifest
}

/** HEAD of the job that made it, if it still lies in that job's store, or in its place for savepoints. */
async function headAround(at: RestorePath, manifest: Manifest): Promise<Head | undefined> {
  const { folder, storeFolder } = at.place
  if (storeFolder === undefined || folder !== snapshotFolder(manifest.id, manifest.kind)) return undefined
  const around = isAbsoluteKey(storeFolder) ? storeFolder : fileKey(storeFolder)
  try {
    const isSavepoint = manifest.kind === 'savepoint'
    const owner = isSavepoint ? await inStore(at, around, ({ objects }) => ownerOf(objects)) : undefined
    return await inStore(at, owner ?? around, async ({ head: store }) => {
      const read = await store.read()
      const head =
        read === undefined ? undefined : decodeHead(read.bytes, `HEAD ${read.version.token} in ${storeFolder}`)
      return head?.job === manifest.job ? head : undefined
    })
  } catch (error) {
    // A savepoint stands for itself: it is what is left to begin from when the rest of the store is lost.
    if (manifest.kind === 'savepoint') return undefined
    throw error
  }
}

async function inStore<T>(
  { storage: { s3 }, files, environment }: RestorePath,
  checkpoints: string,
  look: (stores: OpenedStores) => Promise<T>,
): Promise<T> {
  const storage = { checkpoints, ...(s3 !== undefined && { s3 }) }
  const stores = await openStores({ storage, files, environment, probe: false })
  try {
    return await look(stores)
  } finally {
    await stores.close()
  }
}

/** A checkpoint completed by the swap that permits it; of a savepoint only a stop with it, or a start from it, is such a swap. */
function wasPermitted({ retained, end, restoredFrom }: Head, names: readonly ManifestRef['path'][]): boolean {
  const savepoint = savepointOfEnd(end)
  const points = [
    ...retained,
    ...(savepoint === undefined ? [] : [savepoint]),
    ...(restoredFrom.kind === 'manifest' ? [restoredFrom.manifest] : []),
  ]
  return points.some(({ path }) => names.includes(path))
}

function notRetained(path: string, { id, job }: Manifest, head: Head | undefined): Error {
  const what = `${path} is of checkpoint ${id} of ${job}`
  if (head === undefined) return storageError('MR-S18', `${what}, and lies outside of the store of that job.`)
  const ids = head.retained.map((manifest) => manifest.id).join(', ')
  return storageError('MR-S18', `${what}, whose HEAD retains ${ids || 'none'}.`)
}

/** Of its manifest, for people: an absolute path, or s3://bucket/key. */
function nameOf({ manifest }: SnapshotPlace): string {
  return parseS3Key(manifest) === undefined ? parseFileKey(manifest) : manifest
}
