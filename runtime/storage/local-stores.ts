// The stores of a local job in its folder: objects and HEAD side by side, probed.

import type { Environment } from '../base/environment.ts'
import type { FileSystem } from './contract.ts'
import { DirectoryHead } from './directory-head.ts'
import { DirectoryStore } from './directory-store.ts'
import { storageFailure } from './errors.ts'
import { inFirstLook } from './first-look.ts'
import { headFolder, joinPath, objectsFolder, probeHeadFolder } from './paths.ts'
import { probeStores } from './probe.ts'

export interface LocalStoresOptions {
  readonly files: FileSystem
  /** The job's folder, such as localStoreFolder(job) below a working folder. */
  readonly folder: string
  readonly environment: Environment
}

export interface LocalStores {
  readonly objects: DirectoryStore
  readonly head: DirectoryHead
}

export interface OpenedLocalStores extends LocalStores {
  /**
   * Takes away what earlier lives left half-written. Once the job is owned, not before: the same command given twice at the same moment
   * would take the other's writes away, and a command that is about to be refused those of a running job.
   */
  removeLeftovers(): Promise<void>
}

/** For the process that will own the job: probes the folder (MR-S06). Throws MR-S01 where it does not answer. */
export function openLocalStores(options: LocalStoresOptions): Promise<OpenedLocalStores> {
  return inFirstLook(options.environment.clock, `Opening ${options.folder}`, openAndProbe(options))
}

async function openAndProbe(options: LocalStoresOptions): Promise<OpenedLocalStores> {
  const stores = attachLocalStores(options)
  await stores.objects.open()
  const leftovers = await stores.objects.temporaries()
  const scratch = probeHeadFolder(options.folder, options.environment.random.id())
  try {
    await probeStores({
      objects: stores.objects,
      scratchHead: new DirectoryHead({ files: options.files, folder: scratch, environment: options.environment }),
      environment: options.environment,
    })
  } finally {
    await removeTree(options.files, scratch)
  }
  return { ...stores, removeLeftovers: () => stores.objects.removeTemporaries(leftovers) }
}

/** For slots and readers: the same folder, as another process opened it. */
export function attachLocalStores({ files, folder, environment }: LocalStoresOptions): LocalStores {
  return {
    objects: new DirectoryStore({ files, root: objectsFolder(folder), environment }),
    head: new DirectoryHead({ files, folder: headFolder(folder), environment }),
  }
}

async function removeTree(files: FileSystem, folder: string): Promise<void> {
  try {
    if (!(await files.exists(folder))) return
    for (const name of await files.list(folder)) {
      const path = joinPath(folder, name)
      // Only the probe's own two levels: files, and its folder of temporaries.
      if (name.startsWith('.')) for (const inner of await files.list(path)) await files.remove(joinPath(path, inner))
      await files.remove(path)
    }
    await files.remove(folder)
  } catch (error) {
    throw storageFailure(`Removing ${folder}`, error)
  }
}
