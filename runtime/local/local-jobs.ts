// The local jobs below a working folder, as their HEADs tell of them. It only reads.

import type { Environment } from '../base/environment.ts'
import { jobId } from '../base/ids.ts'
import type { JobId } from '../base/ids.ts'
import type { FileSystem } from '../storage/contract.ts'
import { storageFailure } from '../storage/errors.ts'
import { inFirstLook } from '../storage/first-look.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { attachLocalStores } from '../storage/local-stores.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import {
  LOCAL_ROOT,
  fileKey,
  headFolder,
  isAbsoluteKey,
  joinPath,
  localStoreFolder,
  objectsFolder,
  parentOf,
  parseFileKey,
} from '../storage/paths.ts'

export interface LocalWorld {
  readonly files: FileSystem
  readonly environment: Environment
  /** The working folder, absolute. */
  readonly folder: string
}

export interface StoredJob {
  readonly id: JobId
  /** Absolute. */
  readonly storeFolder: string
}

/** Those that have a store, by id. Throws where a folder cannot be read, MR-S01 also where nothing answers. */
export function storedJobs(world: LocalWorld): Promise<StoredJob[]> {
  return inFirstLook(world.environment.clock, `Looking for jobs in ${world.folder}`, jobsBelow(world))
}

async function jobsBelow({ files, folder }: LocalWorld): Promise<StoredJob[]> {
  const root = joinPath(folder, LOCAL_ROOT)
  const found: StoredJob[] = []
  try {
    for (const name of await foldersIn(files, root)) {
      // A namespace's jobs lie one deeper; it may have a job's name, and then be both.
      const ids = [name, ...(await foldersIn(files, joinPath(root, name))).map((inner) => `${name}/${inner}`)]
      for (const id of ids) {
        if (!(await files.exists(headFolder(joinPath(root, id))))) continue
        found.push({ id: jobId(id), storeFolder: joinPath(folder, localStoreFolder(jobId(id))) })
      }
    }
  } catch (error) {
    throw storageFailure(`Looking for jobs in ${root}`, error)
  }
  return found
}

/** Of the job's HEAD alone; it can be read at any time, and amended where a rule allows it. */
export function headKeeperOf(
  { storeFolder }: StoredJob,
  { files, environment }: Omit<LocalWorld, 'folder'>,
): Promise<HeadKeeper> {
  return HeadKeeper.open(attachLocalStores({ files, folder: storeFolder, environment }).head, environment)
}

/** The absolute folder of a checkpoint or savepoint that the job's HEAD names. */
export function snapshotFolderIn(storeFolder: string): (manifest: ManifestRef) => string {
  return ({ path }) =>
    parentOf(parseFileKey(isAbsoluteKey(path) ? path : fileKey(joinPath(objectsFolder(storeFolder), path))))
}

/** [] only if it positively is no folder. Names that begin with a dot are nobody's job. */
async function foldersIn(files: FileSystem, folder: string): Promise<string[]> {
  try {
    return (await files.list(folder)).filter((name) => !name.startsWith('.'))
  } catch (error) {
    const { code } = error as { readonly code?: string }
    if (code === 'ENOENT' || code === 'ENOTDIR') return []
    throw error
  }
}
