// A job that has ended, and its coordinator with it, for tests: its process config, HEAD and history.

import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { incarnation } from '../base/ids.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import { encodeHistory } from '../rest/history-format.ts'
import type { Remembered } from '../rest/job-history.ts'
import { TestJob } from '../rest/test-job.ts'
import type { HeadStore, ObjectStore } from '../storage/contract.ts'
import type { Head } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { openStores } from '../storage/open-stores.ts'
import { historyKey } from '../storage/paths.ts'

const environment = realEnvironment({ log: () => undefined })

export interface EndedJob {
  /** HEAD is what it makes of a job that has just begun. */
  readonly change: (head: Head) => Head
  readonly remembered?: Remembered | undefined
}

/** Named by its process config in `folder`; resolves to the words that name it. */
export async function endedJob(
  folder: string,
  { start = 1, ...job }: EndedJob & { readonly start?: number },
): Promise<readonly string[]> {
  const file = (name: string): string => join(folder, name)
  const config = {
    version: 1,
    job: { id: 'orders', name: 'orders', start, file: file('job.ts') },
    storage: { checkpoints: `file://${folder}/store` },
    nats: { servers: ['nats://127.0.0.1:4222'] },
    coordinator: { workersAddress: '127.0.0.1:1', restAddress: `127.0.0.1:${await vacantPort()}` },
    tokens: { workerFile: file('worker'), ownerFile: file('owner'), readerFile: file('reader') },
  }
  await writeFile(file('process.json'), JSON.stringify(config))
  const stores = await openStores({ storage: config.storage, files: new NodeFiles(), environment, probe: true })
  await fillStores(stores, job)
  await stores.close()
  return ['--wait', '150', '--config', 'process.json']
}

export async function fillStores(
  { head, objects }: { readonly head: HeadStore; readonly objects: ObjectStore },
  { change, remembered }: EndedJob,
): Promise<void> {
  await (await HeadKeeper.open(head, environment)).begin(() => change(new TestJob().head))
  if (remembered !== undefined) await objects.create(historyKey(incarnation(1), 1), encodeHistory(remembered))
}

/** A port at which nobody listens for now. */
export async function vacantPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { readonly port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
