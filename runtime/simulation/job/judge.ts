// What must hold when a job has ended: its outputs are exact, the store has what HEAD names, and nothing else where it says so.

import { objectsOf, decodeManifest } from '../../checkpoint/manifest.ts'
import type { LedgerEntry } from '../../connectors/ledger.ts'
import type { ObjectStore } from '../../storage/contract.ts'
import { restorePointOf } from '../../storage/head.ts'
import type { Head, ManifestRef } from '../../storage/head-contract.ts'
import { manifestKey, snapshotFolder } from '../../storage/paths.ts'
import type { SimDisk } from '../disk.ts'
import { filesFolder } from './graph.ts'
import type { JobCluster } from './cluster.ts'
import { isEndless, recordsOf } from './shape.ts'
import type { JobShape } from './shape.ts'

/** What was committed of each split reaches up to here; of a job of which nothing else is known. */
export function longestPrefix(shape: JobShape, entries: readonly LedgerEntry[]): (split: number) => number {
  if (!isEndless(shape)) return (split) => recordsOf(shape, split)
  const lengths = Array.from({ length: shape.splits }, () => 0)
  for (const { split, n } of entries) if (n >= (lengths[split] ?? Infinity)) lengths[split] = n + 1
  return (split) => lengths[split]!
}

/** Whether an at-least-once job may have repeated records: something went back to a checkpoint. Savepoints are exact. */
export function mayRepeat(cluster: JobCluster): boolean {
  return cluster.shape.mode !== 'exactly-once' && wentBack(cluster)
}

/** Whether anything began again from a restore point that lay behind what had come out. */
export function wentBack({ shape, starts, undisturbed }: JobCluster): boolean {
  // What runs on under another coordinator, or stops behind a checkpoint for another size, repeats nothing.
  return !(undisturbed && (starts === 1 || shape.rescaledBy === 'stop'))
}

/** Every object that a manifest named by HEAD needs is there (R10, R11, B14). */
export async function judgeStore(head: Head, store: ObjectStore): Promise<string[]> {
  const failures: string[] = []
  const point = restorePointOf(head)
  const named = [
    ...head.retained,
    ...(head.unconfirmed === undefined ? [] : [head.unconfirmed]),
    // What lies elsewhere is its owner's.
    ...(point.kind === 'manifest' && !point.manifest.path.includes(':') ? [point.manifest] : []),
  ]
  for (const { path } of named) {
    const bytes = await store.read(path)
    if (bytes === undefined) {
      failures.push(`HEAD names ${path}, which is not there.`)
      continue
    }
    for (const object of objectsOf(decodeManifest(bytes, path)))
      if ((await store.read(object)) === undefined) failures.push(`${path} needs ${object}, which is not there.`)
  }
  return failures
}

/**
 * A cancelled job that keeps nothing: of all checkpoints that ever completed nothing is left. Where a list was stale, an upload that no
 * manifest names may be: it was not shown, and waits for a sweep.
 */
export async function judgeCancelled(
  head: Head,
  completed: Iterable<ManifestRef>,
  { store, staleLists }: { readonly store: ObjectStore; readonly staleLists: boolean },
): Promise<string[]> {
  const failures: string[] = []
  const named = [...head.retained, ...head.discarding]
  if (named.length > 0)
    failures.push(`HEAD of the cancelled job still names ${named.map(({ path }) => path).join(', ')}.`)
  for (const { id, kind } of completed) {
    const there = await store.list(`${snapshotFolder(id, kind)}/`)
    const left = staleLists ? there.filter((key) => key === manifestKey(id, kind)) : there
    if (left.length > 0) failures.push(`The cancelled job has left ${left.slice(0, 3).join(', ')}.`)
  }
  return failures
}

/** What is in the visible files after the power went. */
export async function entriesInFiles(disk: SimDisk): Promise<LedgerEntry[]> {
  const { files } = disk
  const entries: LedgerEntry[] = []
  const decoder = new TextDecoder()
  for (const name of await files.list(filesFolder)) {
    if (!name.endsWith('.jsonl')) continue
    const lines = decoder.decode(await files.readFile(`${filesFolder}/${name}`)).split('\n')
    if (lines.pop() !== '') throw new Error(`${name} does not end with a line end`)
    for (const line of lines) entries.push(JSON.parse(line) as LedgerEntry)
  }
  return entries
}
