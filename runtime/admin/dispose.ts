// Takes away what no job needs any more: a savepoint, whole, or the checkpoints of a job that is over for good.

import { within } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import type { CheckpointId } from '../base/ids.ts'
import { decodeManifest } from '../checkpoint/manifest.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import { discardAllOfCancelled } from '../coordinator/discard-cancelled.ts'
import { deleteAll, listed } from '../coordinator/store-calls.ts'
import { readDeadlineMs } from '../coordinator/restore.ts'
import type { HeadStore, ObjectKey, ObjectStore } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { discardCancelled, newestCompletedId, requiredRestorePoint } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { isOfSavepoint, manifestKeyOfFolder } from '../storage/paths.ts'
import { findHead } from './admin-world.ts'
import type { AdminWorld } from './admin-world.ts'
import { adminError } from './errors.ts'

/** A savepoint's folder, and what it lies in. */
export interface SavepointPlace {
  /** As a person names it: s3://…, or an absolute path. */
  readonly folder: string
  /** The folder's name in `objects`. */
  readonly name: string
  readonly objects: Pick<ObjectStore, 'read' | 'list' | 'delete'>
  /** Whose store `objects` is: this job's, another one's (with its HEAD), or none, as a copy's. */
  readonly owner: 'this job' | OtherOwner | 'none'
}

/** Perhaps this very job: its place for savepoints may be another one by now, or be named in another way. */
export interface OtherOwner {
  readonly head: HeadStore
  /** `objects` is for the owner's savepoints alone, and HEAD names what lies there absolutely. */
  readonly isPlace: boolean
}

export interface DisposeRequest {
  readonly place: SavepointPlace
  /** Also one that another job made. */
  readonly foreign: boolean
  /** false: only say what would be done. */
  readonly apply: boolean
}

export type Disposed =
  /** There positively is nothing in the folder. */
  { readonly outcome: 'nothing to do' } | { readonly outcome: 'would do' | 'done'; readonly objects: readonly string[] }

/**
 * Data first, the manifest last: until that is gone the same call finishes what was begun. Throws MR-A04 for one that HEAD of its job, or of
 * the job in whose store it lies, needs; MR-A05, MR-A06, MR-C01 to MR-C04, and what findHead says. Who begins a job from it at this very
 * moment is refused (MR-C54), or fails in reading it: that nobody does is the user's to know, whose it is.
 */
export async function disposeSavepoint(
  world: AdminWorld,
  { place, foreign, apply }: DisposeRequest,
): Promise<Disposed> {
  const { environment, stores } = world
  const { objects, folder, name, owner } = place
  const keys = await listed(objects, `${name}/`, environment)
  if (keys.length === 0) return { outcome: 'nothing to do' }
  const metadata = manifestKeyOfFolder(name)
  const manifest = await manifestIn(place, metadata, environment)
  const { head } = await findHead(world)
  const job = world.job ?? head?.job
  if (manifest !== undefined && manifest.job !== job && !foreign)
    throw adminError('MR-A05', `${folder} is of ${manifest.job}; this is ${job ?? 'a job that has not begun'}.`)
  if (head !== undefined) refuseNeeded(head, { folder, manifest, isIt: ({ path }) => stores.locate(path) === folder })
  const around = typeof owner === 'object' ? await (await HeadKeeper.open(owner.head, environment)).read() : undefined
  const isPlace = typeof owner === 'object' && owner.isPlace
  // One place may have several names: HEAD's own ids are never used again, so the folder's name tells.
  const isIt = ({ path }: ManifestRef): boolean => (isPlace ? path.endsWith(`/${metadata}`) : path === metadata)
  if (around !== undefined) refuseNeeded(around, { folder, manifest, isIt })
  if (!apply) return { outcome: 'would do', objects: keys }
  const data = keys.filter((key) => key !== metadata)
  await deleteAll(objects, data, environment)
  await deleteAll(objects, [metadata], environment)
  return { outcome: 'done', objects: keys }
}

