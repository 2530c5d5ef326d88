// The transitions of HEAD, as pure functions: a HEAD and what happened go in, the next HEAD comes out. Each can be applied again on a
// newer HEAD after a lost or unclear swap: what is already there stays as it is. head-keeper.ts carries them out.

import { invariant } from '../base/errors.ts'
import { incarnation } from '../base/ids.ts'
import type { CheckpointId, JobId, RequestId, SlotId, Start } from '../base/ids.ts'
import { storageError } from './errors.ts'
import { HEAD_FORMAT } from './head-contract.ts'
import { SAVEPOINT_REQUESTS_MAX, SAVEPOINT_RESULTS_KEPT } from './head-format.ts'
import type {
  Head,
  HeadEnd,
  ManifestRef,
  Pin,
  RestorePoint,
  SavepointRequest,
  SavepointResult,
} from './head-contract.ts'

export interface NewJob {
  readonly job: JobId
  readonly start: Start
  readonly parallelism: number
  readonly maxParallelism: number
  /** Default: empty. A savepoint of another job may be given. */
  readonly restoredFrom?: RestorePoint
  /** The restore point holds transactions; the swap is the permit to commit them (rule 22). */
  readonly commitsPending?: boolean
}

/** The first HEAD of a job, under its first incarnation. */
export function newJob(options: NewJob): Head {
  const restoredFrom = options.restoredFrom ?? { kind: 'empty' }
  const from = manifestOf(restoredFrom)
  invariant(
    from !== undefined || options.commitsPending !== true,
    'there is nothing to commit in an empty restore point',
  )
  return {
    format: HEAD_FORMAT,
    job: options.job,
    writer: '',
    incarnation: incarnation(1),
    start: options.start,
    restoredFrom,
    end: { kind: 'none' },
    retained: [],
    unconfirmed: options.commitsPending === true ? from : undefined,
    discarding: [],
    pins: [],
    // Committables of the restored savepoint carry its id: ids that rise from there keep "commit all ≤ n" true (rule 22).
    reservedIds: from?.id ?? 0,
    parallelism: options.parallelism,
    maxParallelism: options.maxParallelism,
    restarts: 0,
    savepointRequests: [],
    savepointResults: [],
  }
}

export interface BeginStart {
  readonly start: Start
  /** By default restorePointOf(head). */
  readonly restoredFrom: RestorePoint
  /** The restore point is a savepoint with transactions not yet committed by this job. */
  readonly commitsPending: boolean
  readonly parallelism: number
  readonly maxParallelism: number
}

/** The swap that begins a start: raises the incarnation, writes `restoredFrom` (rule 2). Ids go on. */
export function beginStart(head: Head, begin: BeginStart): Head {
  invariant(begin.start > head.start, `start ${begin.start} does not follow start ${head.start}`)
  const from = manifestOf(begin.restoredFrom)
  invariant(from !== undefined || !begin.commitsPending, 'there is nothing to commit in an empty restore point')
  // Rule 23: no start may lose sight of transactions that HEAD permitted and nobody confirmed.
  invariant(
    head.unconfirmed === undefined || head.unconfirmed.path === from?.path,
    `the commits of ${head.unconfirmed?.path} are not confirmed, and the start does not begin there`,
  )
  invariant(
    from === undefined || !head.discarding.some((manifest) => manifest.path === from.path),
    `${from?.path} is being discarded`,
  )
  const pins = head.pins.filter((pin) => pin.reason !== 'restore point')
  return {
    ...head,
    incarnation: incarnation(head.incarnation + 1),
    start: begin.start,
    restoredFrom: begin.restoredFrom,
    end: { kind: 'none' },
    unconfirmed: begin.commitsPending ? from : head.unconfirmed,
    // A stateless start can be taken back for as long as it has completed nothing: completeCheckpoint lets go of these (rules 2, 5).
    pins:
      from === undefined ? [...pins, ...rollbackPins(head)] : [...pins, { manifest: from, reason: 'restore point' }],
    reservedIds: Math.max(head.reservedIds, from?.id ?? 0),
    parallelism: begin.parallelism,
    rescaledTo: undefined,
    deployed: undefined,
    maxParallelism: begin.maxParallelism,
    restarts: 0,
    savepointRequests: [],
    savepointResults: lastResults([
      ...head.savepointResults,
      ...head.savepointRequests.map((asked): SavepointResult => ({
        ...asked,
        outcome: 'failed',
        detail: `start ${begin.start} of the job began`,
        start: head.start,
      })),
    ]),
  }
}

