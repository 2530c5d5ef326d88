// What must hold in every manifest (style.md 13): asserted before it is written, and checked again after it was read.

import type { OperatorSnapshot } from './contract.ts'
import type { Manifest, ManifestVertex } from './manifest.ts'

/** A sentence that names the place, or undefined when everything fits. */
export function contradictionIn(manifest: Manifest): string | undefined {
  if (manifest.drained && manifest.kind !== 'savepoint') return 'a checkpoint that was drained'
  const vertices = new Set<string>()
  const uids = new Set<string>()
  for (const vertex of manifest.vertices) {
    if (vertices.has(vertex.id)) return `vertex ${vertex.id} stands there twice`
    vertices.add(vertex.id)
    for (const uid of vertex.uids) {
      if (uids.has(uid)) return `uid ${uid} stands there twice`
      uids.add(uid)
    }
    const found = contradictionInVertex(vertex, manifest)
    if (found !== undefined) return `vertex ${vertex.id}: ${found}`
  }
  const stray = Object.keys(manifest.enumerators).find((uid) => !uids.has(uid))
  return stray === undefined ? undefined : `an enumerator of ${stray}, which no vertex has`
}

/** Of what the job's own sources and sinks give, not Millrace: a sink may name its transactions as it likes. */
export function contradictionOfSubtasks(manifest: Manifest): string | undefined {
  for (const { operators } of manifest.vertices) {
    for (const [uid, perSubtask] of Object.entries(operators)) {
      const found = contradictionInOperatorState(perSubtask) ?? doubledTransaction(perSubtask)
      if (found !== undefined) return `${uid}: ${found}`
    }
  }
  return undefined
}

function contradictionInVertex(vertex: ManifestVertex, manifest: Manifest): string | undefined {
  const { parallelism, maxParallelism, finished } = vertex
  if (parallelism > maxParallelism) return `parallelism ${parallelism} above its max parallelism ${maxParallelism}`
  if (finished.length !== parallelism) return `${finished.length} finished flags for ${parallelism} subtasks`
  for (const [uid, perSubtask] of Object.entries(vertex.operators)) {
    if (!vertex.uids.includes(uid)) return `state of ${uid}, which is not in its chain`
    if (perSubtask.length !== parallelism) return `${uid}: ${perSubtask.length} snapshots for ${parallelism} subtasks`
    const found =
      contradictionInKeyGroups(perSubtask, maxParallelism) ??
      contradictionInOperatorState(perSubtask) ??
      doubledTransaction(perSubtask) ??
      laterTransaction(perSubtask, manifest)
    if (found !== undefined) return `${uid}: ${found}`
  }
  return undefined
}

/** Every key group of a keyed operator exactly once: one missing is lost state, one read twice is doubled state. */
function contradictionInKeyGroups(
  perSubtask: readonly (OperatorSnapshot | null)[],
  maxParallelism: number,
): string | undefined {
  if (perSubtask.every((snapshot) => snapshot?.keyed === undefined)) return undefined
  const ownerOf = new Map<number, number>()
  for (const [subtask, snapshot] of perSubtask.entries()) {
    for (const { keyGroup } of snapshot?.keyed?.groups ?? []) {
      const other = ownerOf.get(keyGroup)
      if (other !== undefined) return `key group ${keyGroup} of subtask ${subtask} is also subtask ${other}'s`
      if (keyGroup >= maxParallelism)
        return `key group ${keyGroup} of subtask ${subtask} is not below ${maxParallelism}`
      ownerOf.set(keyGroup, subtask)
    }
  }
  for (let group = 0; group < maxParallelism; group++) if (!ownerOf.has(group)) return `key group ${group} is missing`
  return undefined
}

function contradictionInOperatorState(perSubtask: readonly (OperatorSnapshot | null)[]): string | undefined {
  const redistributionOf = new Map<string, string>()
  for (const snapshot of perSubtask) {
    for (const [name, { redistribution }] of Object.entries(snapshot?.operatorState ?? {})) {
      const other = redistributionOf.get(name) ?? redistribution
      if (other !== redistribution) return `operator state ${name} is ${other} and ${redistribution}`
      redistributionOf.set(name, redistribution)
    }
  }
  return undefined
}

function doubledTransaction(perSubtask: readonly (OperatorSnapshot | null)[]): string | undefined {
  const names = new Set<string>()
  for (const { transaction } of committablesOf(perSubtask)) {
    if (names.has(transaction)) return `transaction ${transaction} stands there twice`
    names.add(transaction)
  }
  return undefined
}

function laterTransaction(
  perSubtask: readonly (OperatorSnapshot | null)[],
  { id }: Pick<Manifest, 'id'>,
): string | undefined {
  const later = committablesOf(perSubtask).find(({ checkpoint }) => checkpoint > id)
  return later && `transaction ${later.transaction} of checkpoint ${later.checkpoint} in ${id}`
}

function committablesOf(perSubtask: readonly (OperatorSnapshot | null)[]) {
  return perSubtask.flatMap((snapshot) => snapshot?.committables ?? [])
}
