// Flows in which each record comes out once, at once, with how many of its key have come so far.

import { z } from 'zod'
import { checkLedger } from '../../connectors/ledger-check.ts'
import type { LedgerEntry } from '../../connectors/ledger.ts'
import { LEDGER_MAGIC, checkMagic } from '../../connectors/sequence.ts'
import type { OperatorStream, Stream } from '../../job/stream.ts'
import type { DeepReadonly, ValueState } from '../../state/contract.ts'
import { valueState } from '../../state/descriptors.ts'
import { isEndless, keepsOrder } from '../job/shape.ts'
import type { JobShape } from '../job/shape.ts'
import { entrySchema, keyOf, numberedSchema, recordsRead } from './flow.ts'
import type { Entry, Facts, Flow, FlowInputs, Numbered } from './flow.ts'

export const counted = {
  endings: ['bounded', 'bounded', 'bounded', 'quiet', 'cut', 'stopped', 'drained', 'cancelled'],
  streams: 'one',
  immediate: true,
  judge: judgeCounts,
  isComplete: (facts: Facts, entries: readonly LedgerEntry[]) =>
    [...recordsRead(facts)].filter(({ split, n }) => n >= facts.before(split)).length <= entries.length,
} as const

export const counter: Flow = { ...counted, build: ({ all, shape }) => count(all(), shape) }

/** Both sides count on in one state. */
export const connected: Flow = { ...counted, streams: 'two', build: connect }

/** Half of the records count in a state that lives long enough, and each meets one that may have expired, and then must have. */
export const timeToLive: Flow = { ...counted, build: ({ all, shape }) => living(all(), shape) }

/** Each record waits for an answer, some need a second try. */
export const asynchronous: Flow = {
  ...counted,
  // What a suspended or stopped job has read and not given out waits in flight.
  endings: ['bounded', 'bounded', 'quiet', 'drained'],
  immediate: false,
  build: (inputs) => count(answered(inputs), inputs.shape),
}

function step(value: DeepReadonly<Numbered>, key: string, state: ValueState<number>): Entry {
  checkMagic(value)
  const count = (state.get() ?? 0) + 1
  state.update(count)
  return { ...value, key, count }
}

function count(stream: Stream<Numbered>, shape: JobShape): OperatorStream<Entry> {
  return stream
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .process(
      {
        state: { count: valueState('count', z.int()) },
        process: (value, { key, state, emit }) => emit(step(value, key, state.count)),
      },
      { schema: entrySchema },
    )
}

function connect({ halves, shape }: FlowInputs): OperatorStream<Entry> {
  const { left, right } = halves()
  const keyed = (stream: Stream<Numbered>) => stream.keyBy(({ split, n }) => keyOf(shape, split, n))
  return keyed(left)
    .connect(keyed(right))
    .process(
      {
        state: { count: valueState('count', z.int()) },
        process: (value, { key, state, emit }) => emit(step(value, key, state.count)),
        processSecond: (value, { key, state, emit }) => emit(step(value, key, state.count)),
      },
      { schema: entrySchema },
    )
}

/** The count of a record is its number: no state is kept, and nothing exchanged. */
export const pipes: Flow = {
  ...counted,
  build: ({ all, shape }) =>
    all().map(
      (value) => {
        checkMagic(value)
        return { ...value, key: keyOf(shape, value.split, value.n), count: value.n + 1 }
      },
      { schema: entrySchema },
    ),
}

/** Longer than any run. */
const longMs = 30 * 86_400_000
const shortMs = 20

function living(stream: Stream<Numbered>, shape: JobShape): OperatorStream<Entry> {
  return stream
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .process(
      {
        state: {
          count: valueState('count', z.int(), { ttl: { ms: longMs } }),
          seenMs: valueState('seen', z.int(), { ttl: { ms: shortMs } }),
        },
        process(value, { key, state, emit, processingTimeMs }) {
          const seenMs = state.seenMs.get()
          state.seenMs.update(processingTimeMs)
          const expired = seenMs !== undefined && seenMs + shortMs <= processingTimeMs
          const entry = step(value, key, state.count)
          emit(expired ? { ...entry, magic: 0 } : entry)
        },
      },
      { schema: entrySchema },
    )
}

const answerMsMax = 120

function answered({ all, shape, environment }: FlowInputs): Stream<Numbered> {
  const pause = (ms: number) => new Promise<void>((resolve) => void environment.clock.timer(ms, resolve))
  return all()
    .mapAsync(
      async (value, { attempt }) => {
        await pause((value.n * 37 + value.split * 11) % answerMsMax)
        if (attempt === 1 && (value.n + value.split) % 7 === 0) throw new Error('busy')
        return value
      },
      {
        schema: numberedSchema,
        timeoutMs: 120_000,
        order: shape.unordered ? 'unordered' : 'ordered',
        // An endless job must keep up.
        capacity: isEndless(shape) ? 100 : 1 + (shape.keys % 4) * 5,
        retries: { attempts: 3, delayMs: 10 },
      },
    )
    .uid('answers')
    .parallelism(shape.parallelism.source)
}

function judgeCounts(facts: Facts, entries: readonly LedgerEntry[]): string[] {
  const { shape, readOf, mayRepeat } = facts
  const report = checkLedger([...countsBefore(facts), ...entries.filter((entry) => belongs(entry, facts))], {
    splits: shape.splits,
    perSplit: readOf,
    keyOf: (split, n) => keyOf(shape, split, n),
    atLeastOnce: mayRepeat,
  })
  const { lost, duplicate, unexpected, wrongMagic, wrongKey, wrongCounts } = report
  const reordered = facts.ordered && keepsOrder(shape) ? report.reordered : 0
  const wrong = Object.entries({ lost, duplicate, reordered, unexpected, wrongMagic, wrongKey, wrongCounts }).filter(
    ([, times]) => times > 0,
  )
  if (wrong.length === 0) return []
  const samples = report.samples.filter((sample) => reordered > 0 || !sample.startsWith('reordered')).slice(0, 6)
  return [
    `The ledger is not exact: ${wrong.map(([name, times]) => `${times} ${name}`).join(', ')} of ${report.expected}. ${samples.join('; ')}`,
  ]
}

/** What may come twice was perhaps committed by an attempt that had read further than the last one. */
function belongs({ split, n, magic }: LedgerEntry, { mayRepeat, readOf }: Facts): boolean {
  return !mayRepeat || magic !== LEDGER_MAGIC || n < readOf(split)
}

/** The results of the job from whose savepoint this one began: it goes on counting where that one stood. */
function countsBefore({ shape, before }: Facts): LedgerEntry[] {
  const counts = new Map<string, number>()
  return [...recordsRead({ shape, readOf: before })].map(({ split, n, key }) => {
    const next = (counts.get(key) ?? 0) + 1
    counts.set(key, next)
    return { split, n, magic: LEDGER_MAGIC, key, count: next }
  })
}
