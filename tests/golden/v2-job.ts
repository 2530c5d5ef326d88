// The job whose snapshots lie in tests/golden/v2: each operator that keeps something, as a job file of today writes it. What was stored
// never changes, and so neither do uids, declarations and results here.

import {
  aggregatingState,
  continuousTrigger,
  countTrigger,
  defineJob,
  globalWindow,
  listState,
  mapState,
  monotonic,
  reducingState,
  sessionWindows,
  slidingWindows,
  tumblingWindows,
  valueState,
  z,
} from '../../runtime/api.ts'
import type { Job, JobEnvironment, Stream } from '../../runtime/api.ts'
import { jsonLineFiles, jsonLineFileSink } from '../../runtime/connectors/api.ts'
import type { SequenceRecord } from '../../runtime/connectors/api.ts'
import { holdingSink } from '../support/holding-sink.ts'
import { limitedSequence } from './v2-outside.ts'
import type { Outside } from './v2-outside.ts'

export const rulesFile = '/in/rules.jsonl'
export const rulesText = ['{"id":1,"text":"one"}', '{"id":2,"text":"two"}', ''].join('\n')
export const outputFolder = '/out'
/** When processing-time timers and windows are due that were registered before the snapshots. */
export const processingEndMs = 20_000
/** The wall clock of virtual time begins at such a time. */
const processingTimerMs = 1_700_000_015_000
const eventEndMs = 1e12
/** Too long to be inlined in a manifest. */
const note = 'A long text. '.repeat(100)

type Numbers = Stream<SequenceRecord>
type Lines = Stream<string>

const lines = { schema: z.string() }
const rule = z.object({ id: z.int(), text: z.string() })
const total = z.object({ count: z.int(), sum: z.int() })
type Total = z.infer<typeof total>
const totals = {
  create: (): Total => ({ count: 0, sum: 0 }),
  add: ({ count, sum }: Total, { n }: { readonly n: number }) => ({ count: count + 1, sum: sum + n }),
  merge: (left: Total, right: Total) => ({ count: left.count + right.count, sum: left.sum + right.sum }),
  result: ({ count, sum }: Total) => `${count} ${sum}`,
}

/** All records of such a key are of one split, and so in order. */
const keyOf = ({ split, n }: { readonly split: number; readonly n: number }): string => `${split}/${n % 3}`
/** Records of all splits meet. */
const commonKeyOf = ({ n }: { readonly n: number }): number => n % 3
const idOf = ({ split, n }: { readonly split: number; readonly n: number }): string => `${split}.${n}`
const idsOf = (records: readonly { readonly split: number; readonly n: number }[]): string =>
  records.map(idOf).toSorted().join('+')

export function goldenJob(outside: Outside): Job {
  return defineJob((env) => {
    env.config.checkpointIntervalMs = undefined
    env.config.maxParallelism = 8
    env.config.retained = 1
    const watermarks = monotonic<SequenceRecord>()
    const numbers = env.source(limitedSequence(outside), { uid: 'numbers', watermarks })
    const others = env.source(limitedSequence(outside), { uid: 'others', watermarks })
    const results: readonly Lines[] = [
      ...keyedFunctions(numbers),
      ...eventWindows(numbers),
      ...processingWindows(numbers),
      ...twoStreams(numbers, others),
      ...broadcasts(env, numbers),
      ...asynchronous(numbers, outside),
    ]
    results[0]!
      .union(...results.slice(1))
      .map((text) => ({ text }), { schema: z.object({ text: z.string() }) })
      .sinkTo(jsonLineFileSink({ folder: outputFolder }))
      .uid('lines')
    holders(numbers, outside)
  })
}

