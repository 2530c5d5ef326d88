// Takes away what no HEAD names: objects of snapshots that never completed, and open transactions of attempts that are gone (rule 24).
//
// No age is needed to tell garbage from work in progress, only an order: list first, then win a swap of HEAD that leaves its incarnation as
// it was before the list. A coordinator raises the incarnation before its job writes anything, so that everything listed was written
// by incarnations up to that one; and a completing swap that was still on its way when they ended can land no more (rule 4).
//
// - Where the start has ended, nothing of those incarnations can complete: what is listed and what HEAD does not name is garbage.
// - Where it has not, the word of the user is that nothing runs. It is not trusted with data: workers that outlived their coordinator would be
//   adopted by the next one (rule 25), with all that they have acknowledged. Only what belongs to ids below the newest completed
//   checkpoint goes then: that checkpoint was met by every subtask or holds its final state and all that it had pre-committed, so that
//   no later one names anything older which it does not name (coordinator/orphans.ts). A transaction that is open now was begun at
//   that checkpoint or later, and is named so (SinkContext.newestKnownCheckpoint). One named 0 may have been begun at any: so attempts named
//   their first transaction before they were told, and those may still run, or stand in snapshots that are pending.
//
// A savepoint that has its manifest is the user's, whatever HEAD says: its objects, and its transactions too. Whether anybody has put out
// again what they hold cannot be told here, and where nobody has (the job ended before its next checkpoint) they are the only copy.

import { within } from '../base/deadline.ts'
import { MillraceError } from '../base/errors.ts'
import type { CheckpointId } from '../base/ids.ts'
import { committablesOf } from '../checkpoint/assignment.ts'
import { objectsOf } from '../checkpoint/manifest.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import type { Committer } from '../connectors/contract.ts'
import { cleanupDeadlineMs, namedBy, withinCleanup } from '../coordinator/cleanup.ts'
import { committersOf } from '../coordinator/commits.ts'
import { discardDropped } from '../coordinator/discard-dropped.ts'
import { deleteAll, deleteCheckpoints, isThere, listed, unlistedManifests } from '../coordinator/store-calls.ts'
import { readManifest } from '../coordinator/restore.ts'
import type { ManifestPlace } from '../coordinator/restore.ts'
import type { JobGraph } from '../job/contract.ts'
import type { FileSystem, ObjectKey } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { restorePointOf } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import {
  CHECKPOINTS_PREFIX,
  SAVEPOINTS_PREFIX,
  SHARED_PREFIX,
  checkpointOfKey,
  isAbsoluteKey,
  isSavepointManifest,
  manifestKey,
  parseTransactionName,
  savepointOfKey,
} from '../storage/paths.ts'
import { findHead, isClaimed, sourcesOf } from './admin-world.ts'
import type { AdminWorld } from './admin-world.ts'
import type { SinkTransactions } from './commit.ts'
import { adminError } from './errors.ts'

export interface SweepRequest {
  /** The user knows that neither coordinator nor workers run, though HEAD shows no end. */
  readonly jobIsDown: boolean
  /** The job's code, for the transactions of its sinks; undefined: only objects. */
  readonly code: { readonly graph: JobGraph; readonly files: FileSystem } | undefined
  /** false: only say what would be done. */
  readonly apply: boolean
}

export interface Garbage {
  /** Dropped checkpoints that HEAD was discarding. */
  readonly discarding: readonly CheckpointId[]
  /** That nothing names. */
  readonly objects: readonly ObjectKey[]
  /** In the place for savepoints, by their keys there, of savepoints that were never completed. */
  readonly elsewhere: readonly ObjectKey[]
  /** By sink. */
  readonly transactions: readonly SinkTransactions[]
}

export type Swept =
  /** There positively is no HEAD, and no checkpoint or savepoint. */
  | { readonly outcome: 'none' }
  | { readonly outcome: 'nothing to do' | 'would do' | 'done'; readonly head: Head; readonly garbage: Garbage }

/** Throws MR-A02, MR-A03, MR-A08, MR-A10, MR-O20 for a manifest that HEAD names and that cannot be read, what committers say, and what findHead does. */
export async function sweepJob(world: AdminWorld, { jobIsDown, code, apply }: SweepRequest): Promise<Swept> {
  const { keeper, head: first } = await findHead(world)
  if (first === undefined) return { outcome: 'none' }
  refuseRunning(first, jobIsDown)
  const committers = code === undefined ? new Map() : committersOf({ ...code, ...world, job: first.job })
  const existing = await listEverything(world, committers)
  const check = (now: Head): Head => {
    if (now.incarnation !== first.incarnation)
      throw adminError(
        'MR-A03',
        `HEAD of ${now.job} was at incarnation ${first.incarnation} and is at ${now.incarnation}.`,
      )
    refuseRunning(now, jobIsDown)
    return now
  }
  const now = check(await keeper.readBegun())
  const needsOf = needsReader(world)
  const garbage = garbageIn(now, await namedIn({ world, head: now, existing, needsOf }), existing)
  if (apply && now.end.kind !== 'none') await world.stores.removeLeftovers()
  if (isEmpty(garbage)) return { outcome: 'nothing to do', head: now, garbage }
  if (!apply) return { outcome: 'would do', head: now, garbage }
  // What is deleted is told by the HEAD that this swap has won, not by the one that was read before it.
  const settled = await keeper.amend(check)
  const named = await namedIn({ world, head: settled, existing, needsOf })
  const collected = garbageIn(settled, named, existing)
  await collect(world, { keeper, head: settled, named, garbage: collected, committers })
  return { outcome: 'done', head: await keeper.readBegun(), garbage: collected }
}

