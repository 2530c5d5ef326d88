// From a job to its graph: run the job function, settle what it left open, chain, and write vertices and edges down.

import { z } from 'zod'
import { edgeId, vertexId } from '../base/ids.ts'
import type { EdgeId } from '../base/ids.ts'
import { MillraceError } from '../base/errors.ts'
import type { OperatorFactory } from '../operators/contract.ts'
import { chainsOf, isForward } from './chaining.ts'
import type { Chain } from './chaining.ts'
import type {
  ChainedOperator,
  JobEdge,
  JobGraph,
  JobSettings,
  JobVertex,
  OutputTarget,
  Partitioning,
} from './contract.ts'
import type { Job } from './define-job.ts'
import { jobError } from './errors.ts'
import { graphHash } from './graph-hash.ts'
import { RecordingEnvironment } from './job-environment.ts'
import { settingsOf } from './settings.ts'
import { settleNodes } from './settle-nodes.ts'
import type { SettledNode } from './settle-nodes.ts'
import type { StreamInput } from './stream-node.ts'

export interface BuildOptions {
  /** Of operators that do not set theirs; wins over env.config.parallelism. */
  readonly parallelism?: number | undefined
  /** When neither says anything; 1 by default. */
  readonly parallelismDefault?: number
  /** Wins over env.config.maxParallelism. */
  readonly maxParallelism?: number | undefined
  /** As given by the user; checked by the job's schema. */
  readonly args?: unknown
  /** For jobs that do not name themselves. */
  readonly name?: string
  /** What the job function sees as env.job; the name by default. */
  readonly job?: string
  /** Win over env.config: what a command or a test says. */
  readonly settings?: Partial<JobSettings>
}

/** Throws MR-J… for whatever is wrong in the job file; the same job and options give the same graph and hash in every process. */
export function buildGraph(job: Job, options: BuildOptions): JobGraph {
  const args = argsOf(job, options.args)
  const name = job.name ?? options.name ?? 'job'
  const env = new RecordingEnvironment(options.job ?? name)
  run(job, env, args)
  const maxParallelism = options.maxParallelism ?? env.config.maxParallelism
  const config = { ...env.config, maxParallelism }
  const settings = settingsOf(config, options.settings)
  const parallelism = options.parallelism ?? env.config.parallelism ?? options.parallelismDefault ?? 1
  const nodes = settleNodes(env.nodes, { config, autoUid: settings.autoUid, parallelism })
  const { vertices, edges } = writeDown(nodes, settings)
  const hash = graphHash({ vertices, edges, maxParallelism, args, states: statesOf(nodes) })
  return { name, maxParallelism, vertices, edges, hash, settings }
}

/** What the job function gets of the user's arguments; throws MR-J01 unless they fit the job's schema. */
export function argsOf(job: Job, given: unknown): unknown {
  if (job.args === undefined) {
    const none = given === undefined || (typeof given === 'object' && given !== null && Object.keys(given).length === 0)
    if (!none) throw jobError('MR-J01', 'This job takes none.')
    return undefined
  }
  const parsed = job.args.safeParse(given ?? {})
  if (!parsed.success) throw jobError('MR-J01', `${z.prettifyError(parsed.error)}\n`, parsed.error)
  return parsed.data
}

function run(job: Job, env: RecordingEnvironment, args: unknown): void {
  let result: unknown
  try {
    result = (job.define as unknown as (env: RecordingEnvironment, args: unknown) => unknown)(env, args)
  } catch (error) {
    throw error instanceof MillraceError ? error : jobError('MR-J10', `${String(error)}.`, error)
  }
  if (!(result instanceof Promise)) return
  // What the function still throws has no reader any more; the error below says all.
  result.catch(() => {})
  throw jobError('MR-J11', 'It is async, or returns what an async function gave.')
}

interface Written {
  readonly vertices: JobVertex[]
  readonly edges: JobEdge[]
}