/** A coordinator takes the same start over (rule 2). */
export function raiseIncarnation(head: Head): Head {
  invariant(head.end.kind === 'none', `start ${head.start} has ended (${head.end.kind}); nobody may run it`)
  return { ...head, incarnation: incarnation(head.incarnation + 1) }
}

/** A block of `count` ids, [from, to], that nobody has used (rule 6). */
export function reserveIds(
  head: Head,
  count: number,
): { readonly head: Head; readonly from: number; readonly to: number } {
  invariant(Number.isSafeInteger(count) && count > 0, `a block of ${count} ids`)
  const to = head.reservedIds + count
  return { head: { ...head, reservedIds: to }, from: head.reservedIds + 1, to }
}

export interface CompletedCheckpoint {
  readonly manifest: ManifestRef
  /** How many checkpoints to keep, ≥ 1. */
  readonly retainedMax: number
  /** The manifest holds transactions: this swap is the permit to commit them (rule 3). */
  readonly commitsPending: boolean
}

/**
 * Completes a checkpoint and moves what retention drops into `discarding` (rule 7). The start is stable by that: it restores from its own
 * checkpoint, and nobody may roll it back any more (rule 5), so that what was kept for either goes by retention.
 */
export function completeCheckpoint(head: Head, { manifest, retainedMax, commitsPending }: CompletedCheckpoint): Head {
  invariant(retainedMax >= 1, `retaining ${retainedMax} checkpoints`)
  if (head.retained.some((other) => other.path === manifest.path)) return head
  assertOwnSnapshot(head, manifest, 'checkpoint')
  const newest = head.retained.at(-1)
  invariant(
    newest === undefined || manifest.id > newest.id,
    `checkpoint ${manifest.id} would follow checkpoint ${newest?.id}`,
  )
  const completed: Head = {
    ...head,
    retained: [...head.retained, manifest],
    unconfirmed: unconfirmedAfter(manifest, commitsPending),
    pins: head.pins.filter(({ reason }) => reason !== 'restore point' && reason !== 'rollback'),
  }
  const dropped = new Set(completed.retained.slice(0, -retainedMax).filter((other) => !isPinned(completed, other)))
  return {
    ...completed,
    retained: completed.retained.filter((other) => !dropped.has(other)),
    discarding: [...completed.discarding, ...dropped],
  }
}

export interface Rescale extends CompletedCheckpoint {
  readonly request: RequestId
  readonly parallelism: number
}

/** A checkpoint with a stop barrier completes: the same start goes on at another parallelism (rule 25). Result, size and permit in one swap. */
export function rescale(head: Head, { request, parallelism, ...completed }: Rescale): Head {
  if (isAnswered(head, request)) return head
  const { manifest } = completed
  return answered(
    { ...completeCheckpoint(head, completed), rescaledTo: parallelism },
    { request, outcome: 'completed', manifest, detail: '' },
  )
}

/**
 * All transactions of snapshots ≤ id are committed. A late word about an older snapshot changes nothing. Only under the incarnation that
 * restored from or completed them: over starts ids do not say what holds what.
 */
export function confirmCommits(head: Head, id: CheckpointId): Head {
  return head.unconfirmed !== undefined && head.unconfirmed.id <= id ? { ...head, unconfirmed: undefined } : head
}

/** All transactions of this manifest are committed, and it may be anybody who says so: another one that is unconfirmed stays (rule 23). */
export function confirmCommitsOf(head: Head, { path }: ManifestRef): Head {
  return head.unconfirmed?.path === path ? { ...head, unconfirmed: undefined } : head
}

/** The files of these are gone (rule 7). */
export function discarded(head: Head, ids: readonly CheckpointId[]): Head {
  return { ...head, discarding: head.discarding.filter((manifest) => !ids.includes(manifest.id)) }
}

export function addPin(head: Head, pin: Pin): Head {
  invariant(
    !head.discarding.some((manifest) => manifest.path === pin.manifest.path),
    `${pin.manifest.path} is being discarded`,
  )
  const there = head.pins.some((other) => other.reason === pin.reason && other.manifest.path === pin.manifest.path)
  return there ? head : { ...head, pins: [...head.pins, pin] }
}

// ---- savepoints (rule 21) ----