/** undefined: damaged, and in this job's store, where its name says whose it is. Throws MR-A06 for what is no savepoint. */
async function manifestIn(
  { objects, folder, name, owner }: SavepointPlace,
  metadata: ObjectKey,
  { clock }: Environment,
): Promise<Manifest | undefined> {
  const late = () => storageError('MR-S01', `Reading ${folder}: no answer within ${readDeadlineMs} ms.`)
  const bytes = await within(clock, readDeadlineMs, objects.read(metadata), late)
  if (bytes === undefined) throw adminError('MR-A06', `${folder} has no _metadata.`)
  if (owner !== 'none' && !isOfSavepoint(name))
    throw adminError('MR-A06', `${folder} belongs to the job in whose store it lies.`)
  let manifest: Manifest
  try {
    manifest = decodeManifest(bytes, folder)
  } catch (error) {
    if (owner === 'this job') return undefined
    throw error
  }
  const { kind, id, job } = manifest
  if (kind !== 'savepoint') throw adminError('MR-A06', `${folder} is ${kind} ${id} of ${job}.`)
  return manifest
}

interface Candidate {
  readonly folder: string
  readonly manifest: Manifest | undefined
  readonly isIt: (ref: ManifestRef) => boolean
}

function refuseNeeded(head: Head, { folder, manifest, isIt }: Candidate): void {
  const required = requiredRestorePoint(head)
  const pin = head.pins.find((other) => isIt(other.manifest))
  const why =
    required !== undefined && isIt(required)
      ? 'its restore point'
      : head.unconfirmed !== undefined && isIt(head.unconfirmed)
        ? 'what it permits to commit'
        : pin !== undefined
          ? `pinned (${pin.reason})`
          : manifest !== undefined && mayYetComplete(head, manifest)
            ? 'about to complete'
            : undefined
  if (why !== undefined)
    throw adminError('MR-A04', `${folder} is ${why}, says HEAD of ${head.job} (start ${head.start}, ${head.end.kind}).`)
}

/** Its manifest is written before the swap that completes it, and that one may be the swap of a stop. While it waits nothing newer completes. */
function mayYetComplete(head: Head, { job, incarnation, id }: Manifest): boolean {
  if (head.end.kind !== 'none' || job !== head.job || incarnation !== head.incarnation) return false
  const answered = head.savepointResults.map((result) => result.manifest?.id ?? 0)
  return id > Math.max(newestCompletedId(head), ...answered)
}

export type CheckpointsDisposed =
  /** There positively is no HEAD. */
  | { readonly outcome: 'none' }
  | {
      readonly outcome: 'nothing to do' | 'would do' | 'done'
      readonly head: Head
      readonly ids: readonly CheckpointId[]
    }

/**
 * All that HEAD of a cancelled job still retains or was discarding, less what is pinned: for a job that is deleted where its policy says so.
 * Throws MR-A07 for a job that is not cancelled or has unconfirmed commits, MR-A08 when something is left.
 */
export async function disposeCheckpoints(
  world: AdminWorld,
  { apply }: { readonly apply: boolean },
): Promise<CheckpointsDisposed> {
  const { keeper, head } = await findHead(world)
  if (head === undefined) return { outcome: 'none' }
  if (head.end.kind !== 'cancelled')
    throw adminError('MR-A07', `${head.job} is at start ${head.start} (${head.end.kind}).`)
  if (head.unconfirmed !== undefined)
    throw adminError('MR-A07', `The commits of ${head.unconfirmed.path} of ${head.job} are not confirmed.`)
  const kept = new Set(discardCancelled(head).retained.map(({ path }) => path))
  const ids = [...head.discarding, ...head.retained].filter(({ path }) => !kept.has(path)).map(({ id }) => id)
  if (ids.length === 0) return { outcome: 'nothing to do', head, ids }
  if (!apply) return { outcome: 'would do', head, ids }
  await discardAllOfCancelled({ store: world.stores.objects, environment: world.environment }, keeper, head.start)
  const after = await keeper.readBegun()
  if (after.discarding.length > 0)
    throw adminError('MR-A08', `Left: ${after.discarding.map(({ path }) => path).join(', ')}.`)
  return { outcome: 'done', head: after, ids }
}
