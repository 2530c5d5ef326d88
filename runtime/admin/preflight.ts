// Whether a revision of a job could begin where the job is: asked before anything of the running one is touched (kubernetes.md 9). Nothing
// is run and nothing is written.

import { within } from '../base/deadline.ts'
import { InvariantError, MillraceError } from '../base/errors.ts'
import type { ErrorCode } from '../base/errors.ts'
import { whyNotRestorable } from '../checkpoint/assignment.ts'
import { decodeManifest } from '../checkpoint/manifest.ts'
import type { RestoreRequest } from '../coordinator/coordinator-contract.ts'
import { placeTasks } from '../coordinator/placement.ts'
import { refuseDrained, refuseMissingFiles } from '../coordinator/restore-check.ts'
import { readDeadlineMs, readManifest, storeOf } from '../coordinator/restore.ts'
import type { JobGraph } from '../job/contract.ts'
import { loadedInTime } from '../job/loaded-in-time.ts'
import type { ObjectKey } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { restorePointOf } from '../storage/head.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import { findHead, isClaimed, sourcesOf } from './admin-world.ts'
import type { AdminWorld } from './admin-world.ts'
import { isUnanswered } from './unanswered.ts'

export interface PreflightRequest {
  /** Loads the job's module and builds its graph. */
  readonly load: () => Promise<JobGraph>
  /** The manifest to begin from, absolute; undefined: HEAD's restore point. */
  readonly against: ObjectKey | undefined
  readonly restore: Pick<RestoreRequest, 'empty' | 'goesOn' | 'allowNonRestoredState' | 'allowDrained'>
}

export interface Reason {
  /** undefined: of no table. */
  readonly code: ErrorCode | undefined
  readonly message: string
}

export interface Preflight {
  /** could not run: nothing is known about whether it fits. */
  readonly answer: 'yes' | 'no' | 'could not run'
  /** All that were found; [] for yes. */
  readonly reasons: readonly Reason[]
  /** undefined: the job could not be loaded. */
  readonly graph: JobGraph | undefined
  readonly slotsNeeded: number | undefined
  /** What it was held against; undefined: nothing, the job begins from empty, or that is not known. */
  readonly against: ManifestRef | undefined
}

/** Never rejects but for an InvariantError. */
export async function preflight(world: AdminWorld, request: PreflightRequest): Promise<Preflight> {
  let graph: JobGraph | undefined
  let against: ManifestRef | undefined
  const answered = (answer: Preflight['answer'], reasons: readonly Reason[]): Preflight => ({
    answer,
    reasons,
    graph,
    slotsNeeded: graph === undefined ? undefined : placeTasks(graph).slotCount,
    against,
  })
  try {
    graph = await loadedInTime(world.environment.clock, request.load())
    const checked = await check(world, request, graph)
    against = checked.against
    const reasons = [...checked.reasons, ...(await reasonsOfPlace(world))]
    return answered(reasons.length === 0 ? 'yes' : 'no', reasons)
  } catch (error) {
    if (error instanceof InvariantError) throw error
    return answered(isUnanswered(error) ? 'could not run' : 'no', [reasonOf(error)])
  }
}

interface Checked {
  readonly against: ManifestRef | undefined
  readonly reasons: readonly Reason[]
}

async function check(world: AdminWorld, request: PreflightRequest, graph: JobGraph): Promise<Checked> {
  const { against, restore } = request
  if (restore.empty === true) return { against: undefined, reasons: [] }
  if (against !== undefined) {
    const ref = await refAt(world, against)
    return { against: ref, reasons: await reasonsAgainst(world, ref, { graph, restore, commitsConfirmed: false }) }
  }
  for (let tries = 1; ; tries++) {
    const ref = await newest(world, restore)
    if (ref === undefined) return { against: undefined, reasons: [] }
    // What HEAD permits is committed by the revision that wrote it, before another one begins (rule 23).
    const checking = reasonsAgainst(world, ref, { graph, restore, commitsConfirmed: true })
    const outcome = await checking.then(
      (reasons) => ({ reasons }),
      (error: unknown) => ({ error }),
    )
    const isWhole = 'reasons' in outcome && !outcome.reasons.some(({ code }) => code === 'MR-C54')
    // The job runs on: it may have completed a newer one meanwhile, and dropped this.
    if (!isWhole && tries < triesMax && (await newest(world, restore))?.path !== ref.path) continue
    if ('error' in outcome) throw outcome.error
    return { against: ref, reasons: outcome.reasons }
  }
}

/** Against restore points that were dropped while they were read. */
const triesMax = 10

async function newest(world: AdminWorld, restore: PreflightRequest['restore']): Promise<ManifestRef | undefined> {
  const { head } = await findHead(world, restore)
  const point = head === undefined ? undefined : restorePointOf(head)
  return point?.kind === 'manifest' ? point.manifest : undefined
}

/** Throws MR-S17 when there positively is none, and MR-C01 to MR-C04. */
async function refAt(world: AdminWorld, path: ObjectKey): Promise<ManifestRef> {
  const late = () => storageError('MR-S01', `Reading ${path}: no answer within ${readDeadlineMs} ms.`)
  const reading = storeOf(path, sourcesOf(world)).read(path)
  const bytes = await within(world.environment.clock, readDeadlineMs, reading, late)
  if (bytes === undefined) throw storageError('MR-S17', `${path} is not there.`)
  const { id, kind, start, bytes: size, drained } = decodeManifest(bytes, path)
  return { id, kind, path, start, completedAtMs: 0, bytes: size, ...(drained === true && { drained }) }
}

async function reasonsAgainst(
  world: AdminWorld,
  ref: ManifestRef,
  {
    graph,
    restore,
    commitsConfirmed,
  }: {
    readonly graph: JobGraph
    readonly restore: PreflightRequest['restore']
    readonly commitsConfirmed: boolean
  },
): Promise<readonly Reason[]> {
  const sources = sourcesOf(world)
  const manifest = await readManifest(sources, ref)
  const { allowNonRestoredState, allowDrained } = restore
  const refusals = whyNotRestorable(manifest, graph, { allowNonRestoredState, commitsConfirmed })
  const reasons = refusals.map(reasonOf)
  for (const refuse of [
    async () => refuseDrained(manifest, ref, { allowNonRestoredState, allowDrained }),
    () => refuseMissingFiles(sources, manifest),
  ]) {
    try {
      await refuse()
    } catch (error) {
      if (isUnanswered(error)) throw error
      reasons.push(reasonOf(error))
    }
  }
  return reasons
}

/**
 * Its coordinator would not begin where the place for savepoints is another job's or no bucket. The store of the job has answered by now: what
 * time does not mend here is an answer too.
 */
async function reasonsOfPlace({ stores: { savepoints }, environment }: AdminWorld): Promise<readonly Reason[]> {
  if (savepoints === undefined) return []
  try {
    await isClaimed(savepoints, environment)
    return []
  } catch (error) {
    if (!(error instanceof MillraceError) || error.retry) throw error
    return [reasonOf(error)]
  }
}

export function reasonOf(error: unknown): Reason {
  return error instanceof MillraceError
    ? { code: error.code, message: error.message }
    : { code: undefined, message: String(error) }
}
