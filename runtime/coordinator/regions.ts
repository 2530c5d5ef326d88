// Pipelined regions: the sets of subtasks that exchange records and so must restart together. All edges here are pipelined, so a
// region is a connected component; subtasks that only forward edges connect form regions of their own.

import { taskKey } from '../base/ids.ts'
import type { SubtaskIndex, TaskKey, VertexId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'

/** The number of each subtask's region, from 0. */
export function pipelinedRegions(graph: JobGraph): ReadonlyMap<TaskKey, number> {
  const parts = new Components()
  const parallelismOf = new Map<VertexId, number>(graph.vertices.map(({ id, parallelism }) => [id, parallelism]))
  for (const { source, target, partitioning } of graph.edges) {
    const producers = parallelismOf.get(source)!
    const consumers = parallelismOf.get(target)!
    if (partitioning === 'forward') {
      for (let index = 0; index < producers; index++) parts.join(key(source, index), key(target, index))
    } else {
      // Every producer meets every consumer: joining each to one of the other side joins them all.
      for (let index = 0; index < consumers; index++) parts.join(key(source, 0), key(target, index))
      for (let index = 1; index < producers; index++) parts.join(key(source, index), key(target, 0))
    }
  }
  const regionOf = new Map<TaskKey, number>()
  const numbers = new Map<TaskKey, number>()
  for (const { id, parallelism } of graph.vertices) {
    for (let index = 0; index < parallelism; index++) {
      const own = key(id, index)
      const root = parts.rootOf(own)
      const number = numbers.get(root) ?? numbers.size
      numbers.set(root, number)
      regionOf.set(own, number)
    }
  }
  return regionOf
}

function key(vertex: VertexId, index: number): TaskKey {
  return taskKey({ vertex, subtask: index as SubtaskIndex })
}

/** Disjoint sets with path halving. */
class Components {
  readonly #parents = new Map<TaskKey, TaskKey>()

  rootOf(member: TaskKey): TaskKey {
    let at = member
    for (;;) {
      const parent = this.#parents.get(at) ?? at
      if (parent === at) return at
      const above = this.#parents.get(parent) ?? parent
      this.#parents.set(at, above)
      at = above
    }
  }

  join(left: TaskKey, right: TaskKey): void {
    const from = this.rootOf(right)
    const to = this.rootOf(left)
    if (from !== to) this.#parents.set(from, to)
  }
}