function writeDown(nodes: readonly SettledNode[], settings: JobSettings): Written {
  const chains = chainsOf(nodes)
  const chainOf = new Map(chains.flatMap((chain) => chain.members.map((member) => [member, chain] as const)))
  const edges: JobEdge[] = []
  /** By producer. */
  const targets = new Map<SettledNode, OutputTarget[]>(nodes.map((node) => [node, []]))
  const inputs = new Map<Chain, EdgeId[]>(chains.map((chain) => [chain, []]))
  for (const chain of chains) {
    for (const [index, member] of chain.members.entries()) {
      for (const input of member.node.spec.inputs) {
        const producer = nodes[input.node.index]!
        if (index > 0) {
          targets.get(producer)!.push({ tag: input.tag, to: 'chained', operator: index })
          continue
        }
        const edge = edgeId(edges.length)
        edges.push({
          id: edge,
          source: vertexId(chainOf.get(producer)!.members[0]!.uid),
          target: vertexId(member.uid),
          input: input.second === true ? 1 : 0,
          partitioning: partitioningOf(input.partitioning, isForward(input, producer, member)),
          keySelector: input.keySelector,
          type: input.type,
        })
        targets.get(producer)!.push({ tag: input.tag, to: 'edge', edge })
        inputs.get(chain)!.push(edge)
      }
    }
  }
  const vertices = chains.map((chain) => vertexOf(chain, { inputs: inputs.get(chain)!, targets, settings }))
  return { vertices, edges }
}

function partitioningOf(asked: StreamInput['partitioning'], forward: boolean): Partitioning {
  return asked ?? (forward ? 'forward' : 'rebalance')
}

interface VertexParts {
  readonly inputs: readonly EdgeId[]
  readonly targets: ReadonlyMap<SettledNode, readonly OutputTarget[]>
  readonly settings: JobSettings
}

function vertexOf(chain: Chain, parts: VertexParts): JobVertex {
  const head = chain.members[0]!
  const outputs = chain.members.flatMap((member) => parts.targets.get(member)!)
  return {
    id: vertexId(head.uid),
    name: chain.members.map((member) => member.name).join(' → '),
    parallelism: head.parallelism,
    maxParallelism: head.maxParallelism,
    slotSharingGroup: head.slotSharingGroup,
    chain: chain.members.map((member) => operatorOf(member, parts.targets.get(member)!, parts.settings)),
    keySelectors: keySelectorsOf(head.node.spec.inputs),
    inputs: parts.inputs,
    outputs: outputs.flatMap((target) => (target.to === 'edge' ? [target.edge] : [])),
  }
}

/** Unions feed one input with several streams, all dealt out by the same function. */
function keySelectorsOf(inputs: readonly StreamInput[]): JobVertex['keySelectors'] {
  const first = inputs.find((input) => input.second !== true)
  const second = inputs.find((input) => input.second === true)
  return second === undefined ? [first?.keySelector] : [first?.keySelector, second.keySelector]
}

function operatorOf(node: SettledNode, outputs: readonly OutputTarget[], settings: JobSettings): ChainedOperator {
  const { states, operatorState, timerMeaning } = node.node.spec
  return {
    uid: node.uid,
    uidGiven: node.uidGiven,
    name: node.name,
    factory: factoryOf(node, settings),
    outputs,
    states,
    ...(operatorState !== undefined && { operatorState }),
    ...(timerMeaning !== undefined && { timerMeaning }),
  }
}

function factoryOf(node: SettledNode, settings: JobSettings): OperatorFactory {
  const { work } = node.node.spec
  switch (work.kind) {
    case 'source':
      return { kind: 'source', source: work.source, watermarks: work.watermarks }
    case 'operator':
      return { kind: 'operator', create: work.create, twoPhase: false }
    case 'sink': {
      const twoPhase = work.sink.createCommitter !== undefined
      const ofSink = { ...settings, mayKeepState: node.uidGiven || settings.autoUid }
      return { kind: 'operator', create: () => work.create(ofSink), twoPhase, ...(twoPhase && { sink: work.sink }) }
    }
    default:
      return work satisfies never
  }
}

function statesOf(nodes: readonly SettledNode[]): Map<string, SettledNode['node']['spec']['states']> {
  return new Map(nodes.map(({ uid, node: { spec } }) => [uid, [...spec.states, ...(spec.broadcastStates ?? [])]]))
}
