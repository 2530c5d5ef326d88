// Finds a vertex by its id.

import { invariant } from '../base/errors.ts'
import type { VertexId } from '../base/ids.ts'
import type { JobGraph, JobVertex } from './contract.ts'

/** Every id comes from the same graph: one that is not there is a broken invariant. */
export function vertexOf(graph: JobGraph, id: VertexId): JobVertex {
  const vertex = graph.vertices.find((candidate) => candidate.id === id)
  invariant(vertex !== undefined, `no vertex ${id} in the graph`)
  return vertex
}
