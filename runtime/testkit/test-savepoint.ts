// A savepoint in a test's hand: a value of its own, which outlives the cluster that it was taken in and begins jobs in others.

import type { FileSystem, ObjectStore } from '../storage/contract.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import { fileKey, joinPath, snapshotFolder } from '../storage/paths.ts'

export interface Savepoint {
  readonly id: number
  /** Taken by `stop({ drain: true })`: event time has ended in it, and it is refused as a beginning unless `allowDrained`. */
  readonly drained: boolean
  readonly manifest: ManifestRef
  /** By the names of its objects. */
  readonly objects: ReadonlyMap<string, Uint8Array>
}

/** Everything that the savepoint consists of: it names nothing outside of its folder. */
export async function takeOut(store: ObjectStore, manifest: ManifestRef): Promise<Savepoint> {
  const folder = `${snapshotFolder(manifest.id, manifest.kind)}/`
  const objects = new Map<string, Uint8Array>()
  for (const key of await store.list(folder)) objects.set(key.slice(folder.length), (await store.read(key))!)
  return { id: manifest.id, drained: manifest.drained === true, manifest, objects }
}

/** Puts it where a job may begin from it; `folder` is absolute and there is nothing yet. Returns how a new start names it. */
export async function putDown(savepoint: Savepoint, files: FileSystem, folder: string): Promise<ManifestRef> {
  await files.makeDirectory(folder)
  for (const [name, bytes] of savepoint.objects) await files.writeNew(joinPath(folder, name), bytes)
  const manifest = savepoint.manifest.path.slice(savepoint.manifest.path.lastIndexOf('/') + 1)
  return { ...savepoint.manifest, path: fileKey(joinPath(folder, manifest)) }
}
