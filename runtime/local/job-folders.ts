// The numbered folders of one local job (rule 28). It only reads.

import type { Environment } from '../base/environment.ts'
import type { FileSystem } from '../storage/contract.ts'
import { storageFailure } from '../storage/errors.ts'
import { inFirstLook } from '../storage/first-look.ts'
import { decodeHead } from '../storage/head-format.ts'
import type { NumberedFolder } from '../storage/local-identity.ts'
import { attachLocalStores } from '../storage/local-stores.ts'
import { joinPath, localJobId, localJobsFolder, localStoreFolder, parseLocalJobFolder } from '../storage/paths.ts'

export interface JobFolders {
  readonly files: FileSystem
  /** The working folder. */
  readonly folder: string
  /** Of the job, without a number. */
  readonly name: string
  readonly environment: Environment
}

/** With what their HEADs say; an unreadable one throws, it never counts as none. Throws MR-S01 where nothing answers. */
export function jobFolders(at: JobFolders): Promise<NumberedFolder[]> {
  return inFirstLook(at.environment.clock, `Looking for ${at.name} in ${at.folder}`, numberedFolders(at))
}

async function numberedFolders({ files, folder, name, environment }: JobFolders): Promise<NumberedFolder[]> {
  const numbered: NumberedFolder[] = []
  for (const entry of await entriesOf(files, joinPath(folder, localJobsFolder(name)))) {
    const number = parseLocalJobFolder(name, entry)
    if (number === undefined) continue
    const storeFolder = joinPath(folder, localStoreFolder(localJobId(name, number)))
    const { head: store } = attachLocalStores({ files, folder: storeFolder, environment })
    const read = await store.read()
    const head = read === undefined ? undefined : decodeHead(read.bytes, `HEAD ${read.version.token} in ${storeFolder}`)
    numbered.push({ number, head })
  }
  return numbered
}

/** [] only if the folder is positively not there. */
async function entriesOf(files: FileSystem, folder: string): Promise<string[]> {
  try {
    return (await files.exists(folder)) ? await files.list(folder) : []
  } catch (error) {
    throw storageFailure(`Reading ${folder}`, error)
  }
}
