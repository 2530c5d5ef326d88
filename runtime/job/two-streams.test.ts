// Also compiled by `npm run types`: each @ts-expect-error is a claim that the compiler refuses that line.

import { describe, expect, expectTypeOf, it } from 'vitest'
import { defineJob, globalWindow, mapState, outputTag, sessionWindows, tumblingWindows, valueState, z } from '../api.ts'
import type { JobEnvironment, MapState, OperatorStream, ReadonlyMapState, Stream, ValueState } from '../api.ts'
import { buildGraph } from './build-graph.ts'
import type { JobGraph } from './contract.ts'
import { plainSink, stillSource } from './test-connectors.ts'

const orderSchema = z.object({ id: z.string(), customer: z.string(), cents: z.int() })
const paymentSchema = z.object({ order: z.string(), cents: z.int() })
const ruleSchema = z.object({ name: z.string(), limit: z.int() })

const graphOf = (define: (env: JobEnvironment) => void): JobGraph => buildGraph(defineJob(define), { parallelism: 2 })
const orders = (env: JobEnvironment) => env.source(stillSource('orders', orderSchema), { uid: 'orders' })
const payments = (env: JobEnvironment) => env.source(stillSource('payments', paymentSchema), { uid: 'payments' })
const rules = (env: JobEnvironment) => env.source(stillSource('rules', ruleSchema), { uid: 'rules' })
const limits = { limits: mapState('limits', { key: 'string', value: ruleSchema }) }

const byId = ({ id }: { readonly id: string }): string => id
const byOrder = ({ order }: { readonly order: string }): string => order

/** `source -partitioning-> target`, with `2` for the second input. */
const edgesOf = (graph: JobGraph): string[] =>
  graph.edges.map(
    ({ source, partitioning, target, input }) => `${source} -${partitioning}-> ${target}${input === 1 ? ' 2' : ''}`,
  )

const uidless = (define: (env: JobEnvironment) => OperatorStream<unknown>): (() => JobGraph) => {
  return () => graphOf((env) => void define(env).sinkTo(plainSink()).uid('out'))
}

describe('the graph of two streams', () => {
  it('tells the inputs of a connected operator apart, and begins a vertex with it', () => {
    const graph = graphOf((env) => {
      orders(env)
        .connect(payments(env))
        .process<number>({ process: ({ cents }, { emit }) => emit(cents), processSecond: () => undefined })
        .uid('both')
        .sinkTo(plainSink<number>())
        .uid('out')
    })
    expect(edgesOf(graph)).toEqual(['orders -forward-> both', 'payments -forward-> both 2'])
    expect(graph.vertices.map(({ chain }) => chain.map(({ uid }) => uid))).toEqual([
      ['orders'],
      ['payments'],
      ['both', 'out'],
    ])
    expect(graph.vertices[2]?.keySelectors).toEqual([undefined, undefined])
  })

  it('deals both sides out by their own key, unions too', () => {
    const graph = graphOf((env) => {
      const more = env.source(stillSource('more', orderSchema), { uid: 'more' })
      orders(env)
        .union(more)
        .keyBy(byId)
        .connect(payments(env).keyBy(byOrder))
        .process<string>({ process: (_order, { emit, key }) => emit(key), processSecond: () => undefined })
        .uid('both')
        .sinkTo(plainSink())
        .uid('out')
    })
    expect(edgesOf(graph)).toEqual(['orders -hash-> both', 'more -hash-> both', 'payments -hash-> both 2'])
    const [first, second] = graph.vertices.find(({ id }) => id === 'both')!.keySelectors
    expect(first?.({ id: 'x' })).toBe('x')
    expect(second?.({ order: 'y' })).toBe('y')
  })

  it('copies broadcast records to every subtask and leaves the other side as it is', () => {
    const graph = graphOf((env) => {
      const all = orders(env)
      const told = rules(env).broadcast(limits)
      const functions = { process: () => undefined, processBroadcast: () => undefined }
      all.connect(told).process<string>(functions).uid('plain').sinkTo(plainSink()).uid('out-1')
      all.keyBy(byId).connect(told).process<string>(functions).uid('keyed').sinkTo(plainSink()).uid('out-2')
    })
    expect(edgesOf(graph)).toEqual([
      'orders -forward-> plain',
      'rules -broadcast-> plain 2',
      'orders -hash-> keyed',
      'rules -broadcast-> keyed 2',
    ])
  })

  it('keys both sides of a join, which may be one stream', () => {
    const graph = graphOf((env) => {
      const all = orders(env)
      all
        .join(all)
        .where(({ id }) => id)
        .equalTo(({ customer }) => customer)
        .window(tumblingWindows({ sizeMs: 10 }))
        .apply((left, right) => left.cents + right.cents)
        .uid('sums')
        .sinkTo(plainSink())
        .uid('out')
    })
    expect(edgesOf(graph)).toEqual(['orders -hash-> sums', 'orders -hash-> sums 2'])
  })

  it('has another hash when the sides change places, or a declared broadcast state changes', () => {
    const connected = (swapped: boolean): string =>
      graphOf((env) => {
        const [left, right] = [orders(env), payments(env)] as [Stream<unknown>, Stream<unknown>]
        const both = swapped ? right.connect(left) : left.connect(right)
        both
          .process<string>({ process: () => undefined, processSecond: () => undefined })
          .uid('both')
          .sinkTo(plainSink())
          .uid('out')
      }).hash
    expect(connected(false)).not.toBe(connected(true))
    const withLimits = (key: 'string' | 'number'): string =>
      graphOf((env) => {
        orders(env)
          .connect(rules(env).broadcast({ limits: mapState('limits', { key, value: ruleSchema }) }))
          .process<string>({ process: () => undefined, processBroadcast: () => undefined })
          .uid('both')
          .sinkTo(plainSink())
          .uid('out')
      }).hash
    expect(withLimits('string')).not.toBe(withLimits('number'))
  })
})

