// What each subtask gets from a restore point, at any parallelism: pure, from the manifest and the job graph of today.
//
// keyed state      by key-group ranges; every group to exactly one subtask
// operator state   dealt item by item (operator-state-share.ts)
// transactions     those of old subtask i to new subtask i mod parallelism; of wholly finished vertices to the coordinator
//
// What does not fit is refused before anything runs: nothing is dropped unasked, and transactions never (rules 19, 23; R13, R14, B19).

import type { MillraceError } from '../base/errors.ts'
import { subtaskIndex, taskKey } from '../base/ids.ts'
import type { SubtaskIndex, TaskKey, VertexId } from '../base/ids.ts'
import type { PlantedFault } from '../base/planted.ts'
import type { OperatorStateShare, RestoredOperator, RestoredSubtask } from '../control/contract.ts'
import type { ChainedOperator, JobGraph, JobVertex } from '../job/contract.ts'
import { keyGroupRange } from '../record/key-group.ts'
import { misfits, refuseWhatDoesNotFit } from './assignment-check.ts'
import type { Committable, KeyedSnapshot, KeyGroupHandle, OperatorSnapshot, SubtaskSnapshot } from './contract.ts'
import type { EnumeratorSnapshot, Manifest } from './manifest.ts'
import { shareOfLists } from './operator-state-share.ts'
import { recordedOperators } from './recorded-operators.ts'
import type { RecordedOperator } from './recorded-operators.ts'
import { takes, takesEnumerator } from './taken-state.ts'

export interface RestoreOptions {
  /** State that no operator of the graph takes is dropped; else it is refused. */
  readonly allowNonRestoredState: boolean
  /** HEAD shows that all transactions of the restore point are committed; else a graph without their sink is refused (rule 23). */
  readonly commitsConfirmed: boolean
  readonly planted?: ReadonlySet<PlantedFault>
}

export interface SubtaskAssignment {
  readonly restored: RestoredSubtask
  /** Its vertex was wholly finished: it re-emits its end of data and runs nothing (rule 19). */
  readonly finishedBefore: boolean
}

export interface RestoreAssignment {
  readonly subtasks: ReadonlyMap<TaskKey, SubtaskAssignment>
  readonly finishedBefore: ReadonlySet<VertexId>
  /** What acknowledges for the subtasks of wholly finished vertices: their recorded state, without transactions. */
  readonly finals: ReadonlyMap<TaskKey, SubtaskSnapshot>
  /** By the source's uid; also of wholly finished vertices, whose source another chain would run again. */
  readonly enumerators: ReadonlyMap<string, EnumeratorSnapshot>
  /** By uid: of wholly finished sinks, to be committed by the coordinator before any new record (rules 22, 23). */
  readonly committablesWithoutWriter: ReadonlyMap<string, readonly Committable[]>
  /** Uids whose state was dropped as allowed. */
  readonly dropped: readonly string[]
}

/** Throws MR-C10 to MR-C18; nothing may be started then. */
export function assignRestore(manifest: Manifest, graph: JobGraph, options: RestoreOptions): RestoreAssignment {
  const recorded = recordedOperators(manifest)
  const finishedBefore = finishedVertices(graph, recorded)
  const dropped = refuseWhatDoesNotFit({ manifest, graph, recorded, finishedBefore, options })
  const planted = options.planted ?? new Set()
  const subtasks = new Map<TaskKey, SubtaskAssignment>()
  const finals = new Map<TaskKey, SubtaskSnapshot>()
  const enumerators = new Map<string, EnumeratorSnapshot>()
  const committablesWithoutWriter = new Map<string, readonly Committable[]>()
  for (const vertex of graph.vertices) {
    const finished = finishedBefore.has(vertex.id)
    for (let index = 0; index < vertex.parallelism; index++) {
      const subtask = subtaskIndex(index)
      const key = taskKey({ vertex: vertex.id, subtask })
      subtasks.set(key, {
        finishedBefore: finished,
        restored: { operators: finished ? {} : shareOf(vertex, subtask, recorded, planted) },
      })
      if (finished) finals.set(key, finalOf(vertex, subtask, recorded))
    }
    for (const taker of vertex.chain) {
      const { uid } = taker
      const operator = recorded.get(uid)
      if (operator?.enumerator !== undefined && takesEnumerator(taker)) enumerators.set(uid, operator.enumerator)
      if (!finished) continue
      const committables = operator?.perSubtask.flatMap((snapshot) => snapshot?.committables ?? []) ?? []
      if (committables.length > 0) committablesWithoutWriter.set(uid, committables)
    }
  }
  return { subtasks, finishedBefore, finals, enumerators, committablesWithoutWriter, dropped }
}

/** Everything for which assignRestore refuses, where it throws the first; [] when the restore point fits. */
export function whyNotRestorable(manifest: Manifest, graph: JobGraph, options: RestoreOptions): MillraceError[] {
  const recorded = recordedOperators(manifest)
  const finishedBefore = finishedVertices(graph, recorded)
  return [...misfits({ manifest, graph, recorded, finishedBefore, options })]
}