function refuseRunning({ job, start, end }: Head, jobIsDown: boolean): void {
  if (end.kind === 'none' && !jobIsDown) throw adminError('MR-A02', `${job}, start ${start}.`)
}

interface Existing {
  /** Of the job's store. */
  readonly objects: readonly ObjectKey[]
  /** Of its place for savepoints. */
  readonly elsewhere: readonly ObjectKey[]
  readonly transactions: readonly SinkTransactions[]
}

async function listEverything(
  { stores, environment }: AdminWorld,
  committers: ReadonlyMap<string, Committer>,
): Promise<Existing> {
  const objects: ObjectKey[] = []
  // What has another beginning is not of snapshots: nothing here knows when it may go.
  for (const prefix of [CHECKPOINTS_PREFIX, SAVEPOINTS_PREFIX, SHARED_PREFIX])
    objects.push(...(await listed(stores.objects, prefix, environment)))
  const place = stores.savepoints
  // A place that no coordinator of the job has begun with is not the job's.
  const isOurs = place !== undefined && (await isClaimed(place, environment))
  const elsewhere = isOurs ? await listed(place.objects, SAVEPOINTS_PREFIX, environment) : []
  objects.push(...(await unlistedManifests(stores.objects, objects, environment)))
  if (isOurs) elsewhere.push(...(await unlistedManifests(place.objects, elsewhere, environment)))
  const transactions: SinkTransactions[] = []
  for (const [uid, committer] of committers) {
    const late = () =>
      storageError('MR-S01', `Listing transactions of ${uid}: no answer within ${cleanupDeadlineMs} ms.`)
    const names = await within(environment.clock, cleanupDeadlineMs, committer.list(), late)
    transactions.push({ uid, transactions: names })
  }
  return { objects, elsewhere, transactions }
}

/** What must stay because of a manifest, or of several. */
interface Needs {
  readonly objects: ReadonlySet<ObjectKey>
  readonly transactions: ReadonlySet<string>
}

function garbageIn(head: Head, named: Needs, existing: Existing): Garbage {
  const limit = limitOf(head)
  const discarding = new Set(head.discarding.map(({ id }) => id))
  const savepoints = savepointsIn(existing.objects)
  const savepointsElsewhere = savepointsIn(existing.elsewhere)
  const elsewhere = existing.elsewhere.filter((key) => {
    const id = savepointOfKey(key)
    return id !== undefined && id < limit && !savepointsElsewhere.has(id)
  })
  const objects = existing.objects.filter((key) => {
    if (named.objects.has(key)) return false
    const checkpoint = checkpointOfKey(key)
    if (checkpoint !== undefined) return checkpoint < limit && !discarding.has(checkpoint)
    const savepoint = savepointOfKey(key)
    if (savepoint !== undefined) return savepoint < limit && !savepoints.has(savepoint)
    // Data that checkpoints share has no id.
    return key.startsWith(SHARED_PREFIX) && limit === Infinity
  })
  const transactions = existing.transactions.map(({ uid, transactions: names }) => ({
    uid,
    transactions: names.filter((name) => !named.transactions.has(name) && isLeftover(name, { head, uid, limit })),
  }))
  return {
    discarding: [...discarding],
    objects,
    elsewhere,
    transactions: transactions.filter(({ transactions: names }) => names.length > 0),
  }
}

/** Those that have their manifest. */
function savepointsIn(objects: readonly ObjectKey[]): ReadonlySet<CheckpointId> {
  return new Set(
    objects.flatMap((key) => {
      const id = savepointOfKey(key)
      return id !== undefined && key === manifestKey(id, 'savepoint') ? [id] : []
    }),
  )
}

/** Snapshots below it are over for good. */
function limitOf(head: Head): number {
  if (head.end.kind !== 'none') return Infinity
  const point = restorePointOf(head)
  return point.kind === 'manifest' ? point.manifest.id : 0
}

