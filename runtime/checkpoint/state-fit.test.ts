import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { incarnation, jobId, start } from '../base/ids.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import { defineJob } from '../job/define-job.ts'
import { plainSink, stillSource } from '../job/test-connectors.ts'
import type { StateDescriptor } from '../state/contract.ts'
import { descriptionOf } from '../state/description.ts'
import { listState, mapState, valueState } from '../state/descriptors.ts'
import { assignRestore } from './assignment.ts'
import { decodeManifest, encodeManifest, fromCollected } from './manifest.ts'
import type { Manifest } from './manifest.ts'
import { graphOf } from './test-graph.ts'
import { collectedOf, keyedOf, subtaskSnapshot } from './test-snapshots.ts'

const total = z.object({ count: z.int(), gone: z.string() })

function graphWith(states: readonly StateDescriptor[], parallelism = 1): JobGraph {
  const graph = graphOf({ vertices: [{ id: 'count', parallelism }] })
  return {
    ...graph,
    vertices: graph.vertices.map((vertex) => ({
      ...vertex,
      chain: vertex.chain.map((operator) => ({ ...operator, states })),
      keySelectors: [() => 'key'],
    })),
  }
}

/** As it comes back from the store. By subtask: how it had declared its state. */
function manifestOf(...bySubtask: readonly (readonly StateDescriptor[])[]): Manifest {
  const parallelism = bySubtask.length
  const graph = graphWith([], parallelism)
  const collected = collectedOf(graph, (_, subtask) => {
    const keyed = keyedOf({ parallelism, subtask, maxParallelism: 8 })
    return subtaskSnapshot({ count: { keyed: { ...keyed, states: bySubtask[subtask]!.map(descriptionOf) } } })
  })
  const meta = { job: jobId('job'), start: start(1), incarnation: incarnation(1), graph, enumerators: new Map() }
  return decodeManifest(encodeManifest(fromCollected(collected, meta)), 'here')
}

function assign(manifest: Manifest, ...states: readonly StateDescriptor[]): unknown {
  return assignTo(graphWith(states), manifest)
}

function assignTo(graph: JobGraph, manifest: Manifest): unknown {
  return assignRestore(manifest, graph, { allowNonRestoredState: false, commitsConfirmed: true })
}

describe('a restore point whose keyed state', () => {
  it('can become the state of today is assigned, also where nobody declares it any more', () => {
    const manifest = manifestOf([valueState('total', total), listState('seen', z.int(), { ttl: { ms: 5 } })])
    const evolved = z.object({ count: z.number(), unit: z.string().default('km') })
    assign(manifest, valueState('total', evolved, { ttl: { ms: 1 } }), listState('seen', z.number()))
    assign(manifest, valueState('new', z.int()))
  })

  it('cannot is refused before anything is assigned, with operator, state and what differs', () => {
    const manifest = manifestOf([valueState('total', total), mapState('pages', { key: 'string', value: z.int() })])
    const cases: readonly (readonly [StateDescriptor, string])[] = [
      [valueState('total', total.extend({ more: z.int() })), "'total': field more is new, and has no default."],
      [valueState('total'), "'total': the data was written as schema"],
      [listState('total', total), "'total': it was stored as value and is list now."],
      [
        mapState('pages', { key: 'number', value: z.int() }),
        "'pages': its map keys were stored as string and are number now.",
      ],
    ]
    for (const [state, reason] of cases) {
      expect(() => assign(manifest, valueState('other'), state)).toThrow(`MR-T02`)
      expect(() => assign(manifest, state)).toThrow(`Operator 'count', state ${reason}`)
    }
  })

  it('has the name of a broadcast state is not held against that one: they lie apart', () => {
    const limit = z.object({ name: z.string() })
    const graph = buildGraph(
      defineJob((env) => {
        const broadcast = { limits: mapState('limits', { key: 'string', value: limit }) }
        env
          .source(stillSource('orders', limit), { uid: 'orders' })
          .keyBy(({ name }) => name)
          .connect(env.source(stillSource('limits', limit), { uid: 'limits' }).broadcast(broadcast))
          .process<string>({
            state: { limits: valueState('limits', z.int()) },
            process: () => undefined,
            processBroadcast: () => undefined,
          })
          .uid('count')
          .sinkTo(plainSink())
          .uid('out')
      }),
      { maxParallelism: 8 },
    )
    expect(() => assignTo(graph, manifestOf([valueState('limits', z.int())]))).not.toThrow()
    expect(() => assignTo(graph, manifestOf([valueState('limits', z.string())]))).toThrow(
      "Operator 'count', state 'limits': the value was string and is int today.",
    )
  })

  it('one subtask alone stored in another form is refused for that form', () => {
    const manifest = manifestOf([valueState('total', z.int())], [valueState('total', z.string())])
    expect(() => assign(manifest, valueState('total', z.int()))).toThrow(
      "Operator 'count', state 'total': the value was string and is int today.",
    )
  })

  it('has a description that cannot be understood is called damaged', () => {
    const manifest = manifestOf([valueState('total', z.int())])
    const text = JSON.stringify(manifest).replaceAll('"layout":{"kind":"int"}', '"layout":{"kind":"riddle"}')
    const damaged = JSON.parse(text.replaceAll(/"fingerprint":"[0-9a-f]{16}"/g, '"fingerprint":"other"')) as Manifest
    expect(() => assign(damaged, valueState('total', z.int()))).toThrow(/MR-T03.*Operator 'count', state 'total'/)
  })
})
