import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { incarnation, jobId, start } from '../base/ids.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import { defineJob } from '../job/define-job.ts'
import type { KeyedStream } from '../job/keyed-stream.ts'
import type { OperatorStream } from '../job/stream.ts'
import { plainSink, stillSource } from '../job/test-connectors.ts'
import { sessionWindows, tumblingWindows } from '../operators/window-assigner.ts'
import { MemorySnapshots, range, snapshotOf } from '../state/conformance-harness.ts'
import type { StateDescriptor } from '../state/contract.ts'
import { descriptionOf } from '../state/description.ts'
import { listState, mapState, valueState } from '../state/descriptors.ts'
import { createHeapBackend } from '../state/heap/backend.ts'
import { assignRestore, whyNotRestorable } from './assignment.ts'
import { decodeManifest, encodeManifest, fromCollected } from './manifest.ts'
import type { Manifest } from './manifest.ts'
import { graphOf } from './test-graph.ts'
import { collectedOf, keyedOf, subtaskSnapshot } from './test-snapshots.ts'

const strict = { allowNonRestoredState: false, commitsConfirmed: true }
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

/** With one timer of the operator under the uid 'count', as its backend writes it, and no other state. */
async function manifestWithTimer(graph: JobGraph): Promise<Manifest> {
  const { timerMeaning } = graph.vertices.flatMap(({ chain }) => chain).find(({ uid }) => uid === 'count')!
  const backend = createHeapBackend({ ...range(), timerMeaning })
  backend.setKey('key')
  backend.timers.register('event', 5)
  const keyed = await snapshotOf(backend, new MemorySnapshots())
  const collected = collectedOf(graph, (vertex) => subtaskSnapshot(vertex === 'count' ? { count: { keyed } } : {}))
  const meta = { job: jobId('job'), start: start(1), incarnation: incarnation(1), graph, enumerators: new Map() }
  return decodeManifest(encodeManifest(fromCollected(collected, meta)), 'here')
}

function assign(manifest: Manifest, ...states: readonly StateDescriptor[]): unknown {
  return assignTo(graphWith(states), manifest)
}

function assignTo(graph: JobGraph, manifest: Manifest): unknown {
  return assignRestore(manifest, graph, strict)
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

  it('holds timers of another kind of operator is refused: they would be taken for its own', async () => {
    const event = z.object({ name: z.string(), at: z.number() })
    const kinds: Readonly<
      Record<string, (keyed: KeyedStream<string, z.infer<typeof event>>) => OperatorStream<unknown>>
    > = {
      process: (keyed) => keyed.process({ process: () => undefined }),
      connect: (keyed) => keyed.connect(keyed).process({ process: () => undefined, processSecond: () => undefined }),
      'windows of 1 ms': (keyed) => keyed.window(tumblingWindows({ sizeMs: 1 })).reduce((left) => left),
      'windows of 2 ms': (keyed) => keyed.window(tumblingWindows({ sizeMs: 2 })).reduce((left) => left),
      sessions: (keyed) => keyed.window(sessionWindows({ gapMs: 1 })).reduce((left) => left),
      'interval join': (keyed) =>
        keyed
          .intervalJoin(keyed)
          .between(0, 1)
          .process(() => undefined),
      reduce: (keyed) => keyed.reduce((left) => left),
    }
    const graphs = Object.entries(kinds).map(([kind, define]) => {
      const job = defineJob((env) => {
        const keyed = env.source(stillSource('events', event), { uid: 'events' }).keyBy(({ name }) => name)
        define(keyed).uid('count').sinkTo(plainSink()).uid('out')
      })
      return { kind, graph: buildGraph(job, { maxParallelism: 8 }) }
    })
    const fitting: string[] = []
    for (const then of graphs.slice(0, -1)) {
      const manifest = await manifestWithTimer(then.graph)
      for (const { kind, graph } of graphs) {
        const reasons = whyNotRestorable(manifest, graph, strict)
        if (reasons.length === 0) fitting.push(`${then.kind} to ${kind}`)
        else expect(String(reasons)).toMatch(/MR-T02.*Operator 'count', state 'timers': they were stored as /)
      }
    }
    const same = graphs.slice(0, -1).map(({ kind }) => `${kind} to ${kind}`)
    expect(fitting.sort()).toEqual([...same, 'process to connect', 'connect to process'].sort())
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
