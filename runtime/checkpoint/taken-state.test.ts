import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { incarnation, jobId, start } from '../base/ids.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import { defineJob } from '../job/define-job.ts'
import type { Stream } from '../job/stream.ts'
import { plainSink, stillSource, twoPhaseSink } from '../job/test-connectors.ts'
import { mapState } from '../state/descriptors.ts'
import { assignRestore, whyNotRestorable } from './assignment.ts'
import type { RestoreAssignment, RestoreOptions } from './assignment.ts'
import type { OperatorSnapshot, OperatorStateSnapshot } from './contract.ts'
import { fromCollected } from './manifest.ts'
import type { Manifest } from './manifest.ts'
import { codec, collectedOf, handleIn, listOf, subtaskSnapshot, transaction } from './test-snapshots.ts'

const strict: RestoreOptions = { allowNonRestoredState: false, commitsConfirmed: false }
const lax: RestoreOptions = { ...strict, allowNonRestoredState: true }

const Order = z.object({ id: z.string() })
type Order = z.infer<typeof Order>

/** What the job has under the uid that is kept. */
const kinds = {
  map: (orders) =>
    orders
      .map((order) => order, { schema: Order })
      .uid('kept')
      .sinkTo(plainSink())
      .uid('out'),
  mapAsync: (orders) =>
    orders
      .mapAsync((order) => Promise.resolve(order), { schema: Order, timeoutMs: 1000 })
      .uid('kept')
      .sinkTo(plainSink())
      .uid('out'),
  broadcast: (orders) =>
    orders
      .connect(orders.broadcast({ rules: mapState('rules', { key: 'string', value: z.int() }) }))
      .process<Order>({ process: () => undefined, processBroadcast: () => undefined })
      .uid('kept')
      .sinkTo(plainSink())
      .uid('out'),
  sink: (orders) => orders.sinkTo(plainSink()).uid('kept'),
  twoPhaseSink: (orders) => orders.sinkTo(twoPhaseSink()).uid('kept'),
} satisfies Record<string, (orders: Stream<Order>) => unknown>

type Kind = keyof typeof kinds | 'source'

function graphWith(kind: Kind): JobGraph {
  return buildGraph(
    defineJob((env) => {
      const orders = env.source(stillSource('orders', Order), { uid: kind === 'source' ? 'kept' : 'orders' })
      if (kind === 'source') orders.sinkTo(plainSink()).uid('out')
      else kinds[kind](orders)
    }),
    { parallelism: 2 },
  )
}

/** Written by that kind, with this under the kept uid in each subtask. */
function manifestOf(kind: Kind, snapshot: OperatorSnapshot): Manifest {
  const graph = graphWith(kind)
  const enumerators = kind === 'source' ? new Map([['kept', { codec, handle: handleIn('enumerator') }]]) : new Map()
  const collected = collectedOf(graph, (id) => {
    const holds = graph.vertices.find((vertex) => vertex.id === id)!.chain.some(({ uid }) => uid === 'kept')
    return subtaskSnapshot(holds ? { kept: snapshot } : {})
  })
  return fromCollected(collected, {
    job: jobId('job'),
    start: start(1),
    incarnation: incarnation(1),
    graph,
    enumerators,
  })
}

const holding = (name: string, state: OperatorStateSnapshot): OperatorSnapshot => ({ operatorState: { [name]: state } })

const held = {
  source: holding('splits', listOf('split', 'splits')),
  mapAsync: holding('in-flight', listOf('split', 'flights')),
  broadcast: holding('rules', listOf('broadcast', 'rules')),
  sink: holding('writer', listOf('split', 'writer')),
  twoPhaseSink: { committables: [transaction('t')] },
} satisfies Partial<Record<Kind, OperatorSnapshot>>

function sharesOf({ subtasks }: RestoreAssignment): unknown[] {
  return [...subtasks.values()].flatMap(({ restored }) => restored.operators['kept'] ?? [])
}

describe('what was stored under a kept uid', () => {
  it.each(Object.entries(held))('by a %s is taken by its own kind', (kind, snapshot) => {
    const assignment = assignRestore(manifestOf(kind as Kind, snapshot), graphWith(kind as Kind), strict)
    expect(sharesOf(assignment).map((share) => Object.keys(share as object))).toEqual([
      Object.keys(snapshot),
      Object.keys(snapshot),
    ])
    expect(assignment.dropped).toEqual([])
  })

  const others: readonly (readonly [keyof typeof held, Kind, RegExp])[] = [
    ['mapAsync', 'map', /^MR-C11 .*uid kept.*of another kind.*with in-flight/],
    ['mapAsync', 'broadcast', /^MR-C11 .*uid kept.*with in-flight/],
    ['mapAsync', 'sink', /^MR-C11 .*uid kept.*with in-flight/],
    ['broadcast', 'map', /^MR-C11 .*uid kept.*with rules/],
    ['broadcast', 'mapAsync', /^MR-C11 .*uid kept.*with rules/],
    ['sink', 'map', /^MR-C11 .*uid kept.*with writer/],
    ['source', 'map', /^MR-C11 .*uid kept.*with splits, its split enumerator/],
  ]

  it.each(others)('by a %s is refused when a %s has the uid, and dropped only if allowed', (then, now, refusal) => {
    const manifest = manifestOf(then, held[then])
    expect(() => assignRestore(manifest, graphWith(now), strict)).toThrow(refusal)
    const assignment = assignRestore(manifest, graphWith(now), lax)
    expect(assignment.dropped).toEqual(['kept'])
    // Not given to an operator that would keep it as its own.
    expect(sharesOf(assignment)).toEqual([{}, {}])
    expect(assignment.enumerators.size).toBe(0)
  })

  it.each(['map', 'sink'] as const)(
    'as transactions is refused when a %s has the uid, also where state may be dropped',
    (now) => {
      const manifest = manifestOf('twoPhaseSink', held.twoPhaseSink)
      expect(() => assignRestore(manifest, graphWith(now), lax)).toThrow(/^MR-C12 .*uid kept.*2 transactions \(t, t\)/)
      expect(assignRestore(manifest, graphWith(now), { ...strict, commitsConfirmed: true }).dropped).toEqual([])
    },
  )

  it('and holds nothing may become anything', () => {
    const empty = holding('in-flight', { ...listOf('split', 'flights'), count: 0 })
    expect(whyNotRestorable(manifestOf('mapAsync', empty), graphWith('map'), strict)).toEqual([])
  })
})