/** Written before its trigger. A request that is known, waiting or answered, changes nothing. Throws MR-S13. */
export function requestSavepoint(head: Head, request: SavepointRequest): Head {
  invariant(head.end.kind === 'none', `start ${head.start} has ended (${head.end.kind}); it takes no savepoint`)
  if (head.savepointRequests.some((other) => other.request === request.request) || isAnswered(head, request.request))
    return head
  if (head.savepointRequests.length >= SAVEPOINT_REQUESTS_MAX)
    throw storageError('MR-S13', `${SAVEPOINT_REQUESTS_MAX} wait.`)
  return { ...head, savepointRequests: [...head.savepointRequests, request] }
}

/** A plain savepoint: the user's from now on; it is no restore point, no base, and permits no commit. */
export function completeSavepoint(
  head: Head,
  { request, manifest }: { readonly request: RequestId; readonly manifest: ManifestRef },
): Head {
  if (isAnswered(head, request)) return head
  assertOwnSnapshot(head, manifest, 'savepoint')
  return answered(head, { request, outcome: 'completed', manifest, detail: '' })
}

export function failSavepoint(
  head: Head,
  { request, detail }: { readonly request: RequestId; readonly detail: string },
): Head {
  return isAnswered(head, request) ? head : answered(head, { request, outcome: 'failed', detail })
}

// ---- ends; one that is set stays (rule 5) ----

export interface StopWithSavepoint {
  readonly request: RequestId
  readonly manifest: ManifestRef
  readonly commitsPending: boolean
}

/** Stopping with a savepoint: result, end and permit in one swap (rule 3). */
export function stop(head: Head, { request, manifest, commitsPending }: StopWithSavepoint): Head {
  if (head.end.kind !== 'none') return head
  assertOwnSnapshot(head, manifest, 'savepoint')
  const stopped = answered(head, { request, outcome: 'completed', manifest, detail: '' })
  return {
    ...stopped,
    end: { kind: 'stopped', savepoint: manifest },
    unconfirmed: unconfirmedAfter(manifest, commitsPending),
  }
}

/** Suspending: no permit (rule 5). */
export function close(head: Head): Head {
  return ended(head, { kind: 'suspended' })
}

/** All input is read and all commits are confirmed (rule 3). A stop with drain ends as finished too. */
export function finish(head: Head): Head {
  invariant(
    head.unconfirmed === undefined,
    `the commits of ${head.unconfirmed?.path} are not confirmed; the job has not finished`,
  )
  const drained = drainedStopOf(head.end)
  return drained === undefined ? ended(head, { kind: 'finished' }) : { ...head, end: { kind: 'finished', drained } }
}

/** The savepoint of a stop with drain, which becomes `finished` once all is committed. */
export function drainedStopOf(end: HeadEnd): ManifestRef | undefined {
  return end.kind === 'stopped' && end.savepoint.drained === true ? end.savepoint : undefined
}

export function fail(head: Head, reason: string): Head {
  return ended(head, { kind: 'failed', reason })
}

/**
 * `deleted`: the job is being deleted, which alone writes over another end (rule 5). The savepoint of that end stays: what its swap permitted
 * may be committed, and a later start that began at the newest checkpoint instead would write it twice.
 */
export function cancel(head: Head, { deleted: isDeleted }: { readonly deleted: boolean }): Head {
  const savepoint = savepointOfEnd(head.end)
  const cancelled: HeadEnd = { kind: 'cancelled', ...(savepoint !== undefined && { savepoint }) }
  return isDeleted ? { ...head, end: cancelled } : ended(head, cancelled)
}

/**
 * `onCancellation: 'delete'`: the checkpoints of a cancelled job may be deleted, and with them goes a restore point that is one. Left are
 * savepoints, which are the user's, and what is pinned or not yet committed. Nothing changes for any other end.
 */
export function discardCancelled(head: Head): Head {
  if (head.end.kind !== 'cancelled' || head.unconfirmed !== undefined) return head
  const pins = head.pins.filter((pin) => pin.reason !== 'restore point')
  const pinned = new Set(pins.map((pin) => pin.manifest.path))
  const point = restorePointOf(head)
  return {
    ...head,
    restoredFrom: point.kind === 'manifest' && point.manifest.kind === 'savepoint' ? point : { kind: 'empty' },
    retained: head.retained.filter((manifest) => pinned.has(manifest.path)),
    discarding: [...head.discarding, ...head.retained.filter((manifest) => !pinned.has(manifest.path))],
    pins,
  }
}

export function countRestart(head: Head): Head {
  return { ...head, restarts: head.restarts + 1 }
}

/** All slots of the job, before those of them that are new start: what they take the place of is never adopted any more (rule 25). */
export function deploySlots(head: Head, slots: readonly SlotId[]): Head {
  return { ...head, deployed: slots }
}

// ---- questions ----

