// A job graph as people and programs read it.

import { counted } from '../base/counted.ts'
import { placeTasks } from '../coordinator/placement.ts'
import type { JobGraph, Partitioning } from '../job/contract.ts'

export interface GraphReport {
  readonly maxParallelism: number
  /** How many the job needs. */
  readonly slots: number
  readonly vertices: readonly VertexReport[]
  readonly edges: readonly EdgeReport[]
  /** Of operators that were given none. */
  readonly generatedUids: readonly string[]
}

export interface VertexReport {
  readonly id: string
  readonly name: string
  readonly parallelism: number
  readonly maxParallelism: number
  readonly slotSharingGroup: string
  readonly operators: readonly { readonly uid: string; readonly uidGiven: boolean; readonly name: string }[]
}

export interface EdgeReport {
  /** Ids of vertices. */
  readonly source: string
  readonly target: string
  readonly partitioning: Partitioning
}

export function graphReport(graph: JobGraph): GraphReport {
  const vertices = graph.vertices.map(({ id, name, parallelism, maxParallelism, slotSharingGroup, chain }) => ({
    id: String(id),
    name,
    parallelism,
    maxParallelism,
    slotSharingGroup,
    operators: chain.map(({ uid, uidGiven, name: called }) => ({ uid, uidGiven, name: called })),
  }))
  return {
    maxParallelism: graph.maxParallelism,
    slots: placeTasks(graph).slotCount,
    vertices,
    edges: graph.edges.map(({ source, target, partitioning }) => ({
      source: String(source),
      target: String(target),
      partitioning,
    })),
    generatedUids: vertices.flatMap(({ operators }) =>
      operators.flatMap(({ uid, uidGiven }) => (uidGiven ? [] : [uid])),
    ),
  }
}

export function graphText({ vertices, edges, slots, maxParallelism }: GraphReport): string {
  const subtasks = vertices.reduce((sum, { parallelism }) => sum + parallelism, 0)
  return [
    `${counted(vertices.length, 'vertex', 'vertices')}, ${counted(subtasks, 'subtask', 'subtasks')}, ${counted(slots, 'slot', 'slots')}, max parallelism ${maxParallelism}`,
    ...vertices.flatMap((vertex) => vertexLines(vertex, { edges, maxParallelism })),
  ].join('\n')
}

function vertexLines(
  { id, parallelism, maxParallelism, slotSharingGroup, operators }: VertexReport,
  graph: { readonly edges: readonly EdgeReport[]; readonly maxParallelism: number },
): string[] {
  const more = [
    `parallelism ${parallelism}`,
    ...(maxParallelism === graph.maxParallelism ? [] : [`max parallelism ${maxParallelism}`]),
    ...(slotSharingGroup === 'default' ? [] : [`slot-sharing group ${slotSharingGroup}`]),
  ]
  return [
    '',
    `${id}  ${more.join(', ')}`,
    ...operators.map(({ uid, uidGiven, name }) => {
      const called = name === uid ? '' : `  ${name}`
      return `  uid ${uid}${uidGiven ? '' : ' (generated)'}${called}`
    }),
    ...graph.edges
      .filter(({ source }) => source === id)
      .map(({ target, partitioning }) => `  → ${target}  ${partitioning}`),
  ]
}