function keyedFunctions(numbers: Numbers): Lines[] {
  const sum = (left: number, right: number): number => left + right
  const joined = {
    create: (): number[] => [],
    add: (all: number[], value: number) => [...all, value],
    result: (all: readonly number[]) => all.join('+'),
  }
  const timers = numbers
    .keyBy(keyOf)
    .process(
      {
        state: {
          last: valueState('last', z.object({ n: z.int() })),
          all: listState('all', z.int()),
          byNumber: mapState('byNumber', { key: 'number', value: z.string() }),
          sum: reducingState('sum', z.int(), sum),
          joined: aggregatingState('joined', z.array(z.int()), joined),
          note: valueState('note', z.string()),
        },
        process({ n }, { state, timers }) {
          state.last.update({ n })
          state.all.add(n)
          state.byNumber.put(n, `number ${n}`)
          state.sum.add(n)
          state.joined.add(n)
          state.note.update(note)
          timers.register('event', (n + 20) * 1_000, 'each')
          timers.register('event', eventEndMs)
          timers.register('processing', processingTimerMs, 'wall clock')
        },
        onTimer({ domain, timestampMs, tag }, { key, state, emit }) {
          const held =
            timestampMs === eventEndMs
              ? [
                  state.last.get()?.n,
                  state.all.get(),
                  state.byNumber.size,
                  state.sum.get(),
                  state.joined.get(),
                  state.note.get() === note,
                ].join(' ')
              : ''
          emit(`timers ${key}: ${domain} ${timestampMs} ${tag} ${held}`)
        },
      },
      lines,
    )
    .uid('timers')
  const ttl = { ms: 5_000 }
  const expiring = numbers
    .keyBy(keyOf)
    .process(
      {
        state: {
          value: valueState('value', z.int(), { ttl }),
          list: listState('list', z.int(), { ttl }),
          map: mapState('map', { key: 'string', value: z.int(), ttl }),
        },
        process({ n }, { key, state: { value, list, map }, emit }) {
          emit(`expiring ${key} ${n}: ${value.get()} ${list.get().join('+')} ${map.keys().toSorted().join('+')}`)
          value.update(n)
          list.add(n)
          map.put(`key ${n}`, n)
        },
      },
      lines,
    )
    .uid('expiring')
  const reduced = numbers
    .keyBy(keyOf)
    .reduce((left, right) => ({ ...right, n: left.n + right.n }))
    .uid('reduced')
    .map(({ split, n }) => `reduced ${split}: ${n}`, lines)
  const aggregated = numbers
    .keyBy(keyOf)
    .aggregate(totals, { accumulator: total, ...lines })
    .uid('aggregated')
    .map((text) => `aggregated ${text}`, lines)
  return [timers, expiring, reduced, aggregated]
}

const described = (name: string) => ({
  ...lines,
  process: (key: string, { startMs }: { readonly startMs: number }, result: string) =>
    `${name} ${key} ${startMs}: ${result}`,
})

function eventWindows(numbers: Numbers): Lines[] {
  const keyed = numbers.keyBy(keyOf)
  return [
    keyed
      .window(tumblingWindows({ sizeMs: 10_000 }))
      .aggregate(totals, { accumulator: total, ...described('tumbling') })
      .uid('tumbling'),
    // Some have fired and wait for late records.
    keyed
      .window(slidingWindows({ sizeMs: 4_000, slideMs: 2_000 }))
      .allowedLateness(60_000)
      .process((key, { startMs }, records) => [`sliding ${key} ${startMs}: ${idsOf(records)}`], lines)
      .uid('sliding'),
    keyed
      .window(sessionWindows({ gapMs: 3_500 }))
      .aggregate(totals, { accumulator: total, ...described('session') })
      .uid('session'),
    keyed
      .window(globalWindow())
      .trigger(countTrigger(4))
      .process((key, _window, records) => [`global ${key}: ${idsOf(records)}`], lines)
      .uid('global'),
    keyed
      .window(tumblingWindows({ sizeMs: 100_000 }))
      .trigger(continuousTrigger({ everyMs: 10_000, time: 'processing' }))
      .aggregate(totals, { accumulator: total, ...described('early') })
      .uid('early'),
  ]
}

/** Where they begin depends on the wall clock of the run, and is not told. */
function processingWindows(numbers: Numbers): Lines[] {
  const keyed = numbers.keyBy(keyOf)
  const time = 'processing'
  const named = (name: string) => ({
    ...lines,
    process: (key: string, _window: unknown, result: string) => `${name} ${key}: ${result}`,
  })
  return [
    keyed
      .window(tumblingWindows({ sizeMs: 10_000, time }))
      .aggregate(totals, { accumulator: total, ...named('tumbling of processing time') })
      .uid('tumbling-processing'),
    keyed
      .window(slidingWindows({ sizeMs: 20_000, slideMs: 10_000, time }))
      .aggregate(totals, { accumulator: total, ...named('sliding of processing time') })
      .uid('sliding-processing'),
    keyed
      .window(sessionWindows({ gapMs: 8_000, time }))
      .aggregate(totals, { accumulator: total, ...named('session of processing time') })
      .uid('session-processing'),
  ]
}