describe('what cannot be built of two streams', () => {
  it('is refused without a uid where state is kept', () => {
    const keyed = uidless((env) =>
      orders(env)
        .keyBy(byId)
        .connect(payments(env).keyBy(byOrder))
        .process({ process: () => undefined, processSecond: () => undefined }),
    )
    const broadcast = uidless((env) =>
      orders(env)
        .connect(rules(env).broadcast(limits))
        .process({ process: () => undefined, processBroadcast: () => undefined }),
    )
    const joined = uidless((env) =>
      orders(env)
        .join(payments(env))
        .where(byId)
        .equalTo(byOrder)
        .window(tumblingWindows({ sizeMs: 10 }))
        .apply(() => 1),
    )
    const near = uidless((env) =>
      orders(env)
        .keyBy(byId)
        .intervalJoin(payments(env).keyBy(byOrder))
        .between(0, 1)
        .process(() => undefined),
    )
    for (const build of [keyed, broadcast, joined, near])
      expect(build).toThrow(expect.objectContaining({ code: 'MR-J03' }))
  })

  it('is a pair of streams of which only one is keyed, or of two jobs', () => {
    const other = uidless((env) => {
      let stray: Stream<z.infer<typeof paymentSchema>> | undefined
      graphOf((second) => {
        stray = payments(second)
        stray.sinkTo(plainSink()).uid('out')
      })
      return orders(env)
        .connect(stray!)
        .process({ process: () => undefined, processSecond: () => undefined })
    })
    expect(other).toThrow(/MR-J12.*connect at .*two-streams.test.ts/s)
    const mixed = (define: (env: JobEnvironment) => unknown): void =>
      expect(() => graphOf((env) => void define(env))).toThrow(/MR-J13.* at .*two-streams.test.ts/s)
    // @ts-expect-error the other stream is not keyed
    mixed((env) => orders(env).keyBy(byId).connect(payments(env)))
    // @ts-expect-error only the other stream is keyed
    mixed((env) => orders(env).connect(payments(env).keyBy(byOrder)))
    // @ts-expect-error neither may be keyed: where and equalTo say the keys
    mixed((env) => orders(env).join(payments(env).keyBy(byOrder)))
    // @ts-expect-error the other stream is not keyed
    mixed((env) => orders(env).keyBy(byId).intervalJoin(payments(env)))
    // @ts-expect-error nothing is no stream
    mixed((env) => orders(env).connect(undefined))
    // @ts-expect-error no windows
    mixed((env) => orders(env).join(payments(env)).where(byId).equalTo(byOrder).window())
  })

  it('is a join whose windows or bounds are impossible', () => {
    const keyed = (env: JobEnvironment) => orders(env).join(payments(env)).where(byId).equalTo(byOrder)
    expect(
      uidless((env) =>
        keyed(env)
          .window(globalWindow())
          .apply(() => 1),
      ),
    ).toThrow(/MR-J57/)
    expect(
      uidless((env) =>
        keyed(env)
          .window(sessionWindows({ gapMs: 1, time: 'processing' }))
          .allowedLateness(5)
          .apply(() => 1),
      ),
    ).toThrow(/MR-J58/)
    const near = (env: JobEnvironment) => orders(env).keyBy(byId).intervalJoin(payments(env).keyBy(byOrder))
    for (const [lower, upper] of [
      [1, 0],
      [Number.NaN, 1],
      [0, Number.POSITIVE_INFINITY],
      [0.5, 1],
    ] as const)
      expect(
        uidless((env) =>
          near(env)
            .between(lower, upper)
            .process(() => undefined),
        ),
      ).toThrow(/MR-J81/)
    const empty = { lowerExclusive: true, upperExclusive: true }
    expect(
      uidless((env) =>
        near(env)
          .between(0, 1, empty)
          .process(() => undefined),
      ),
    ).toThrow(/MR-J81/)
  })

  it('is broadcast state that is no map, expires, or has no name of its own', () => {
    const declared = (broadcast: Parameters<Stream<unknown>['broadcast']>[0]) => () =>
      graphOf((env) => void rules(env).broadcast(broadcast))
    // @ts-expect-error a value state
    expect(declared({ last: valueState('last', ruleSchema) })).toThrow(/MR-T01.*'last' is a value state/s)
    const passing = mapState('limits', { key: 'string', value: ruleSchema, ttl: { ms: 1 } })
    expect(declared({ passing })).toThrow(/MR-T01.*'limits' has a time to live/s)
    expect(declared({ ...limits, again: limits.limits })).toThrow(/MR-T01.*'limits' is declared twice/s)
    expect(declared({})).toThrow(/MR-T01/)
  })

  it('is an asynchronous function of either side', () => {
    const refused = (define: (env: JobEnvironment) => OperatorStream<unknown>, name: string): void =>
      expect(uidless(define)).toThrow(new RegExp(`MR-J51.*function given as ${name} at`, 's'))
    const later = (async () => undefined) as unknown as () => void
    const now = (): void => undefined
    const plain = { process: now, processSecond: later, processBroadcast: later }
    refused((env) => orders(env).connect(payments(env)).process(plain), 'processSecond')
    const keyed = (env: JobEnvironment) => orders(env).keyBy(byId)
    refused(
      (env) =>
        keyed(env)
          .connect(payments(env).keyBy(byOrder))
          .process({ ...plain, onTimer: later }),
      'processSecond',
    )
    refused((env) => orders(env).connect(rules(env).broadcast(limits)).process(plain), 'processBroadcast')
    refused((env) => keyed(env).connect(rules(env).broadcast(limits)).process(plain), 'processBroadcast')
    refused((env) => keyed(env).intervalJoin(payments(env).keyBy(byOrder)).between(0, 1).process(later), 'process')
    const joined = (env: JobEnvironment) => orders(env).join(payments(env)).where(byId).equalTo(byOrder)
    refused(
      (env) =>
        joined(env)
          .window(tumblingWindows({ sizeMs: 1 }))
          .apply(later),
      'apply',
    )
    const asynchronous = async (): Promise<string> => ''
    refused(
      (env) =>
        orders(env)
          .coGroup(payments(env))
          .where(byId)
          .equalTo(asynchronous as unknown as () => string)
          .window(tumblingWindows({ sizeMs: 1 }))
          .apply(() => []),
      'equalTo',
    )
  })
})

