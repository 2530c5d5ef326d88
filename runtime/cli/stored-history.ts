// What the coordinators of a job remembered, read from its store by a command: nobody runs the job any more.

import { attachLocalStores } from '../storage/local-stores.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import type { Remembered } from '../rest/job-history.ts'
import { readHistory } from '../rest/stored-history.ts'
import { commandError } from './errors.ts'
import type { Terminal } from './terminal.ts'

/** undefined: there is none; a process that ended within seconds of its beginning leaves none. Throws MR-L33. */
export async function localHistory(
  { storeFolder }: StoredJob,
  { files, environment }: LocalWorld,
  terminal: Pick<Terminal, 'say'>,
): Promise<Remembered | undefined> {
  const { objects } = attachLocalStores({ files, folder: storeFolder, environment })
  return rememberedIn(objects, terminal)
}

/** As `localHistory`, where the process config says. */
export async function remoteHistory(
  configFile: string,
  terminal: Pick<Terminal, 'say'>,
): Promise<Remembered | undefined> {
  // Clients of storage, which take as long to load as all else here.
  const { loadProcessConfig } = await import('../distributed/process-config.ts')
  const { openStores } = await import('../storage/open-stores.ts')
  const files = new NodeFiles()
  const { storage } = await loadProcessConfig(configFile, files)
  const environment = realEnvironment({ log: () => undefined })
  const stores = await openStores({ storage, files, environment, probe: false })
  try {
    return await rememberedIn(stores.objects, terminal)
  } finally {
    await stores.close()
  }
}

/** Throws MR-L33 while somebody writes it: that is not to have none. */
async function rememberedIn(
  store: Parameters<typeof readHistory>[0]['store'],
  terminal: Pick<Terminal, 'say'>,
): Promise<Remembered | undefined> {
  const onUnreadable = (error: unknown): void =>
    terminal.say(`${(error as Error).message} An older history is looked for.`)
  const history = await readHistory({ store, onUnreadable })
  if (history === undefined) throw commandError('MR-L33', 'Its history is being written all the while.')
  return history.remembered
}