function twoStreams(numbers: Numbers, others: Numbers): Lines[] {
  return [
    numbers
      .join(others)
      .where(commonKeyOf)
      .equalTo(commonKeyOf)
      .window(tumblingWindows({ sizeMs: 10_000 }))
      .apply((left, right, { key, window }) => `joined ${key} ${window.startMs}: ${idOf(left)} ${idOf(right)}`, lines)
      .uid('joined'),
    numbers
      .coGroup(others)
      .where(keyOf)
      .equalTo(keyOf)
      .window(sessionWindows({ gapMs: 3_500 }))
      .apply((left, right, { key }) => [`coGrouped ${key}: ${idsOf(left)} ${idsOf(right)}`], lines)
      .uid('coGrouped'),
    numbers
      .keyBy(commonKeyOf)
      .intervalJoin(others.keyBy(commonKeyOf))
      .between(-3_000, 6_000)
      .process((left, right, { key, emit }) => emit(`near ${key}: ${idOf(left)} ${idOf(right)}`), lines)
      .uid('near'),
    numbers
      .keyBy(keyOf)
      .connect(others.keyBy(keyOf))
      .process(
        {
          state: { lefts: valueState('lefts', z.int()), rights: valueState('rights', z.int()) },
          process(_record, { state: { lefts }, timers }) {
            lefts.update((lefts.get() ?? 0) + 1)
            timers.register('event', eventEndMs)
          },
          processSecond: (_record, { state: { rights } }) => rights.update((rights.get() ?? 0) + 1),
          onTimer: (_timer, { key, state: { lefts, rights }, emit }) =>
            emit(`connected ${key}: ${lefts.get()} ${rights.get()}`),
        },
        lines,
      )
      .uid('connected'),
  ]
}

/** The source of the rules has finished long before the snapshots. */
function broadcasts(env: JobEnvironment, numbers: Numbers): Lines[] {
  const rules = env.source(jsonLineFiles({ path: rulesFile, schema: rule }), { uid: 'rules' })
  const known = { rules: mapState('rules', { key: 'number', value: rule }) }
  return [
    numbers
      .connect(rules.broadcast(known))
      .process(
        {
          process: (record, { broadcastState, emit }) => {
            const texts = broadcastState.rules.entries().map(([, { text }]) => text)
            emit(`ruled ${idOf(record)}: ${texts.toSorted().join('+')}`)
          },
          processBroadcast: (value, { broadcastState }) => broadcastState.rules.put(value.id, value),
        },
        lines,
      )
      .uid('ruled'),
    numbers
      .keyBy(keyOf)
      .connect(rules.broadcast(known))
      .process(
        {
          state: { count: valueState('count', z.int()) },
          process(_record, { state: { count }, timers }) {
            count.update((count.get() ?? 0) + 1)
            timers.register('event', eventEndMs)
          },
          processBroadcast: (value, { broadcastState }) => broadcastState.rules.put(value.id, value),
          onTimer: (_timer, { key, state: { count }, broadcastState, emit }) =>
            emit(`ruled by key ${key}: ${count.get()} ${broadcastState.rules.size}`),
        },
        lines,
      )
      .uid('ruled-by-key'),
  ]
}

function asynchronous(numbers: Numbers, outside: Outside): Lines[] {
  return (['ordered', 'unordered'] as const).map((order) =>
    numbers
      .mapAsync(
        async (record) => {
          await outside.ask(record.n)
          return `asked ${order} ${idOf(record)}`
        },
        { order, timeoutMs: 3_600_000, ...lines },
      )
      .uid(`asked-${order}`),
  )
}

/** Operator state of each redistribution, in the hands of sinks. */
function holders(numbers: Numbers, outside: Outside): void {
  const { committed, label } = outside
  for (const redistribution of ['split', 'union'] as const)
    numbers
      .map((record) => `held ${redistribution} ${idOf(record)}`, lines)
      .sinkTo(holdingSink({ redistribution, committed }))
      .uid(`holder-${redistribution}`)
  // Of the first run alone: later ones must find it.
  numbers
    .filter(({ n }) => n === 0)
    .map(() => `held broadcast ${label}`, lines)
    .sinkTo(holdingSink({ redistribution: 'broadcast', committed }))
    .uid('holder-broadcast')
}
