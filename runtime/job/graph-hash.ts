// The graph's hash: equal in all processes of one revision of a job, so that a worker with another one is told at once.

import { createHash } from 'node:crypto'
import { unreachable } from '../base/errors.ts'
import type { StateDescriptor } from '../state/contract.ts'
import type { JobEdge, JobVertex } from './contract.ts'

export interface HashedGraph {
  readonly vertices: readonly JobVertex[]
  readonly edges: readonly JobEdge[]
  readonly maxParallelism: number
  readonly args: unknown
  /** Declared keyed and broadcast state by uid. */
  readonly states: ReadonlyMap<string, readonly StateDescriptor[]>
}

/** Raised when the hash covers something else. */
const HASH_VERSION = 1

/** 32 hex digits over uids, chains, edges, partitionings, schema fingerprints, parallelism and args; not over names, settings or code. */
export function graphHash(graph: HashedGraph): string {
  const covered = {
    version: HASH_VERSION,
    maxParallelism: graph.maxParallelism,
    vertices: graph.vertices.map((vertex) => ({
      id: vertex.id,
      parallelism: vertex.parallelism,
      ...(vertex.maxParallelism === graph.maxParallelism ? {} : { maxParallelism: vertex.maxParallelism }),
      chain: vertex.chain.map(({ uid, outputs }) => ({
        uid,
        outputs,
        states: (graph.states.get(uid) ?? []).map(coveredState),
      })),
    })),
    edges: graph.edges.map(({ id, source, target, input, partitioning, type }) => ({
      id,
      source,
      target,
      ...(input === 0 ? {} : { input }),
      partitioning,
      type: type.row.description.fingerprint,
    })),
    args: graph.args,
  }
  return createHash('sha256').update(canonical(covered)).digest('hex').slice(0, 32)
}

function coveredState(state: StateDescriptor): unknown {
  const type = state.kind === 'aggregating' ? state.accumulator : state.value
  const { mapKey, mapKeyMeaning } = state.kind === 'map' ? state : {}
  const meaning = mapKeyMeaning === undefined ? {} : { mapKeyMeaning }
  return { name: state.name, kind: state.kind, mapKey, ...meaning, type: type.row.description.fingerprint }
}

/** JSON with sorted names, and with the values that JSON lacks told apart: arguments may hold dates, bigints, maps and sets. */
function canonical(value: unknown): string {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return JSON.stringify(value)
    case 'number':
      return Object.is(value, -0) ? '0' : String(value)
    case 'bigint':
      return `${value}n`
    case 'undefined':
      return 'undefined'
    case 'object':
      return canonicalObject(value)
    case 'function':
    case 'symbol':
      // A transform of the user's schema may give anything; code is not covered.
      return typeof value
    default:
      return unreachable(value as never)
  }
}

function canonicalObject(value: object | null): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (value instanceof Date) return `date(${value.getTime()})`
  if (value instanceof Map) return `map(${canonical([...value.entries()])})`
  if (value instanceof Set) return `set(${canonical([...value])})`
  const names = Object.keys(value).sort()
  const fields = names.map((name) => `${JSON.stringify(name)}:${canonical((value as Record<string, unknown>)[name])}`)
  return `{${fields.join(',')}}`
}
