// Runs the job of tests/golden/v2 up to the snapshots that lie there: a checkpoint that was committed, a savepoint, and behind it a checkpoint
// whose completion nobody lived to commit.

import { checkpointId } from '../../runtime/base/ids.ts'
import { MemoryHeadStore, MemoryObjectStore } from '../../runtime/storage/memory-store.ts'
import type { MemoryFiles } from '../../runtime/storage/memory-files.ts'
import { manifestKey } from '../../runtime/storage/paths.ts'
import { GoldenCluster } from './v2-cluster.ts'
import { filesOf, folderOf, objectsOf } from './v2-files.ts'
import type { Folder } from './v2-files.ts'
import { outputFolder, rulesFile, rulesText } from './v2-job.ts'
import { Outside } from './v2-outside.ts'

export const jobName = 'golden'
export const parallelism = 2
export const label = 'version 2'

export interface Written {
  readonly head: Uint8Array
  readonly objects: Folder
  readonly out: Folder
}

/** With the file that its source of rules reads. */
export function goldenFiles(out: Folder = new Map()): Promise<MemoryFiles> {
  const [, folder, name] = rulesFile.split('/')
  return filesOf({ [`/${folder}`]: new Map([[name!, new TextEncoder().encode(rulesText)]]), [outputFolder]: out })
}

export async function writtenByToday(): Promise<Written> {
  const { cluster, store, head, files } = await running()
  const { coordinator } = cluster.life
  await cluster.readUntil(3)
  coordinator.checkpoint()
  await cluster.until('a checkpoint', () => cluster.completed.length === 1)
  await cluster.readUntil(6)
  const asked: { done?: boolean } = {}
  void coordinator.savepoint().then(() => (asked.done = true))
  await cluster.until('a savepoint', () => asked.done === true)
  const killed = cluster.failpoints.arm('coordinator.swap.after', { act: 'kill', skip: 0 })
  coordinator.checkpoint()
  await cluster.advance(1_000)
  if (!killed.happened || cluster.restarts.length > 0) throw new Error(`restarts: ${cluster.restarts.join(', ')}`)
  // Of the first checkpoint HEAD says that its files may go: they are gone.
  const objects = [...(await objectsOf(store))].filter(([name]) => !name.startsWith('chk-1/'))
  return {
    head: (await head.read())!.bytes,
    objects: new Map(objects),
    out: await folderOf(files, outputFolder),
  }
}

/** What the job gives out when nothing interrupts it. */
export async function uninterrupted(): Promise<readonly string[]> {
  const { cluster } = await running()
  await cluster.readUntil(6)
  const { outcome, results } = await cluster.toItsEnd()
  if (outcome.kind !== 'finished') throw new Error(`It ended as ${outcome.kind}.`)
  return results
}

/** With all rules read. */
async function running() {
  const store = new MemoryObjectStore()
  const head = new MemoryHeadStore()
  const files = await goldenFiles()
  const outside = new Outside(label)
  const cluster = new GoldenCluster({ name: jobName, outside, store, head, files, parallelism })
  const rules = (): readonly { readonly status: string }[] =>
    [...(cluster.life.coordinator.execution?.tasks.values() ?? [])].filter(({ task }) => task.vertex === 'rules')
  await cluster.until('the end of the rules', () => {
    const tasks = rules()
    return tasks.length > 0 && tasks.every(({ status }) => status === 'finished')
  })
  await cluster.advance(100)
  return { cluster, store, head, files }
}

/** Where the manifests lie among the objects. */
export const manifests = {
  savepoint: manifestKey(checkpointId(2), 'savepoint'),
  checkpoint: manifestKey(checkpointId(3), 'checkpoint'),
} as const
