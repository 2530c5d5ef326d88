// Compiled by `npm run types`: each @ts-expect-error is a claim that the compiler refuses that line. The jobs are built too.

import { describe, expect, expectTypeOf, it } from 'vitest'
import { defineJob, monotonic, z } from '../api.ts'
import type { AsyncContext, OperatorStream, Stream } from '../api.ts'
import { buildGraph } from './build-graph.ts'
import type { JobGraph } from './contract.ts'
import { plainSink, stillSource } from './test-connectors.ts'

const City = z.object({ name: z.string(), time: z.number(), tags: z.array(z.string()) })
type City = z.infer<typeof City>
const Weather = z.object({ name: z.string(), degrees: z.number() })
type Weather = z.infer<typeof Weather>

const timeoutMs = 1_000

/** What building a job with this step gives. */
function graphOf(step: (cities: Stream<City>) => OperatorStream<unknown>): JobGraph {
  const job = defineJob((env) => {
    const cities = env.source(stillSource('cities', City), { uid: 'cities', watermarks: monotonic(({ time }) => time) })
    step(cities).sinkTo(plainSink()).uid('out')
  })
  return buildGraph(job, {})
}

describe('mapAsync and flatMapAsync', () => {
  it('are typed by their schema, else by what is awaited', () => {
    graphOf((cities) => {
      const typed = cities
        .mapAsync(
          async ({ name, tags }, context) => {
            expectTypeOf(context).toEqualTypeOf<AsyncContext>()
            expectTypeOf(tags).toEqualTypeOf<readonly string[]>()
            return { name, degrees: context.attempt }
          },
          {
            schema: Weather,
            timeoutMs,
            order: 'unordered',
            capacity: 10,
            onTimeout: ({ name }) => ({ name, degrees: 0 }),
            retries: { attempts: 3, delayMs: 10, maxDelayMs: 100, when: (error) => error instanceof TypeError },
          },
        )
        .uid('weather')
      expectTypeOf(typed).toEqualTypeOf<OperatorStream<Weather>>()
      const inferred = typed.mapAsync(async ({ degrees }) => `${degrees}`, { timeoutMs }).uid('text')
      expectTypeOf(inferred).toEqualTypeOf<OperatorStream<string>>()
      const many = inferred
        .flatMapAsync(async (text) => text.split(''), { schema: z.string(), timeoutMs, onTimeout: () => [] })
        .uid('letters')
      expectTypeOf(many).toEqualTypeOf<OperatorStream<string>>()
      const inferredMany = many.flatMapAsync((letter) => Promise.resolve(new Set([letter.length])), { timeoutMs })
      expectTypeOf(inferredMany).toEqualTypeOf<OperatorStream<number>>()
      return inferredMany.uid('lengths')
    })
  })

  it('refuse a result that does not fit the schema, a changed record, a missing timeout and a wrong option', () => {
    // Only compiled: some of these jobs could not be built.
    const compiled = (cities: Stream<City>): void => {
      // @ts-expect-error the result lacks a field of the schema
      cities.mapAsync(async ({ name }) => ({ name }), { schema: Weather, timeoutMs })
      // @ts-expect-error a record is immutable
      cities.mapAsync(async (city) => city.tags.push('x'), { timeoutMs })
      // @ts-expect-error every call has a timeout
      cities.mapAsync(async ({ name }) => name, { schema: z.string() })
      // @ts-expect-error there are two orders
      cities.mapAsync(async ({ name }) => name, { timeoutMs, order: 'sorted' })
      // @ts-expect-error the result of onTimeout is a record of the stream
      cities.mapAsync(async ({ name }) => name, { schema: z.string(), timeoutMs, onTimeout: () => 1 })
      // @ts-expect-error flatMapAsync awaits an iterable
      cities.flatMapAsync(async () => 7, { timeoutMs })
    }
    expect(compiled).toBeTypeOf('function')
  })

  it('need a uid, since what is in flight is state', () => {
    expect(() => graphOf((cities) => cities.mapAsync(async ({ name }) => name, { timeoutMs }))).toThrow(
      /MR-J03.*mapAsync at .*async-types\.test\.ts/,
    )
  })

  it('may be async, which no other function of a job may, their own options among them', () => {
    expect(() => graphOf((cities) => cities.map(async ({ name }) => name))).toThrow(/MR-J51.*map at/)
    expect(() => graphOf((cities) => cities.mapAsync(() => 'at once', { timeoutMs }).uid('plain'))).not.toThrow()
    const onTimeout = async (): Promise<string> => ''
    expect(() =>
      graphOf((cities) => cities.mapAsync(async () => '', { timeoutMs, onTimeout: onTimeout as never }).uid('a')),
    ).toThrow(/MR-J51.*given as onTimeout/)
    const when = (async () => true) as never
    expect(() =>
      graphOf((cities) =>
        cities.mapAsync(async () => '', { timeoutMs, retries: { attempts: 2, delayMs: 1, when } }).uid('a'),
      ),
    ).toThrow(/MR-J51.*given as retries\.when/)
    const generator = async function* (): AsyncGenerator<string> {
      yield ''
    }
    expect(() => graphOf((cities) => cities.flatMapAsync(generator as never, { timeoutMs }).uid('a'))).toThrow(
      /MR-J51.*given as flatMapAsync/,
    )
  })

  it('refuse an option that cannot be with the place in the file', () => {
    expect(() => graphOf((cities) => cities.mapAsync(async () => '', { timeoutMs: 0 }).uid('a'))).toThrow(
      /MR-J71.*timeoutMs of the mapAsync at .*async-types\.test\.ts:\d+ is 0/,
    )
    expect(() => graphOf((cities) => cities.mapAsync(async () => '', undefined as never).uid('a'))).toThrow(
      /MR-J71.*timeoutMs of the mapAsync at .*async-types\.test\.ts:\d+ is undefined/,
    )
  })
})