/** Only the job's own, of incarnations that are over. */
function isLeftover(
  name: string,
  { head, uid, limit }: { readonly head: Head; readonly uid: string; readonly limit: number },
): boolean {
  const identity = parseTransactionName(name)
  if (identity === undefined || identity.job !== head.job || identity.uid !== uid) return false
  if (identity.attempt.incarnation > head.incarnation) return false
  return limit === Infinity || (identity.checkpoint > 0 && identity.checkpoint < limit)
}

interface Naming {
  readonly world: AdminWorld
  readonly head: Head
  readonly existing: Existing
  readonly needsOf: (place: ManifestPlace) => Promise<Needs>
}

async function namedIn({ world, head, existing, needsOf }: Naming): Promise<Needs> {
  const objects = new Set<ObjectKey>()
  const transactions = new Set<string>()
  for (const ref of namedBy(head)) {
    const needs = await needsOf(ref)
    for (const object of needs.objects) objects.add(object)
    for (const transaction of needs.transactions) transactions.add(transaction)
  }
  // Without any transaction a damaged savepoint is no reason to keep objects of others.
  const hasAny = existing.transactions.some(({ transactions: names }) => names.length > 0)
  for (const path of hasAny ? await savepointsThere(world, head, existing) : [])
    for (const transaction of (await savepointNeeds(path, needsOf)).transactions) transactions.add(transaction)
  return { objects, transactions }
}

/** Manifests: in the job's store, in its place for savepoints, and what HEAD tells of, also in earlier places. */
async function savepointsThere(
  { stores, environment }: AdminWorld,
  head: Head,
  existing: Existing,
): Promise<ObjectKey[]> {
  const there = [
    ...existing.objects.filter(isSavepointManifest),
    ...existing.elsewhere.filter(isSavepointManifest).map((key) => stores.savepoints!.nameOf(key)),
  ]
  for (const { manifest } of head.savepointResults) {
    if (manifest === undefined || there.includes(manifest.path)) continue
    const { path } = manifest
    const store = isAbsoluteKey(path) ? stores.foreign : stores.objects
    // The user's: it may be gone. In the job's own store it is looked for as well, since a list may lag behind.
    if (await isThere(store, path, environment)) there.push(path)
  }
  return there
}

/** Unknown is not none: one that cannot be read may hold any transaction. */
async function savepointNeeds(path: ObjectKey, needsOf: Naming['needsOf']): Promise<Needs> {
  try {
    return await needsOf({ path })
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'MR-O20') throw adminError('MR-A10', `${path}.`, error)
    throw error
  }
}

/** What is at a manifest's path never changes: HEAD before and after the swap names mostly the same ones, and each is read once. */
function needsReader(world: AdminWorld): Naming['needsOf'] {
  const known = new Map<ObjectKey, Needs>()
  return async (place) => {
    const needs = known.get(place.path) ?? needsIn(place, await readManifest(sourcesOf(world), place))
    known.set(place.path, needs)
    return needs
  }
}

function needsIn({ path }: ManifestPlace, manifest: Manifest): Needs {
  const transactions = [...committablesOf(manifest).values()].flat().map(({ transaction }) => transaction)
  // Outside of the store nothing is listed, and nothing needs protection.
  const objects = isAbsoluteKey(path) ? [] : [path, ...objectsOf(manifest)]
  return { objects: new Set(objects), transactions: new Set(transactions) }
}

function isEmpty({ discarding, objects, elsewhere, transactions }: Garbage): boolean {
  return discarding.length + objects.length + elsewhere.length + transactions.length === 0
}

interface Collecting {
  readonly keeper: HeadKeeper
  /** Settled. */
  readonly head: Head
  readonly named: Needs
  readonly garbage: Garbage
  readonly committers: ReadonlyMap<string, Committer>
}

async function collect(world: AdminWorld, collecting: Collecting): Promise<void> {
  const { stores, environment } = world
  const { garbage, committers } = collecting
  await discard(world, collecting)
  await deleteCheckpoints(stores.objects, garbage.objects, environment)
  if (garbage.elsewhere.length > 0) await deleteAll(stores.savepoints!.objects, garbage.elsewhere, environment)
  for (const { uid, transactions } of garbage.transactions)
    await withinCleanup(environment.clock, committers.get(uid)!.abort(transactions))
}

/** What a completing swap has dropped and nobody was left to delete. */
async function discard(
  { stores, environment }: AdminWorld,
  { keeper, head, named }: Pick<Collecting, 'keeper' | 'head' | 'named'>,
): Promise<void> {
  if (head.discarding.length === 0) return
  const dropped = { head, keeper, store: stores.objects, environment, stillUsed: named.objects }
  const gone = await discardDropped({ ...dropped, of: 'a dropped checkpoint' })
  const left = head.discarding.filter(({ id }) => !gone.includes(id))
  if (left.length > 0) throw adminError('MR-A08', `Left: ${left.map(({ path }) => path).join(', ')}.`)
}
