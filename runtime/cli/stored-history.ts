// What the coordinators of a job remembered, read from its store by a command: nobody runs the job any more.

import { attachLocalStores } from '../storage/local-stores.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import type { Remembered } from '../rest/job-history.ts'
import { readHistory } from '../rest/stored-history.ts'
import type { Terminal } from './terminal.ts'

/** undefined: there is none; a process that ended within seconds of its beginning leaves none. */
export async function localHistory(
  { storeFolder }: StoredJob,
  { files, environment }: LocalWorld,
  terminal: Pick<Terminal, 'say'>,
): Promise<Remembered | undefined> {
  const { objects } = attachLocalStores({ files, folder: storeFolder, environment })
  return (await readHistory({ store: objects, onUnreadable: saidTo(terminal) }))?.remembered
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
    return (await readHistory({ store: stores.objects, onUnreadable: saidTo(terminal) }))?.remembered
  } finally {
    await stores.close()
  }
}

function saidTo(terminal: Pick<Terminal, 'say'>): (error: unknown) => void {
  return (error) => terminal.say(`${(error as Error).message} An older history is looked for.`)
}
