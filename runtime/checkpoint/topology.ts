// The shape of a job as checkpoints need it: which subtask is fed by which.

import type { VertexId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Topology } from './core-contract.ts'

export function topologyOf(graph: JobGraph): Topology {
  return {
    vertices: graph.vertices.map((vertex) => {
      const incoming = graph.edges.filter((edge) => edge.target === vertex.id)
      const producers = [...new Set(incoming.map((edge) => edge.source))]
      const fedFromEverySubtask = new Set<VertexId>(
        incoming.filter((edge) => edge.partitioning !== 'forward').map((edge) => edge.source),
      )
      return {
        id: vertex.id,
        parallelism: vertex.parallelism,
        producers,
        forwardProducers: producers.filter((producer) => !fedFromEverySubtask.has(producer)),
      }
    }),
  }
}
