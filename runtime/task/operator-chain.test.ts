import { describe, expect, it } from 'vitest'
import { edgeId, vertexId } from '../base/ids.ts'
import type { EdgeId } from '../base/ids.ts'
import { InvariantError } from '../base/errors.ts'
import { Metrics } from '../base/metrics.ts'
import type { ChainedOperator, JobVertex, OutputTarget } from '../job/contract.ts'
import type { OperatorContext, Output, StreamOperator } from '../operators/contract.ts'
import type { StreamEvent } from '../record/element.ts'
import { MIN_WATERMARK } from '../record/element.ts'
import { OperatorChain } from './operator-chain.ts'
import type { EdgeWriter } from './operator-chain.ts'

const main = (operator: number): OutputTarget => ({ tag: undefined, to: 'chained', operator })
const edge = (id: number, tag?: string): OutputTarget => ({ tag, to: 'edge', edge: edgeId(id) })

/** Each operator adds its name to a record, and writes down what it is told. */
function chainOf(
  shape: Readonly<Record<string, readonly OutputTarget[]>>,
  options: { readonly finishedBefore?: boolean; readonly freeze?: (value: unknown) => unknown } = {},
) {
  const story: string[] = []
  const written = new Map<EdgeId, string[]>()
  const room = { ready: true }
  const operatorOf = (name: string): StreamOperator<string, string> => {
    let output!: Output<string>
    return {
      open: (_context: OperatorContext, given: Output<string>) => {
        output = given
        story.push(`open ${name}`)
      },
      process: (value: string, timestamp: number) => {
        if (value.startsWith('late')) output.emitTo('late', value, timestamp)
        else output.emit(`${value}${name}`, timestamp)
      },
      onWatermark: (watermark: number) => {
        story.push(`${name} at ${watermark}`)
      },
      finish: () => output.emit(`end of ${name};`, 0),
      close: () => {
        story.push(`close ${name}`)
      },
    }
  }
  const names = Object.keys(shape)
  const edges = [
    ...new Set(
      Object.values(shape)
        .flat()
        .flatMap((target) => (target.to === 'edge' ? [target.edge] : [])),
    ),
  ]
  const writers = new Map<EdgeId, EdgeWriter>()
  for (const id of edges) {
    const lines: string[] = []
    written.set(id, lines)
    const event = (said: StreamEvent): void =>
      void lines.push(said.kind === 'watermark' ? `watermark ${said.timestamp}` : said.kind)
    writers.set(id, {
      emit: (value) => void lines.push(String(value)),
      event,
      flush: () => void lines.push('flush'),
      get ready() {
        return room.ready
      },
    })
  }
  const vertex: JobVertex = {
    id: vertexId('v'),
    name: 'v',
    parallelism: 1,
    maxParallelism: 8,
    slotSharingGroup: 'default',
    chain: names.map((name): ChainedOperator => ({
      uid: name,
      uidGiven: true,
      name,
      factory:
        name === 'source'
          ? ({ kind: 'source' } as ChainedOperator['factory'])
          : { kind: 'operator', create: () => operatorOf(name), twoPhase: false },
      outputs: shape[name]!,
    })),
    keySelectors: [undefined],
    inputs: [],
    outputs: edges,
  }
  const metrics = new Metrics()
  const chain = new OperatorChain({
    vertex,
    writers,
    freeze: options.freeze,
    metrics,
    finishedBefore: options.finishedBefore ?? false,
  })
  return {
    chain,
    story,
    written: (id: number) => written.get(edgeId(id))!,
    metrics,
    room,
    context: () => ({}) as OperatorContext,
  }
}

