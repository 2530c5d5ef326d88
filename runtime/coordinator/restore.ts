// Reads HEAD's restore point and deals it out. What cannot be read is retried and then fails loudly; an older manifest is never
// taken in its place (rule 7, B12).

import { pause, within } from '../base/deadline.ts'
import { MillraceError, invariant } from '../base/errors.ts'
import { subtaskIndex, taskKey } from '../base/ids.ts'
import type { CheckpointId, TaskKey, VertexId } from '../base/ids.ts'
import { assignRestore, committablesOf } from '../checkpoint/assignment.ts'
import type { SubtaskAssignment } from '../checkpoint/assignment.ts'
import type { Committable, SubtaskSnapshot } from '../checkpoint/contract.ts'
import { withAbsoluteHandles } from '../checkpoint/handles.ts'
import { decodeManifest } from '../checkpoint/manifest.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import type { RestoredOperator } from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import type { ForeignObjects } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { restorePointOf } from '../storage/head.ts'
import type { Head, ManifestRef, RestorePoint } from '../storage/head-contract.ts'
import { CHECKPOINTS_PREFIX, isAbsoluteKey } from '../storage/paths.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import type { EnumeratorState } from './enumerators.ts'
import { coordinatorError } from './errors.ts'

const readTriesMax = 6
const firstPauseMs = 200
/** One answer of the store. */
export const readDeadlineMs = 60_000

export interface RestorePlan {
  /** The restore point's id; undefined: empty. */
  readonly id: CheckpointId | undefined
  readonly subtasks: ReadonlyMap<TaskKey, SubtaskAssignment>
  readonly finishedVertices: ReadonlySet<VertexId>
  readonly finals: ReadonlyMap<TaskKey, SubtaskSnapshot>
  /** By the source's uid. */
  readonly enumerators: ReadonlyMap<string, EnumeratorState>
  /** By uid: of wholly finished sinks, to be committed before any new record. */
  readonly committablesWithoutWriter: ReadonlyMap<string, readonly Committable[]>
}

export type ManifestSources = Pick<JobCoordinatorOptions, 'store' | 'foreign' | 'environment'>

export type RestoreSources = ManifestSources & Pick<JobCoordinatorOptions, 'graph' | 'snapshotReader' | 'restore'>

export async function readRestorePoint(sources: RestoreSources, head: Head): Promise<RestorePlan> {
  const point = sources.environment.planted.has('restore-point-listed')
    ? await listedPoint(sources, head)
    : restorePointOf(head)
  if (point.kind === 'empty') return emptyPlan(sources.graph)
  const { graph, environment, snapshotReader, restore } = sources
  const manifest = await readManifest(sources, point.manifest)
  const assignment = assignRestore(manifest, graph, {
    allowNonRestoredState: restore?.allowNonRestoredState ?? false,
    commitsConfirmed: head.unconfirmed === undefined,
    planted: environment.planted,
  })
  const { dropped } = assignment
  if (dropped.length > 0) environment.log('warn', 'state was dropped, as allowed', { uids: dropped })
  const enumerators = new Map<string, EnumeratorState>()
  for (const [uid, { codec, handle }] of assignment.enumerators) {
    enumerators.set(uid, { codec, bytes: await snapshotReader.read(handle) })
  }
  return {
    id: point.manifest.id,
    subtasks: head.unconfirmed === undefined ? withoutCommittables(assignment.subtasks) : assignment.subtasks,
    finishedVertices: assignment.finishedBefore,
    finals: assignment.finals,
    enumerators,
    committablesWithoutWriter: head.unconfirmed === undefined ? new Map() : assignment.committablesWithoutWriter,
  }
}

/** The planted fault: right as long as lists are. */
async function listedPoint({ store }: RestoreSources, head: Head): Promise<RestorePoint> {
  const point = restorePointOf(head)
  if (point.kind === 'empty' || point.manifest.kind === 'savepoint' || isAbsoluteKey(point.manifest.path)) return point
  const keys = await store.list(CHECKPOINTS_PREFIX)
  if (keys.includes(point.manifest.path)) return point
  const manifest = head.retained.findLast(({ path }) => keys.includes(path))
  return manifest === undefined ? { kind: 'empty' } : { kind: 'manifest', manifest }
}

