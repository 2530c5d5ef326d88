// Which operators run joined in one task: neighbours with nothing to exchange between them.

import type { SettledNode } from './settle-nodes.ts'
import type { StreamInput } from './stream-node.ts'

/** The nodes of one vertex. The first reads the vertex's input; the others follow it as a tree, each behind its producer. */
export interface Chain {
  readonly members: readonly SettledNode[]
}

/** In topological order. Every node is in exactly one chain. */
export function chainsOf(nodes: readonly SettledNode[]): Chain[] {
  const chainOf = new Map<SettledNode, SettledNode[]>()
  const chains: { readonly members: SettledNode[] }[] = []
  // Nodes come in topological order, so a node's producers have their chains; a chain's first node comes after all that it reads.
  for (const node of nodes) {
    const producer = chainableProducer(node, nodes)
    const members = producer === undefined ? undefined : chainOf.get(producer)
    if (members === undefined) {
      const chain = { members: [node] }
      chains.push(chain)
      chainOf.set(node, chain.members)
    } else {
      members.push(node)
      chainOf.set(node, members)
    }
  }
  return chains
}

/** The producer to whose chain the node belongs; undefined: the node begins a chain of its own. */
function chainableProducer(node: SettledNode, nodes: readonly SettledNode[]): SettledNode | undefined {
  const { inputs } = node.node.spec
  // Several inputs meet in an input gate, with its alignment and its minimum of watermarks.
  if (inputs.length !== 1 || inputs[0]!.second === true) return undefined
  const producer = nodes[inputs[0]!.node.index]!
  const joined =
    isForward(inputs[0]!, producer, node) &&
    producer.slotSharingGroup === node.slotSharingGroup &&
    // Only what begins a chain has key groups; one that says nothing of their number joins any chain.
    (node.node.options.maxParallelism === undefined || producer.maxParallelism === node.maxParallelism) &&
    producer.node.options.chaining &&
    node.node.options.chaining
  return joined ? producer : undefined
}

/** Subtask i to subtask i. */
export function isForward(input: StreamInput, producer: SettledNode, consumer: SettledNode): boolean {
  return input.partitioning === undefined && producer.parallelism === consumer.parallelism
}
