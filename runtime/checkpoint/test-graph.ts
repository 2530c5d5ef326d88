// Job graphs by their shape alone, for tests of what reads nothing but the shape.

import { edgeId, vertexId } from '../base/ids.ts'
import type { JobEdge, JobGraph, JobVertex, Partitioning, TakenOperatorState } from '../job/contract.ts'
import type { OperatorFactory } from '../operators/contract.ts'
import type { TypeInfo } from '../record/contract.ts'

export interface VertexShape {
  readonly id: string
  readonly parallelism?: number
  readonly maxParallelism?: number
  readonly slotSharingGroup?: string
  /** Default: the vertex's id; a uid ending in `?` was not given by the job. */
  readonly uids?: readonly string[]
  readonly twoPhase?: boolean
  /** Its first operator is one. Default: that of the id 'source'. */
  readonly source?: boolean
  /** What its operators take. Default: what snapshots of tests hold. */
  readonly operatorState?: TakenOperatorState
  /** Default true: behind a keyBy. */
  readonly keyed?: boolean
}

export interface GraphShape {
  readonly vertices: readonly VertexShape[]
  readonly edges?: readonly (readonly [string, Partitioning, string])[]
  readonly maxParallelism?: number
  readonly autoUid?: boolean
}

const type = { name: 'test' } as TypeInfo<unknown>

export function graphOf({ vertices, edges = [], maxParallelism = 8, autoUid = false }: GraphShape): JobGraph {
  const jobEdges = edges.map(([source, partitioning, target], index): JobEdge => ({
    id: edgeId(index),
    source: vertexId(source),
    target: vertexId(target),
    input: 0,
    partitioning,
    keySelector: undefined,
    type,
  }))
  return {
    name: 'test',
    maxParallelism,
    hash: '00112233445566778899aabbccddeeff',
    edges: jobEdges,
    vertices: vertices.map((shape): JobVertex => {
      const id = vertexId(shape.id)
      return {
        id,
        name: shape.id,
        parallelism: shape.parallelism ?? 1,
        maxParallelism: shape.maxParallelism ?? maxParallelism,
        slotSharingGroup: shape.slotSharingGroup ?? 'default',
        chain: (shape.uids ?? [shape.id]).map((uid, index) => ({
          uid: uid.replace(/\?$/, ''),
          uidGiven: !uid.endsWith('?'),
          name: uid,
          factory: factoryOf(shape, index),
          outputs: [],
          operatorState: shape.operatorState ?? ['splits', 'all', 'rules', 'list', 'list 0'],
        })),
        keySelectors: [shape.keyed === false ? undefined : () => 0],
        inputs: jobEdges.filter(({ target }) => target === id).map((edge) => edge.id),
        outputs: jobEdges.filter(({ source }) => source === id).map((edge) => edge.id),
      }
    }),
    settings: {
      checkpointIntervalMs: 1000,
      checkpointMode: 'exactly-once',
      onCancellation: 'retain',
      checkpointTimeoutMs: 10_000,
      minPauseMs: 0,
      tolerableFailures: Infinity,
      retained: 1,
      restartStrategy: { type: 'none' },
      failoverStrategy: 'region',
      autoUid,
      bufferTimeoutMs: 100,
      freezeRecords: true,
      commitDeadlineMs: 10_000,
      onUnknownCommit: 'stop',
      channelDeadlineMs: 10_000,
    },
  }
}

function factoryOf({ id, source = id === 'source', twoPhase = false }: VertexShape, index: number): OperatorFactory {
  return (source && index === 0 ? { kind: 'source' } : { kind: 'operator', twoPhase }) as OperatorFactory
}
