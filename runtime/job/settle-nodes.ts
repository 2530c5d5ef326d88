// Settles what the job left open in its logical graph, and refuses what cannot run: uids, parallelism, slot-sharing groups.

import { createHash } from 'node:crypto'
import { jobError } from './errors.ts'
import { checkMaxParallelism } from './settings.ts'
import type { JobConfig } from './settings.ts'
import type { StreamNode } from './stream-node.ts'

export interface SettledNode {
  readonly node: StreamNode
  readonly uid: string
  readonly uidGiven: boolean
  readonly name: string
  readonly parallelism: number
  readonly maxParallelism: number
  readonly slotSharingGroup: string
}

export interface SettleOptions {
  readonly config: JobConfig
  readonly autoUid: boolean
  /** Of nodes that say nothing themselves. */
  readonly parallelism: number
}

/** In the order of the nodes, which is topological. Throws MR-J03 to MR-J07 with the place in the user's file. */
export function settleNodes(nodes: readonly StreamNode[], options: SettleOptions): SettledNode[] {
  if (nodes.length === 0) throw jobError('MR-J07', 'The job has no source and no sink.')
  refuseLooseEnds(nodes)
  if (!options.autoUid) refuseMissingUids(nodes)
  const settled: SettledNode[] = []
  const uids = new Map<string, StreamNode>()
  for (const node of nodes) {
    const {
      uid: given,
      name,
      parallelism = options.parallelism,
      maxParallelism = options.config.maxParallelism,
    } = node.options
    const uid = given ?? generatedUid(node, settled, uids)
    if (!/^[A-Za-z0-9._-]{1,100}$/.test(uid)) throw jobError('MR-J05', `'${uid}' of ${place(node)}.`)
    const other = uids.get(uid)
    if (other !== undefined) throw jobError('MR-J04', `'${uid}' of ${place(node)} and of ${place(other)}.`)
    uids.set(uid, node)
    checkMaxParallelism(`maxParallelism of ${place(node)}`, maxParallelism)
    if (!Number.isSafeInteger(parallelism) || parallelism < 1 || parallelism > maxParallelism)
      throw jobError('MR-J06', `${String(parallelism)} of ${place(node)}; the most is ${maxParallelism}.`)
    const slotSharingGroup = node.options.slotSharingGroup ?? inheritedGroup(node, settled)
    settled.push({
      node,
      uid,
      uidGiven: given !== undefined,
      name: name ?? uid,
      parallelism,
      maxParallelism,
      slotSharingGroup,
    })
  }
  return settled
}

function place(node: StreamNode): string {
  return `the ${node.spec.kind}${node.options.name === undefined ? '' : ` '${node.options.name}'`} at ${node.location}`
}

function refuseLooseEnds(nodes: readonly StreamNode[]): void {
  const read = new Set(nodes.flatMap((node) => node.spec.inputs.map((input) => input.node)))
  const loose = nodes.filter((node) => node.spec.work.kind !== 'sink' && !read.has(node))
  if (loose.length > 0) throw jobError('MR-J07', `Nobody reads ${placesOf(loose)}.`)
}

function refuseMissingUids(nodes: readonly StreamNode[]): void {
  const without = nodes.filter((node) => node.options.uid === undefined && node.spec.stateful)
  if (without.length > 0) throw jobError('MR-J03', `${placesOf(without)}.`)
}

/** A line each: who mends one wants to know of the others. */
function placesOf(nodes: readonly StreamNode[]): string {
  return nodes.map(place).join(',\n')
}

/**
 * The same in every process that loads the job, and the same after a change elsewhere in it: made of the operator's kind, its
 * inputs' uids, and its place among operators equal in both.
 */
function generatedUid(
  node: StreamNode,
  settled: readonly SettledNode[],
  uids: ReadonlyMap<string, StreamNode>,
): string {
  const inputs = node.spec.inputs.map((input) => [
    settled[input.node.index]!.uid,
    input.tag ?? null,
    input.partitioning ?? null,
    // Only where there is one, so that uids of operators with one input stay what they were.
    ...(input.second === true ? ['second'] : []),
  ])
  for (let place = 0; ; place++) {
    const digest = createHash('sha256')
      .update(JSON.stringify([node.spec.kind, inputs, place]))
      .digest('hex')
    const uid = `${node.spec.kind}-${digest.slice(0, 8)}`
    if (!uids.has(uid)) return uid
  }
}

function inheritedGroup(node: StreamNode, settled: readonly SettledNode[]): string {
  const groups = new Set(node.spec.inputs.map((input) => settled[input.node.index]!.slotSharingGroup))
  const [only] = groups
  return groups.size === 1 && only !== undefined ? only : 'default'
}