/** All transactions that a manifest holds, by uid: for a coordinator that only commits (rules 2, 23), and for the sweep (rule 24). */
export function committablesOf(manifest: Manifest): ReadonlyMap<string, readonly Committable[]> {
  const byUid = new Map<string, readonly Committable[]>()
  for (const [uid, { perSubtask }] of recordedOperators(manifest)) {
    const committables = perSubtask.flatMap((snapshot) => snapshot?.committables ?? [])
    if (committables.length > 0) byUid.set(uid, committables)
  }
  return byUid
}

/** Vertices of which every operator was recorded in a wholly finished vertex. Of a partly finished one all subtasks run. */
function finishedVertices(graph: JobGraph, recorded: ReadonlyMap<string, RecordedOperator>): ReadonlySet<VertexId> {
  const finished = graph.vertices.filter((vertex) =>
    vertex.chain.every(({ uid }) => recorded.get(uid)?.whollyFinished === true),
  )
  return new Set(finished.map((vertex) => vertex.id))
}

function shareOf(
  vertex: JobVertex,
  subtask: SubtaskIndex,
  recorded: ReadonlyMap<string, RecordedOperator>,
  planted: ReadonlySet<PlantedFault>,
): Readonly<Record<string, RestoredOperator>> {
  const operators: Record<string, RestoredOperator> = {}
  for (const taker of vertex.chain) {
    const { uid } = taker
    const perSubtask = recorded.get(uid)?.perSubtask
    if (perSubtask === undefined) continue
    const keyed = keyedShare(perSubtask, vertex, subtask)
    const operatorState = operatorStateShare(perSubtask, taker, { parallelism: vertex.parallelism, subtask, planted })
    const committables = perSubtask
      .filter((_, index) => index % vertex.parallelism === subtask)
      .flatMap((snapshot) => snapshot?.committables ?? [])
    operators[uid] = {
      ...(keyed.length > 0 && { keyed: planted.has('neighbour-key-group') ? withoutOwnLastGroup(keyed) : keyed }),
      ...(Object.keys(operatorState).length > 0 && { operatorState }),
      ...(committables.length > 0 && { committables }),
    }
  }
  return operators
}

/** Of every old snapshot the groups of this subtask's range. */
function keyedShare(
  perSubtask: RecordedOperator['perSubtask'],
  vertex: JobVertex,
  subtask: SubtaskIndex,
): KeyedSnapshot[] {
  const { first, last } = keyGroupRange(vertex.parallelism, subtask, vertex.maxParallelism)
  return perSubtask.flatMap((snapshot) => {
    if (snapshot?.keyed === undefined) return []
    const groups = snapshot.keyed.groups.filter(({ keyGroup }) => keyGroup >= first && keyGroup <= last)
    return groups.length === 0 ? [] : [{ ...snapshot.keyed, groups }]
  })
}

/** Of what today's operator takes: what may be dropped is not given to one that would keep it as its own. */
function operatorStateShare(
  perSubtask: RecordedOperator['perSubtask'],
  taker: ChainedOperator,
  share: {
    readonly parallelism: number
    readonly subtask: SubtaskIndex
    readonly planted: ReadonlySet<PlantedFault>
  },
): Record<string, readonly OperatorStateShare[]> {
  const shares: Record<string, readonly OperatorStateShare[]> = {}
  const names = new Set(perSubtask.flatMap((snapshot) => Object.keys(snapshot?.operatorState ?? {})))
  for (const name of names) {
    const lists = perSubtask.map((snapshot) => snapshot?.operatorState?.[name])
    if (!lists.some((list) => list !== undefined && takes(taker, name, list))) continue
    const items = shareOfLists(lists, share)
    if (items.length > 0) shares[name] = items
  }
  return shares
}

function finalOf(
  vertex: JobVertex,
  subtask: SubtaskIndex,
  recorded: ReadonlyMap<string, RecordedOperator>,
): SubtaskSnapshot {
  const operators: Record<string, OperatorSnapshot> = {}
  for (const { uid } of vertex.chain) {
    const perSubtask = recorded.get(uid)!.perSubtask
    // At another parallelism the blocks of several subtasks would have to be merged, for state that nobody will read again.
    if (perSubtask.length !== vertex.parallelism) continue
    const { committables: _, ...state } = perSubtask[subtask] ?? {}
    if (Object.keys(state).length > 0) operators[uid] = state
  }
  return { operators, finished: true, bytes: 0, syncMs: 0, asyncMs: 0, alignmentMs: 0 }
}

/**
 * Planted: the subtask reads a neighbour's key group in place of the last of its own that holds anything. The keys in a neighbour's
 * block are never asked for here, and its own block stays unread: the group comes up empty, well-formed in every check, and only the
 * results can tell. (The block itself would be refused under another group's number, so it is left out.)
 */
function withoutOwnLastGroup(keyed: readonly KeyedSnapshot[]): KeyedSnapshot[] {
  let last: KeyGroupHandle | undefined
  for (const { groups } of keyed) for (const group of groups) if (group.handle !== undefined) last = group
  return keyed.map((snapshot) => ({
    ...snapshot,
    groups: snapshot.groups.map((group) =>
      group === last ? { keyGroup: group.keyGroup, watermark: group.watermark } : group,
    ),
  }))
}
