// What a job that is over has left in its stores beside what HEAD names: dropped checkpoints that were still to be deleted, and what was written for
// snapshots that never completed. A start that begins finds those of the starts before it (cleanup.ts); behind this one there may be none.
//
// Listed first, and told apart by a swap of HEAD that is won after it: what is listed was then written by this start, or by one before it, and
// nothing of them completes any more (rule 4).

import { InvariantError } from '../base/errors.ts'
import type { Start } from '../base/ids.ts'
import { objectsOf } from '../checkpoint/manifest.ts'
import type { SnapshotKind } from '../record/element.ts'
import type { ObjectKey } from '../storage/contract.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import {
  CHECKPOINTS_PREFIX,
  SAVEPOINTS_PREFIX,
  checkpointOfKey,
  isAbsoluteKey,
  isSavepointManifest,
  manifestKey,
  parentOf,
  savepointOfKey,
} from '../storage/paths.ts'
import { storeOfKind } from '../storage/savepoint-place.ts'
import { namedBy, withinCleanup } from './cleanup.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { discardDropped } from './discard-dropped.ts'
import { listed, unlistedManifests } from './listed.ts'
import { readManifest } from './restore.ts'

type Options = Pick<JobCoordinatorOptions, 'store' | 'savepoints' | 'foreign' | 'environment'>

const kinds = ['checkpoint', 'savepoint'] as const
const beginnings: Readonly<Record<SnapshotKind, string>> = {
  checkpoint: CHECKPOINTS_PREFIX,
  savepoint: SAVEPOINTS_PREFIX,
}
/** One request of S3. */
const deletedAtOnce = 1000

/** Its tasks are gone. Does nothing for an end that another start may follow of itself. Rejects for a broken invariant alone: it costs space only. */
export async function discardLeftovers(options: Options, keeper: HeadKeeper, start: Start): Promise<void> {
  try {
    await discardAll(options, keeper, start)
  } catch (error) {
    if (error instanceof InvariantError) throw error
    options.environment.log(
      'warn',
      'files of snapshots that never completed may be left; millrace admin sweep takes them away',
      {
        error: String(error),
      },
    )
  }
}

async function discardAll(options: Options, keeper: HeadKeeper, start: Start): Promise<void> {
  const { store, environment } = options
  const first = await keeper.readBegun()
  const isOver = (head: Head): boolean =>
    head.start === start &&
    head.incarnation === first.incarnation &&
    ['finished', 'failed', 'cancelled'].includes(head.end.kind)
  if (!isOver(first)) return
  const left = new Map<SnapshotKind, readonly ObjectKey[]>()
  for (const kind of kinds) {
    const { objects } = storeOfKind(kind, options)
    const keys = await listed(objects, beginnings[kind], environment)
    const unlisted = kind === 'savepoint' ? await unlistedManifests(objects, keys, environment) : []
    left.set(kind, incomplete(kind, [...keys, ...unlisted], first))
  }
  if (first.discarding.length === 0 && [...left.values()].every((keys) => keys.length === 0)) return
  const head = await keeper.amend((newest) => newest)
  if (!isOver(head)) return
  const stillUsed = await usedBy(options, head)
  if (head.discarding.length > 0)
    await discardDropped({ head, keeper, store, environment, stillUsed, of: 'a dropped checkpoint' })
  for (const [kind, keys] of left) {
    const { objects } = storeOfKind(kind, options)
    // Data first, the manifest last, should one have been written: it lists what remains to be deleted (rule 7).
    const [manifests, data] = [keys.filter(isManifest), keys.filter((key) => !isManifest(key) && !stillUsed.has(key))]
    for (const some of [...chunks(data), ...chunks(manifests)])
      await withinCleanup(environment.clock, objects.delete(some))
  }
}

/** Of folders that are no snapshot: HEAD names no such checkpoint, and a savepoint has no manifest. */
function incomplete(kind: SnapshotKind, keys: readonly ObjectKey[], head: Head): readonly ObjectKey[] {
  const named = new Set([...namedBy(head), ...head.discarding].map(({ path }) => path as string))
  const complete = new Set(keys.filter(isSavepointManifest).map(parentOf))
  return keys.filter((key) => {
    if (kind === 'savepoint') return savepointOfKey(key) !== undefined && !complete.has(parentOf(key))
    const id = checkpointOfKey(key)
    return id !== undefined && !named.has(manifestKey(id, 'checkpoint'))
  })
}

function isManifest(key: ObjectKey): boolean {
  const id = checkpointOfKey(key)
  return id !== undefined && key === manifestKey(id, 'checkpoint')
}

async function usedBy(options: Options, head: Head): Promise<ReadonlySet<ObjectKey>> {
  const used = new Set<ObjectKey>()
  for (const ref of namedBy(head)) {
    if (isAbsoluteKey(ref.path)) continue
    used.add(ref.path)
    for (const object of objectsOf(await readManifest(options, ref))) used.add(object)
  }
  return used
}

function chunks(keys: readonly ObjectKey[]): readonly (readonly ObjectKey[])[] {
  return Array.from({ length: Math.ceil(keys.length / deletedAtOnce) }, (_, index) =>
    keys.slice(index * deletedAtOnce, (index + 1) * deletedAtOnce),
  )
}
