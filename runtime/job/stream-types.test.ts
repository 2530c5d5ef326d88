// Compiled by `npm run types`: each @ts-expect-error is a claim that the compiler refuses that line. The jobs are built too.

import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  aggregatingState,
  boundedOutOfOrderness,
  defineJob,
  monotonic,
  outputTag,
  selfDescribing,
  slidingWindows,
  tumblingWindows,
  valueState,
  mapState,
  z,
} from '../api.ts'
import type { OperatorStream, Stream } from '../api.ts'
import { csvFileSink } from '../connectors/api.ts'
import type { Sink } from '../connectors/contract.ts'
import { buildGraph } from './build-graph.ts'
import { plainSink, stillSource } from './test-connectors.ts'

const Flight = z.object({ origin: z.string(), time: z.number(), delay: z.number(), stops: z.array(z.string()) })
type Flight = z.infer<typeof Flight>
const Delay = z.object({ origin: z.string(), hour: z.number(), mean: z.number() })
type Delay = z.infer<typeof Delay>

describe('the stream API', () => {
  it('types a job from end to end by its schemas', () => {
    const job = defineJob({ args: z.object({ input: z.string(), hours: z.number() }) }, (env, args) => {
      expectTypeOf(args).toEqualTypeOf<{ input: string; hours: number }>()
      // @ts-expect-error the arguments have no such field
      void args.output

      const flights = env.source(stillSource('flights', Flight), {
        uid: 'flights',
        watermarks: boundedOutOfOrderness((flight: Flight) => flight.time, 1_000).withIdleness(5_000),
      })
      env
        // @ts-expect-error a watermark strategy reads fields that the records have
        .source(stillSource('typo', Flight), { uid: 'typo', watermarks: monotonic((flight) => flight.tme) })
        .sinkTo(plainSink())

      const late = outputTag('late', Flight)
      const delays = flights
        // @ts-expect-error no such field
        .filter((flight) => flight.dely > 0)
        .filter((flight) => flight.delay > 0)
        .keyBy((flight) => [flight.origin, Math.floor(flight.time / 3_600_000)])
        .window(tumblingWindows({ sizeMs: 3_600_000 }))
        .allowedLateness(60_000)
        .lateTo(late)
        .aggregate(
          {
            create: () => ({ sum: 0, count: 0 }),
            add: (running, flight) => {
              running.sum += flight.delay
              running.count++
              return running
            },
            result: (running) => running.sum / running.count,
          },
          {
            accumulator: z.object({ sum: z.number(), count: z.number() }),
            schema: Delay,
            process: ([origin, hour], window, mean) => {
              expectTypeOf(origin).toEqualTypeOf<string>()
              expectTypeOf(hour).toEqualTypeOf<number>()
              expectTypeOf(mean).toEqualTypeOf<number>()
              return { origin, hour: hour + window.startMs, mean }
            },
          },
        )
        .uid('delays')
        .parallelism(2)
      expectTypeOf(delays).toEqualTypeOf<OperatorStream<Delay>>()
      expectTypeOf(delays.sideOutput(late)).toEqualTypeOf<Stream<Flight>>()
      delays.sinkTo(plainSink<Delay>()).uid('out')
      delays.sinkTo(plainSink<unknown>()).uid('print')
      delays.sinkTo(csvFileSink({ folder: 'out', columns: ['origin', 'mean'] })).uid('csv')
      // @ts-expect-error the records have no such column
      delays.sinkTo(csvFileSink({ folder: 'out', columns: ['origin', 'worst'] })).uid('csv-typo')
      // @ts-expect-error the sink needs a field that the records lack
      delays.sinkTo(plainSink<{ origin: string; worst: number }>()).uid('wrong')
    })
    expect(buildGraph(job, { args: { input: 'a', hours: 1 } }).vertices.map(({ id }) => id)).toContain('delays')
  })

  it('keeps records read-only, and maps by schema or by what the function gives', () => {
    defineJob((env) => {
      const flights = env.source(stillSource('flights', Flight), { uid: 'flights' })
      flights.map((flight) => {
        // @ts-expect-error a record is immutable once emitted
        flight.delay = 0
        // @ts-expect-error to the bottom
        flight.stops.push('SFO')
        return flight.delay
      })
      expectTypeOf(flights.map((flight) => ({ where: flight.origin }))).toEqualTypeOf<
        OperatorStream<{ where: string }>
      >()
      const mapped = flights.map((flight) => ({ origin: flight.origin, hour: 1, mean: flight.delay }), {
        schema: Delay,
      })
      expectTypeOf(mapped).toEqualTypeOf<OperatorStream<Delay>>()
      // @ts-expect-error a field of the schema is missing
      flights.map((flight) => ({ origin: flight.origin, hour: 1 }), { schema: Delay })
      // Read-only lists may be passed on into a schema with mutable ones.
      flights.map((flight) => ({ ...flight, stops: flight.stops }), { schema: Flight })
      flights.map((flight) => flight, { schema: Flight })
      expectTypeOf(flights.flatMap((flight) => flight.stops)).toEqualTypeOf<OperatorStream<string>>()
      expectTypeOf(flights.flatMap((flight) => flight.stops, { schema: z.string() })).toEqualTypeOf<
        OperatorStream<string>
      >()
      // @ts-expect-error no iterable
      flights.flatMap((flight) => flight.delay)
      expectTypeOf(flights.union(mapped)).toEqualTypeOf<Stream<Flight | Delay>>()
      // @ts-expect-error an object is no key
      flights.keyBy((flight) => ({ origin: flight.origin }))
      // @ts-expect-error a field that may be missing is no key
      flights.keyBy((flight) => flight.stops[0])
    })
  })

  it('refuses functions and sinks that take less than what the stream may bring', () => {
    defineJob((env) => {
      const loose = env.source(stillSource('loose', z.object({ n: z.number().optional() })), { uid: 'loose' })
      const other = env.source(stillSource('other', z.object({ text: z.string() })), { uid: 'other' })
      const keyed = loose.keyBy(({ n }) => n ?? 0)
      const rules = other.broadcast({ rules: mapState('rules', { key: 'string', value: z.number() }) })
      const strict = { process: ({ n }: { readonly n: number }) => void n }
      const second = { processSecond: ({ text }: { readonly text: 'a' }) => void text }
      class Strict {
        process({ n }: { readonly n: number }): void {
          void n
        }
      }
      class Fitting {
        process({ n }: { readonly n?: number | undefined }): void {
          void n
        }
      }
      loose.process(new Fitting())
      keyed.process(new Fitting())
      // @ts-expect-error n may be missing
      loose.process(strict)
      // @ts-expect-error in a class too
      loose.process(new Strict())
      // @ts-expect-error with a key too
      keyed.process(strict)
      // @ts-expect-error of the first of two streams
      loose.connect(other).process({ ...strict, processSecond: () => undefined })
      // @ts-expect-error of the second
      loose.connect(other).process({ process: () => undefined, ...second })
      // @ts-expect-error and of a broadcast one
      loose.connect(rules).process({ process: () => undefined, processBroadcast: second.processSecond })
      // @ts-expect-error a sink for a part of the records
      loose.union(other).sinkTo(plainSink<{ text: string }>())
      // @ts-expect-error whatever it is called
      const widened: Sink<{ n?: number | undefined }> = plainSink<{ n: number }>()
      loose.sinkTo(widened)
    })
  })

  it('types state, timers and what a keyed process function emits', () => {
    const job = defineJob((env) => {
      const alarms = outputTag<{ origin: string }>('alarms')
      const processed = env
        .source(stillSource('flights', Flight), { uid: 'flights' })
        .keyBy((flight) => flight.origin)
        .process(
          {
            state: {
              last: valueState('last', z.number()),
              byStop: mapState('byStop', { key: 'string', value: z.number() }),
              mean: aggregatingState('mean', z.object({ sum: z.number() }), {
                create: () => ({ sum: 0 }),
                add: (running, delay: number) => ({ sum: running.sum + delay }),
                result: (running) => running.sum,
              }),
            },
            process(flight, { key, state, timers, timestamp, emit, emitTo }) {
              expectTypeOf(key).toEqualTypeOf<string>()
              expectTypeOf(state.last.get()).toEqualTypeOf<number | undefined>()
              expectTypeOf(state.byStop.keys()).toEqualTypeOf<readonly string[]>()
              state.last.update(flight.delay)
              state.mean.add(flight.delay)
              // @ts-expect-error the state holds numbers
              state.last.update(flight.origin)
              // @ts-expect-error no such state
              void state.first
              timers.register('event', (timestamp ?? 0) + 1_000, 'alarm')
              // @ts-expect-error no such time domain
              timers.delete('wall', 0)
              emit({ origin: key, hour: 1, mean: 2 })
              // @ts-expect-error does not fit the schema
              emit({ origin: key })
              emitTo(alarms, { origin: key })
              // @ts-expect-error does not fit the tag
              emitTo(alarms, { key })
            },
            onTimer(timer, { state, emit }) {
              expectTypeOf(timer.timestampMs).toEqualTypeOf<number>()
              emit({ origin: timer.tag, hour: 0, mean: state.last.get() ?? 0 })
            },
          },
          { schema: Delay },
        )
        .uid('processed')
      expectTypeOf(processed).toEqualTypeOf<OperatorStream<Delay>>()
      expectTypeOf(processed.sideOutput(alarms)).toEqualTypeOf<Stream<{ origin: string }>>()
      processed.sinkTo(plainSink<Delay>())
    })
    expect(buildGraph(job, {}).vertices).toHaveLength(2)
  })

  it('types reduce, aggregate and full windows', () => {
    const job = defineJob((env) => {
      const keyed = env.source(stillSource('flights', Flight), { uid: 'flights' }).keyBy((flight) => flight.origin)
      const worst = keyed.reduce((left, right) => (left.delay > right.delay ? left : right)).uid('worst')
      expectTypeOf(worst).toEqualTypeOf<OperatorStream<Flight>>()
      const windows = keyed.window(slidingWindows({ sizeMs: 10, slideMs: 5, offsetMs: 1 }))
      const top = windows.process((key, window, flights) => [[key, window.endMs, flights.length] as const]).uid('top')
      expectTypeOf(top).toEqualTypeOf<OperatorStream<readonly [string, number, number]>>()
      const typed = windows
        .process(
          (key, window, flights) =>
            flights.map((flight) => ({ origin: key, hour: window.startMs, mean: flight.delay })),
          { schema: Delay },
        )
        .uid('typed')
      expectTypeOf(typed).toEqualTypeOf<OperatorStream<Delay>>()
      const reduced = windows
        .reduce((left) => left, { process: (key, _window, flight) => ({ key, delay: flight.delay }) })
        .uid('reduced')
      expectTypeOf(reduced).toEqualTypeOf<OperatorStream<{ key: string; delay: number }>>()
      const counted = keyed
        .aggregate(
          { create: () => 0, add: (count) => count + 1, result: (count) => count },
          { accumulator: z.number(), schema: z.number() },
        )
        .uid('counted')
      expectTypeOf(counted).toEqualTypeOf<OperatorStream<number>>()
      const counting = { create: () => 0, add: (count: number) => count + 1, result: (count: number) => count }
      // @ts-expect-error the accumulator is a number
      keyed.aggregate(counting, { accumulator: z.string() }).uid('wrong')
      const untyped = keyed
        .process({ process: (flight, context) => context.emit(flight.delay) }, { schema: selfDescribing<number>() })
        .uid('untyped')
      expectTypeOf(untyped).toEqualTypeOf<OperatorStream<number>>()
      for (const stream of [worst, top, typed, reduced, counted, untyped] as readonly Stream<unknown>[])
        stream.sinkTo(plainSink())
    })
    expect(() => buildGraph(job, {})).toThrow(/MR-J07.*Nobody reads/)
  })
})