/** HEAD shows that they are committed: by now the external system, or whoever takes finished files away, may have forgotten them. */
function withoutCommittables(
  subtasks: ReadonlyMap<TaskKey, SubtaskAssignment>,
): ReadonlyMap<TaskKey, SubtaskAssignment> {
  const without = new Map<TaskKey, SubtaskAssignment>()
  for (const [key, assignment] of subtasks) {
    const operators: Record<string, RestoredOperator> = {}
    for (const [uid, operator] of Object.entries(assignment.restored.operators)) {
      const { committables: _, ...state } = operator
      operators[uid] = state
    }
    without.set(key, { ...assignment, restored: { operators } })
  }
  return without
}

/** By uid: everything that a permitted manifest holds (rule 2: an ended start finishes the commits that HEAD permits). */
export async function readPermittedCommits(
  sources: ManifestSources,
  permitted: ManifestRef,
): Promise<ReadonlyMap<string, readonly Committable[]>> {
  return committablesOf(await readManifest(sources, permitted))
}

/** Where a manifest lies. `id`: which one HEAD says that it is; undefined: HEAD says nothing of it. */
export type ManifestPlace = Pick<ManifestRef, 'path'> & { readonly id?: CheckpointId }

/** Handles of a manifest outside of the job's store come back absolute. */
export async function readManifest(sources: ManifestSources, ref: ManifestPlace): Promise<Manifest> {
  const { environment } = sources
  for (let tries = 1, pauseMs = firstPauseMs; ; tries++, pauseMs *= 2) {
    try {
      const late = () => coordinatorError('MR-O21', `${ref.path}: no answer within ${readDeadlineMs} ms.`)
      const bytes = await within(environment.clock, readDeadlineMs, storeOf(ref.path, sources).read(ref.path), late)
      if (bytes === undefined) throw coordinatorError('MR-O18', `At ${ref.path}.`)
      const manifest = decodeManifest(bytes, ref.path)
      const { id = manifest.id } = ref
      invariant(manifest.id === id, `${ref.path} holds snapshot ${manifest.id}, HEAD says ${id}`)
      return isAbsoluteKey(ref.path) ? withAbsoluteHandles(manifest, ref.path) : manifest
    } catch (error) {
      // Also what looks final is read again: a store may answer from a stale copy.
      environment.log('warn', 'the restore point could not be read', { path: ref.path, tries, error: String(error) })
      if (tries === readTriesMax) throw isDamage(error) ? coordinatorError('MR-O20', String(error), error) : error
      await pause(environment.clock, pauseMs)
    }
  }
}

/** Where an object is read: in the job's own store, or outside of it. Throws MR-S04 where that is not given. */
export function storeOf(key: string, { store, foreign }: Pick<ManifestSources, 'store' | 'foreign'>): ForeignObjects {
  if (!isAbsoluteKey(key)) return store
  if (foreign === undefined)
    throw storageError('MR-S04', `${key} lies outside of the job's store, which is all that is read here.`)
  return foreign
}

/** The store did answer: what it holds is not what HEAD names. Neither a restart nor time mends that. */
function isDamage(error: unknown): boolean {
  return error instanceof MillraceError && (error.code.startsWith('MR-C') || error.code === 'MR-O18')
}

function emptyPlan(graph: JobGraph): RestorePlan {
  const subtasks = new Map<TaskKey, SubtaskAssignment>()
  for (const vertex of graph.vertices) {
    for (let index = 0; index < vertex.parallelism; index++) {
      const key = taskKey({ vertex: vertex.id, subtask: subtaskIndex(index) })
      subtasks.set(key, { restored: { operators: {} }, finishedBefore: false })
    }
  }
  return {
    id: undefined,
    subtasks,
    finishedVertices: new Set(),
    finals: new Map(),
    enumerators: new Map(),
    committablesWithoutWriter: new Map(),
  }
}
