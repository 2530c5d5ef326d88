// Reads HEAD's restore point and deals it out. What cannot be read is retried and then fails loudly; an older manifest is never
// taken in its place (rule 7, B12).

import type { Environment } from '../base/environment.ts'
import { invariant } from '../base/errors.ts'
import { subtaskIndex, taskKey } from '../base/ids.ts'
import type { CheckpointId, TaskKey, VertexId } from '../base/ids.ts'
import { assignRestore, committablesOf } from '../checkpoint/assignment.ts'
import type { SubtaskAssignment } from '../checkpoint/assignment.ts'
import type { Committable, SnapshotReader, SubtaskSnapshot } from '../checkpoint/contract.ts'
import { decodeManifest } from '../checkpoint/manifest.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import type { JobGraph } from '../job/contract.ts'
import type { ObjectStore } from '../storage/contract.ts'
import { restorePointOf } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import type { EnumeratorState } from './enumerators.ts'
import { coordinatorError } from './errors.ts'

const readTriesMax = 6
const firstPauseMs = 200

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

export interface RestoreSources {
  readonly graph: JobGraph
  readonly store: ObjectStore
  readonly snapshotReader: SnapshotReader
  readonly environment: Environment
}

export async function readRestorePoint(sources: RestoreSources, head: Head): Promise<RestorePlan> {
  const point = restorePointOf(head)
  if (point.kind === 'empty') return emptyPlan(sources.graph)
  const { graph, environment, snapshotReader } = sources
  const manifest = await readManifest(sources, point.manifest)
  const assignment = assignRestore(manifest, graph, {
    allowNonRestoredState: false,
    commitsConfirmed: head.unconfirmed === undefined,
    planted: environment.planted,
  })
  const enumerators = new Map<string, EnumeratorState>()
  for (const [uid, { codec, handle }] of assignment.enumerators) {
    enumerators.set(uid, { codec, bytes: await snapshotReader.read(handle) })
  }
  return {
    id: point.manifest.id,
    subtasks: assignment.subtasks,
    finishedVertices: assignment.finishedBefore,
    finals: assignment.finals,
    enumerators,
    committablesWithoutWriter: assignment.committablesWithoutWriter,
  }
}

/** By uid: everything that a permitted manifest holds (rule 2: an ended start finishes the commits that HEAD permits). */
export async function readPermittedCommits(sources: RestoreSources, permitted: ManifestRef): Promise<ReadonlyMap<string, readonly Committable[]>> {
  return committablesOf(await readManifest(sources, permitted))
}

async function readManifest({ store, environment }: RestoreSources, ref: ManifestRef): Promise<Manifest> {
  for (let tries = 1, pauseMs = firstPauseMs; ; tries++, pauseMs *= 2) {
    try {
      const bytes = await store.read(ref.path)
      if (bytes === undefined) throw coordinatorError('MR-O18', `At ${ref.path}.`)
      const manifest = decodeManifest(bytes, ref.path)
      invariant(manifest.id === ref.id, `${ref.path} holds snapshot ${manifest.id}, HEAD says ${ref.id}`)
      return manifest
    } catch (error) {
      // Also what looks final is read again: a store may answer from a stale copy.
      environment.log('warn', 'the restore point could not be read', { path: ref.path, tries, error: String(error) })
      if (tries === readTriesMax) throw error
      await new Promise<void>((resolve) => environment.clock.timer(pauseMs, resolve))
    }
  }
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
