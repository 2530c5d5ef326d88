// Folders whose own entries survive a power loss: without that, a whole folder of synced files can vanish.

import type { FileSystem } from './contract.ts'
import { errorCodeOf } from './errors.ts'
import { parentOf } from './paths.ts'

/** Makes `path` and its parents and makes each entry durable. `made`: folders for which this process did it already; added to. */
export async function makeDurableFolder(files: FileSystem, path: string, made: Set<string>): Promise<void> {
  if (made.has(path) || path === '' || path === '/') return
  const parent = parentOf(path)
  await makeDurableFolder(files, parent, made)
  await files.makeDirectory(path)
  // Synced even if the folder was there: an earlier life may have died between making and syncing it.
  await syncParent(files, parent === '' ? '.' : parent)
  made.add(path)
}

/** A folder far above the store may be closed to us; then it is not one that we made entries in. */
async function syncParent(files: FileSystem, parent: string): Promise<void> {
  try {
    await files.sync(parent)
  } catch (error) {
    const code = errorCodeOf(error)
    if (code !== 'EACCES' && code !== 'EPERM') throw error
  }
}