describe('an operator chain', () => {
  it('opens consumers first, so that nobody is given a record before it is open, and closes from the head on', async () => {
    const { chain, story, context } = chainOf({ a: [main(1)], b: [main(2)], c: [] })
    await chain.open(context)
    await chain.close()
    expect(story).toEqual(['open c', 'open b', 'open a', 'close a', 'close b', 'close c'])
  })

  it('passes a record to each target once: chained operators, edges, side outputs', async () => {
    const { chain, written, context, metrics } = chainOf({ a: [main(1), edge(0), edge(2, 'late')], b: [edge(1)] })
    await chain.open(context)
    chain.head!.process('1', 0)
    chain.head!.process('late', 0)
    expect([written(0), written(1), written(2)]).toEqual([['1a'], ['1ab'], ['late']])
    expect(chain.recordsOut).toBe(3)
    expect(metrics.values.get('records_dropped_total')).toBeUndefined()
  })

  it('counts what goes to a side output that nobody reads', async () => {
    const { chain, written, context, metrics } = chainOf({ a: [edge(0)] })
    await chain.open(context)
    chain.head!.process('late', 0)
    expect(written(0)).toEqual([])
    expect(metrics.values.get('records_dropped_total')).toBe(1)
  })

  it('freezes a record once for all that share it', async () => {
    const frozen: unknown[] = []
    const { chain, context } = chainOf(
      { a: [main(1), edge(0)], b: [] },
      { freeze: (value) => (frozen.push(value), value) },
    )
    await chain.open(context)
    chain.head!.process('1', 0)
    expect(frozen).toEqual(['1a'])
  })

  it('forwards a watermark through every operator once, and to each edge behind what its operator emits', async () => {
    const { chain, story, written, context } = chainOf({
      a: [main(1), { tag: 'late', to: 'chained', operator: 1 }, edge(0)],
      b: [edge(1)],
    })
    await chain.open(context)
    story.length = 0
    expect(chain.watermarkOf(1)).toBe(MIN_WATERMARK)
    chain.setHeadWatermark(7)
    expect([chain.watermarkOf(0), chain.watermarkOf(1)]).toEqual([7, MIN_WATERMARK])
    chain.forwardWatermark(7)
    expect(story).toEqual(['a at 7', 'b at 7'])
    expect([written(0), written(1)]).toEqual([['watermark 7'], ['watermark 7']])
    expect(chain.watermarkOf(1)).toBe(7)
  })

  it('finishes from the head on: what an operator emits at its end still passes those behind it', async () => {
    const { chain, written, context } = chainOf({ a: [main(1)], b: [edge(0)] })
    await chain.open(context)
    chain.finish()
    expect(written(0)).toEqual(['end of a;b', 'end of b;'])
  })

  it('puts barriers, status and end on every edge, and is ready only if all of them are', async () => {
    const { chain, written, room } = chainOf({ source: [edge(0), edge(1)] })
    chain.forwardStatus(true)
    chain.event({ kind: 'end' })
    chain.flush()
    expect([written(0), written(1)]).toEqual([
      ['status', 'end', 'flush'],
      ['status', 'end', 'flush'],
    ])
    expect(chain.ready).toBe(true)
    room.ready = false
    expect(chain.ready).toBe(false)
  })

  it('of a vertex that had finished makes no operator: only time and the end of data pass (rule 19)', async () => {
    const { chain, story, written, context } = chainOf({ a: [main(1)], b: [edge(0)] }, { finishedBefore: true })
    await chain.open(context)
    chain.forwardWatermark(9)
    chain.finish()
    chain.event({ kind: 'end' })
    expect([...chain.operators()]).toEqual([])
    expect(story).toEqual([])
    expect(written(0)).toEqual(['watermark 9', 'end'])
  })

  it('refuses an edge without a writer', () => {
    const vertex = {
      id: vertexId('v'),
      chain: [{ uid: 'a', factory: { kind: 'source' }, outputs: [edge(3)] }],
      outputs: [],
    } as unknown as JobVertex
    expect(
      () =>
        new OperatorChain({
          vertex,
          writers: new Map(),
          freeze: undefined,
          metrics: new Metrics(),
          finishedBefore: false,
        }),
    ).toThrow(InvariantError)
  })
})
