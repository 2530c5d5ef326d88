// Everything that reads two streams, over the same two sources: connected with keys, with a broadcast stream, joined by interval and by
// window. Counts come out at the end of time, so that all results follow from the input alone.

import { defineJob, mapState, monotonic, tumblingWindows, valueState, z } from 'millrace'
import { jsonLineFileSink, sequence } from 'millrace/connectors'
import { outlastingSequence } from './outlasting-source.ts'
import { leftKey, nearMs, numberOf, rightKey, rulesCount, splits, stepMs, windowMs } from './two-streams-shape.ts'

const args = z.object({ output: z.string(), perSplit: z.coerce.number(), ratePerSecond: z.coerce.number() })
const endOfTimeMs = 1e12

export default defineJob({ args }, (env, { output, perSplit, ratePerSecond }) => {
  env.config.checkpointIntervalMs = 40
  env.config.restartStrategy = { type: 'fixed-delay', attempts: 100, delayMs: 10 }
  const numbers = (uid: string) =>
    env.source(outlastingSequence({ output, splits, perSplit, ratePerSecond }), {
      uid,
      watermarks: monotonic(({ n }) => n * stepMs),
    })
  const left = numbers('left')
  const right = numbers('right')
  const rules = env.source(sequence({ splits: 1, perSplit: rulesCount, ratePerSecond: rulesCount }), {
    uid: 'rules',
    watermarks: monotonic(({ n }) => n * stepMs),
  })

  const counts = left
    .keyBy(leftKey)
    .connect(right.keyBy(rightKey))
    .process(
      {
        state: { lefts: valueState('lefts', z.int()), rights: valueState('rights', z.int()) },
        process(_record, { state: { lefts }, timers }) {
          lefts.update((lefts.get() ?? 0) + 1)
          timers.register('event', endOfTimeMs)
        },
        processSecond(_record, { state: { rights }, timers }) {
          rights.update((rights.get() ?? 0) + 1)
          timers.register('event', endOfTimeMs)
        },
        onTimer: (_timer, { key, state: { lefts, rights }, emit }) =>
          emit(`counts ${key}: ${lefts.get()} ${rights.get()}`),
      },
      { schema: z.string() },
    )
    .uid('counts')

  const known = { rules: mapState('rules', { key: 'number', value: z.object({ n: z.int() }) }) }
  const ruled = left
    .keyBy(leftKey)
    .connect(rules.broadcast(known))
    .process(
      {
        process: (_record, { timers }) => timers.register('event', endOfTimeMs),
        processBroadcast: ({ n }, { broadcastState }) => broadcastState.rules.put(n, { n }),
        onTimer(_timer, { key, broadcastState, emit }) {
          const sum = broadcastState.rules.entries().reduce((total, [, { n }]) => total + n, 0)
          emit(`rules ${key}: ${broadcastState.rules.size} ${sum}`)
        },
      },
      { schema: z.string() },
    )
    .uid('ruled')

  const near = left
    .keyBy(leftKey)
    .intervalJoin(right.keyBy(rightKey))
    .between(-nearMs, nearMs)
    .process((one, other, { key, emit }) => emit(`near ${key}: ${numberOf(one)} ${numberOf(other)}`), {
      schema: z.string(),
    })
    .uid('near')

  const joined = left
    .join(right)
    .where(leftKey)
    .equalTo(rightKey)
    .window(tumblingWindows({ sizeMs: windowMs }))
    .apply((one, other, { key }) => `joined ${key}: ${numberOf(one)} ${numberOf(other)}`, { schema: z.string() })
    .uid('joined')

  counts
    .union(ruled, near, joined)
    .map((text) => ({ text }), { schema: z.object({ text: z.string() }) })
    .sinkTo(jsonLineFileSink({ folder: `${output}/lines` }))
    .uid('lines')
})
