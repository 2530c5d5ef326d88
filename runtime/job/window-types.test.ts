// Compiled by `npm run types`: each @ts-expect-error is a claim that the compiler refuses that line. The jobs are built too.

import { describe, expect, expectTypeOf, it } from 'vitest'
import {
  continuousTrigger,
  countTrigger,
  defineJob,
  eventTimeTrigger,
  globalWindow,
  outputTag,
  processingTimeTrigger,
  purging,
  selfDescribing,
  sessionWindows,
  slidingWindows,
  tumblingWindows,
  z,
} from '../api.ts'
import type { JobEnvironment, KeyedStream, OperatorStream, Stream, Trigger } from '../api.ts'
import { buildGraph } from './build-graph.ts'
import { plainSink, stillSource } from './test-connectors.ts'

const Click = z.object({ user: z.string(), page: z.string(), tags: z.array(z.string()) })
type Click = z.infer<typeof Click>

const keyedOf = (env: JobEnvironment): KeyedStream<string, Click> =>
  env.source(stillSource('clicks', Click), { uid: 'clicks' }).keyBy(({ user }) => user)

const counting = {
  create: () => ({ count: 0 }),
  add: (running: { count: number }) => ({ count: running.count + 1 }),
  merge: (left: { count: number }, right: { count: number }) => ({ count: left.count + right.count }),
  result: (running: { count: number }) => running.count,
}

describe('windows of the stream API', () => {
  it('type sessions, windows of processing time and the global window as they do tumbling ones', () => {
    const job = defineJob((env) => {
      const clicks = keyedOf(env)
      const late = outputTag('late', Click)
      const sessions = clicks
        .window(sessionWindows({ gapMs: 1_000 }))
        .allowedLateness(10)
        .lateTo(late)
        .aggregate(counting, { process: (user, { startMs }, count) => ({ user, startMs, count }) })
        .uid('sessions')
      expectTypeOf(sessions).toEqualTypeOf<OperatorStream<{ user: string; startMs: number; count: number }>>()
      expectTypeOf(sessions.sideOutput(late)).toEqualTypeOf<Stream<Click>>()
      const wall = clicks
        .window(tumblingWindows({ sizeMs: 1_000, time: 'processing' }))
        .process((user, _window, all) => all.map(({ page }) => `${user} ${page}`))
        .uid('wall')
      expectTypeOf(wall).toEqualTypeOf<OperatorStream<string>>()
      const lots = clicks
        .window(globalWindow())
        .trigger(purging(countTrigger(10)))
        .reduce((left) => left)
        .uid('lots')
      expectTypeOf(lots).toEqualTypeOf<OperatorStream<Click>>()
      for (const stream of [sessions, wall, lots] as readonly Stream<unknown>[]) stream.sinkTo(plainSink())
      expect([
        // @ts-expect-error no such time
        () => slidingWindows({ sizeMs: 1, slideMs: 1, time: 'wall' }),
        // @ts-expect-error a session has a gap and no size
        () => sessionWindows({ sizeMs: 1 }),
        // @ts-expect-error the trigger needs its interval
        () => continuousTrigger({ time: 'event' }),
      ]).toHaveLength(3)
    })
    const graph = buildGraph(job, {})
    expect(graph.vertices.map(({ id }) => id)).toEqual(expect.arrayContaining(['sessions', 'wall', 'lots']))
  })

  it('type a trigger of one’s own by the stream’s records and by what it remembers', () => {
    const job = defineJob((env) => {
      const windows = keyedOf(env).window(tumblingWindows({ sizeMs: 1_000 }))
      const fired = windows
        .trigger({
          name: 'front page',
          state: z.object({ seen: z.int() }),
          onRecord(click, { state, timers, window, key }) {
            expectTypeOf(key).toExtend<unknown>()
            expectTypeOf(window.endMs).toEqualTypeOf<number>()
            // @ts-expect-error a record is immutable once emitted
            click.page = ''
            // @ts-expect-error no such field
            void click.pag
            const seen = (state.get()?.seen ?? 0) + 1
            state.update({ seen })
            // @ts-expect-error the state holds objects
            state.update(seen)
            timers.register('processing', 1)
            // @ts-expect-error no such time domain
            timers.delete('wall', 1)
            return click.page === '/' ? 'fire' : 'continue'
          },
          onEnd: () => 'fire and purge',
        })
        .reduce((left) => left)
        .uid('fired')
      fired.sinkTo(plainSink<Click>())
      // @ts-expect-error no such result
      windows.trigger({ name: 'wrong', onRecord: () => 'stop' })
      // @ts-expect-error a trigger without a name
      windows.trigger({ onRecord: () => 'fire' })
      const ofOthers: Trigger<{ cents: number }> = {
        name: 'others',
        onRecord: ({ cents }) => (cents > 1 ? 'fire' : 'purge'),
      }
      // @ts-expect-error a trigger of other records
      windows.trigger(ofOthers)
      const ofMore: Trigger<Click & { readonly cents: number }> = {
        name: 'more',
        onRecord: ({ cents }) => (cents > 1 ? 'fire' : 'purge'),
      }
      // @ts-expect-error a trigger of records that have more
      windows.trigger(ofMore)
      const ofAny: Trigger<unknown, number> = { name: 'any', state: selfDescribing<number>(), onRecord: () => 'fire' }
      windows.trigger(ofAny)
      expectTypeOf(purging(ofOthers)).toEqualTypeOf<Trigger<{ cents: number }>>()
    })
    expect(buildGraph(job, {}).vertices).toHaveLength(2)
  })

  it('are refused where they do not go together, before any record', () => {
    const { merge: _, ...withoutMerge } = counting
    const wrong: readonly (readonly [RegExp, (clicks: KeyedStream<string, Click>) => OperatorStream<unknown>])[] = [
      [/MR-J56.*merge/, (clicks) => clicks.window(sessionWindows({ gapMs: 1 })).aggregate(withoutMerge)],
      [/MR-J57/, (clicks) => clicks.window(globalWindow()).reduce((left) => left)],
      [
        /MR-J58.*allowedLateness\(5\)/,
        (clicks) =>
          clicks
            .window(sessionWindows({ gapMs: 1, time: 'processing' }))
            .allowedLateness(5)
            .reduce((left) => left),
      ],
      [
        /MR-J58.*lateTo\('late'\) on the global window/,
        (clicks) =>
          clicks
            .window(globalWindow())
            .trigger(eventTimeTrigger())
            .lateTo(outputTag('late', Click))
            .reduce((left) => left),
      ],
      [
        /MR-J59.*'processing time'/,
        (clicks) =>
          clicks
            .window(tumblingWindows({ sizeMs: 1 }))
            .trigger(processingTimeTrigger())
            .reduce((left) => left),
      ],
      [
        /MR-J51.*onRecord/,
        (clicks) =>
          clicks
            .window(globalWindow())
            .trigger({ name: 'async', onRecord: (async () => 'fire') as never })
            .reduce((left) => left),
      ],
    ]
    for (const [message, make] of wrong) {
      const job = defineJob((env) => {
        make(keyedOf(env)).uid('wrong').sinkTo(plainSink())
      })
      expect(() => buildGraph(job, {})).toThrow(message)
    }
  })
})