/** The savepoint that the job was stopped or drained with, whether or not it was cancelled after that. */
export function savepointOfEnd(end: HeadEnd): ManifestRef | undefined {
  if (end.kind === 'stopped' || end.kind === 'cancelled') return end.savepoint
  return end.kind === 'finished' ? end.drained : undefined
}

/** Rule 2: S after stopped(S) and after a drain to S, also if cancelled then, else the newest manifest completed in HEAD's own start, else that start's `restoredFrom`. */
export function restorePointOf(head: Head): RestorePoint {
  const savepoint = savepointOfEnd(head.end)
  if (savepoint !== undefined) return { kind: 'manifest', manifest: savepoint }
  const newest = head.retained.findLast((manifest) => manifest.start === head.start)
  return newest === undefined ? head.restoredFrom : { kind: 'manifest', manifest: newest }
}

/**
 * The restore point, if it must stay where it is. A savepoint of a cancelled job is the user's to take away: a start that would begin there
 * fails then, and begins nowhere else.
 */
export function requiredRestorePoint(head: Head): ManifestRef | undefined {
  const point = manifestOf(restorePointOf(head))
  return head.end.kind === 'cancelled' && point?.kind === 'savepoint' ? undefined : point
}

/** Whether retention must leave it: pinned, the restore point, or with commits to be confirmed. */
export function isPinned(head: Head, manifest: ManifestRef): boolean {
  return (
    head.pins.some((pin) => pin.manifest.path === manifest.path) ||
    head.unconfirmed?.path === manifest.path ||
    manifestOf(restorePointOf(head))?.path === manifest.path
  )
}

/** Whether HEAD's own start has completed a checkpoint. */
export function hasCompleted(head: Head): boolean {
  return head.retained.some((manifest) => manifest.start === head.start)
}

/** The largest id of a completed checkpoint that HEAD shows; 0 if none. */
export function newestCompletedId(head: Head): number {
  return head.retained.at(-1)?.id ?? manifestOf(head.restoredFrom)?.id ?? 0
}

function manifestOf(point: RestorePoint): ManifestRef | undefined {
  return point.kind === 'manifest' ? point.manifest : undefined
}

/**
 * Each manifest holds all transactions that are still unconfirmed (rule 22), so the newest stands for all; one that holds none says that
 * all are committed. Were an older one still named, no start could begin from the newest: it does not hold what that one permits.
 */
function unconfirmedAfter(manifest: ManifestRef, commitsPending: boolean): ManifestRef | undefined {
  return commitsPending ? manifest : undefined
}

function rollbackPins(head: Head): Pin[] {
  const manifests = new Map(head.retained.map((manifest) => [manifest.path, manifest]))
  const point = manifestOf(restorePointOf(head))
  if (point !== undefined) manifests.set(point.path, point)
  const pinned = new Set(head.pins.filter((pin) => pin.reason === 'rollback').map((pin) => pin.manifest.path))
  return [...manifests.values()]
    .filter((manifest) => !pinned.has(manifest.path))
    .map((manifest) => ({ manifest, reason: 'rollback' }))
}

function ended(head: Head, end: HeadEnd): Head {
  return head.end.kind === 'none' ? { ...head, end } : head
}

function assertOwnSnapshot(head: Head, manifest: ManifestRef, kind: ManifestRef['kind']): void {
  invariant(
    head.end.kind === 'none',
    `start ${head.start} has ended (${head.end.kind}); nothing completes in it any more`,
  )
  invariant(manifest.kind === kind, `${manifest.path} is a ${manifest.kind}, not a ${kind}`)
  invariant(
    manifest.start === head.start,
    `${manifest.path} was made by start ${manifest.start}, HEAD is at start ${head.start}`,
  )
  invariant(manifest.id <= head.reservedIds, `id ${manifest.id} was never reserved (${head.reservedIds} are)`)
}

function isAnswered(head: Head, request: RequestId): boolean {
  return head.savepointResults.some((result) => result.request === request)
}

function answered(head: Head, answer: Pick<SavepointResult, 'request' | 'outcome' | 'manifest' | 'detail'>): Head {
  const asked = head.savepointRequests.find((other) => other.request === answer.request)
  return {
    ...head,
    savepointRequests: head.savepointRequests.filter((other) => other !== asked),
    savepointResults: lastResults([...head.savepointResults, { ...asked, ...answer, start: head.start }]),
  }
}

function lastResults(results: readonly SavepointResult[]): readonly SavepointResult[] {
  return results.slice(-SAVEPOINT_RESULTS_KEPT)
}
