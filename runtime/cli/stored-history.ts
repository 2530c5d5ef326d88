// What HEAD and the history that coordinators have left tell of a job, read from its store by a command: nobody runs the job any more.

import { headKeeperOf, snapshotFolderIn } from '../local/local-jobs.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import type { StoredFigures } from '../rest/checkpoint-views.ts'
import type { Remembered } from '../rest/job-history.ts'
import { readHistory } from '../rest/stored-history.ts'
import { attachLocalStores } from '../storage/local-stores.ts'
import { commandError } from './errors.ts'
import type { Terminal } from './terminal.ts'

/** Of a job of which nothing is remembered. */
export const noHistory = 'No history of it is stored: a process that ends within seconds leaves none.'

/** Throws MR-L33 while its history is being written. */
export async function localRecord(
  stored: StoredJob,
  world: LocalWorld,
  terminal: Pick<Terminal, 'say'>,
): Promise<StoredFigures> {
  const { storeFolder } = stored
  const { files, environment } = world
  const head = await (await headKeeperOf(stored, world)).readBegun()
  const { objects } = attachLocalStores({ files, folder: storeFolder, environment })
  return { head, remembered: await rememberedIn(objects, terminal), locate: snapshotFolderIn(storeFolder) }
}

/** As `localRecord`, where the process config says. */
export async function remoteRecord(configFile: string, terminal: Pick<Terminal, 'say'>): Promise<StoredFigures> {
  // Clients of storage, which take as long to load as all else here.
  const { loadProcessConfig } = await import('../distributed/process-config.ts')
  const { openStores } = await import('../storage/open-stores.ts')
  const { HeadKeeper } = await import('../storage/head-keeper.ts')
  const files = new NodeFiles()
  const { storage } = await loadProcessConfig(configFile, files)
  const environment = realEnvironment({ log: () => undefined })
  const stores = await openStores({ storage, files, environment, probe: false })
  try {
    const head = await (await HeadKeeper.open(stores.head, environment)).readBegun()
    const remembered = await rememberedIn(stores.objects, terminal)
    return { head, remembered, locate: ({ path }) => stores.locate(path) }
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