describe('the types of two streams', () => {
  it('follow from the schemas', () => {
    const count = valueState('count', z.int())
    graphOf((env) => {
      const bought = orders(env)
      const paid = payments(env)
      const keyedOrders = bought.keyBy(({ id }) => id)
      const keyedPayments = paid.keyBy(({ order }) => order)
      const matched = keyedOrders
        .connect(keyedPayments)
        .process(
          {
            state: { count },
            process(order, { key, state, emit }) {
              expectTypeOf(key).toEqualTypeOf<string>()
              expectTypeOf(order.cents).toEqualTypeOf<number>()
              expectTypeOf(state.count).toEqualTypeOf<ValueState<number>>()
              emit(order.cents)
              // @ts-expect-error the schema says numbers
              emit(order.id)
            },
            processSecond(payment, { state }) {
              expectTypeOf(payment.order).toEqualTypeOf<string>()
              // @ts-expect-error a payment has no id
              void payment.id
              // @ts-expect-error records are immutable
              payment.cents = state.count.get() ?? 0
            },
          },
          { schema: z.int() },
        )
        .uid('matched')
      expectTypeOf(matched).toEqualTypeOf<OperatorStream<number>>()
      matched.sinkTo(plainSink<number>()).uid('out-1')

      // @ts-expect-error the keys are of two types
      keyedOrders.connect(paid.keyBy(({ cents }) => cents))
      // @ts-expect-error the keys are of two types
      keyedOrders.intervalJoin(paid.keyBy(({ order, cents }) => [order, cents]))
      const halfKeyed = bought.join(paid).where(byId)
      // @ts-expect-error the keys are of two types
      halfKeyed.equalTo(({ cents }) => cents)

      const told = rules(env).broadcast(limits)
      keyedOrders
        .connect(told)
        .process<string, { count: typeof count }>({
          state: { count },
          process({ cents }, { broadcastState, state }) {
            expectTypeOf(broadcastState.limits).toEqualTypeOf<ReadonlyMapState<string, z.infer<typeof ruleSchema>>>()
            if (cents < 0) state.count.clear()
            // @ts-expect-error to read only
            expect(() => broadcastState.limits.clear()).toThrow()
          },
          processBroadcast(rule, { broadcastState, forEachKey }) {
            expectTypeOf(broadcastState.limits).toEqualTypeOf<MapState<string, z.infer<typeof ruleSchema>>>()
            broadcastState.limits.put(rule.name, { ...rule })
            // @ts-expect-error keys are strings
            broadcastState.limits.delete(7)
            forEachKey(count, (key, handle) => {
              expectTypeOf(key).toEqualTypeOf<string>()
              expectTypeOf(handle).toEqualTypeOf<ValueState<number>>()
            })
          },
        })
        .uid('limited')
        .sinkTo(plainSink())
        .uid('out-2')

      const late = outputTag('late', paymentSchema)
      const joined = bought
        .join(paid)
        .where(({ id }) => id)
        .equalTo(({ order }) => order)
        .window(tumblingWindows({ sizeMs: 10 }))
        .lateRightTo(late)
        .apply(
          (order, payment, { key, window }) => ({ name: key, limit: order.cents - payment.cents + window.startMs }),
          { schema: ruleSchema },
        )
        .uid('joined')
      expectTypeOf(joined).toEqualTypeOf<OperatorStream<z.infer<typeof ruleSchema>>>()
      joined.sinkTo(plainSink()).uid('out-3')
      joined.sideOutput(late).sinkTo(plainSink()).uid('out-4')
      bought
        .join(paid)
        .where(byId)
        .equalTo(byOrder)
        .window(tumblingWindows({ sizeMs: 10 }))
        // @ts-expect-error late payments are no orders
        .lateLeftTo(late)

      const grouped = bought
        .coGroup(paid)
        .where(({ id }) => id)
        .equalTo(({ order }) => order)
        .window(tumblingWindows({ sizeMs: 10 }))
        .apply((lefts, rights) => [lefts.length - rights.length, ...lefts.map(({ cents }) => cents)])
        .uid('grouped')
      expectTypeOf(grouped).toEqualTypeOf<OperatorStream<number>>()
      grouped.sinkTo(plainSink()).uid('out-5')

      keyedOrders
        .intervalJoin(keyedPayments)
        .between(-5, 5, { upperExclusive: true })
        .process(
          (order, payment, { key, emit, leftTimestamp, rightTimestamp }) => {
            expectTypeOf(key).toEqualTypeOf<string>()
            emit(order.cents + payment.cents + leftTimestamp - rightTimestamp)
            // @ts-expect-error the schema says numbers
            emit(order.customer)
          },
          { schema: z.int() },
        )
        .uid('near')
        .sinkTo(plainSink<number>())
        .uid('out-6')
    })
  })
})
