// Flows of two streams that meet in one operator: what comes out must not depend on which of them was faster.

import { z } from 'zod'
import type { LedgerEntry } from '../../connectors/ledger.ts'
import { LEDGER_MAGIC, checkMagic } from '../../connectors/sequence.ts'
import type { OperatorStream, Stream } from '../../job/stream.ts'
import { tumblingWindows } from '../../operators/window-assigner.ts'
import { mapState } from '../../state/descriptors.ts'
import type { JobShape } from '../job/shape.ts'
import { compareNames, entrySchema, keyOf, recordsRead, weightOf } from './flow.ts'
import type { Entry, Facts, Flow, FlowInputs, Numbered } from './flow.ts'
import { entryOf } from './windows.ts'

const timed = {
  endings: ['bounded', 'bounded', 'drained'],
  streams: 'two',
  immediate: false,
  isComplete: () => true,
} as const

function isLeft(shape: JobShape, split: number): boolean {
  return split < shape.splits / 2
}

/** A record of the right half is a rule of its number for the left half's split. Each left record waits until event time says that its rule must have come. */
export const broadcast: Flow = {
  ...timed,
  build: buildBroadcast,
  judge(facts, entries) {
    const { shape, readOf } = facts
    const expected = [...recordsRead(facts)].filter(({ split }) => isLeft(shape, split))
    const names = expected.map(({ split, n, key }) => {
      const rule = ruleOf(shape, split)
      return `${split} ${n} of ${key}: ${n < readOf(rule) ? weightOf(rule, n) : -1}`
    })
    return compareNames(
      'ruled records',
      new Set(names),
      entries,
      ({ split, n, key, count }) => `${split} ${n} of ${key}: ${count}`,
    )
  },
}

function ruleOf(shape: JobShape, split: number): number {
  return split + shape.splits / 2
}

function buildBroadcast({ halves, shape }: FlowInputs): OperatorStream<Entry> {
  const { left, right } = halves()
  const rules = right.broadcast({ rules: mapState('rules', { key: 'string', value: z.int() }) })
  return left
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .connect(rules)
    .process(
      {
        state: { waiting: mapState('waiting', { key: 'number', value: z.array(z.int()) }) },
        process(value, { state, timers }) {
          checkMagic(value)
          const dueMs = value.n * shape.stepMs
          state.waiting.put(dueMs, [...(state.waiting.get(dueMs) ?? []), value.split])
          timers.register('event', dueMs)
        },
        processBroadcast(value, { broadcastState }) {
          checkMagic(value)
          broadcastState.rules.put(`${value.split} ${value.n}`, weightOf(value.split, value.n))
        },
        onTimer({ timestampMs }, { key, state, broadcastState, emit }) {
          const n = timestampMs / shape.stepMs
          for (const split of state.waiting.get(timestampMs) ?? [-1]) {
            const count = broadcastState.rules.get(`${ruleOf(shape, split)} ${n}`) ?? -1
            emit({ split, n, magic: LEDGER_MAGIC, key, count, pad: '' })
          }
          state.waiting.delete(timestampMs)
        },
      },
      { schema: entrySchema },
    )
}

/** No sum of one side is one of the other. */
const rightFactor = 3

export const coGroups: Flow = {
  ...timed,
  build: ({ halves, shape }) => {
    const { left, right } = halves()
    const sumOf = (records: readonly Pick<Numbered, 'split' | 'n' | 'magic'>[]) =>
      records.reduce((sum, record) => {
        checkMagic(record)
        return sum + weightOf(record.split, record.n)
      }, 0)
    return left
      .coGroup(right)
      .where(({ split, n }) => keyOf(shape, split, n))
      .equalTo(({ split, n }) => keyOf(shape, split, n))
      .window(tumblingWindows({ sizeMs: shape.windowMs }))
      .apply<Entry>(
        (lefts, rights, { key, window }) => [
          entryOf(key, window.startMs / shape.windowMs, sumOf(lefts) + rightFactor * sumOf(rights)),
        ],
        { schema: entrySchema },
      )
  },
  judge(facts, entries) {
    const { shape } = facts
    const sums = new Map<string, number>()
    for (const { split, n, key } of recordsRead(facts)) {
      const name = `${key} ${Math.floor((n * shape.stepMs) / shape.windowMs)}`
      sums.set(name, (sums.get(name) ?? 0) + (isLeft(shape, split) ? 1 : rightFactor) * weightOf(split, n))
    }
    const names = [...sums].map(([name, sum]) => `${name}: ${sum}`)
    return compareNames('groups', new Set(names), entries, ({ key, n, count }) => `${key} ${n}: ${count}`)
  },
}

/** An entry is a pair: `split` and `n` are the left record's, `count` says which the right one is. */
const pairOf = (split: number, n: number): number => split * 1_000_000 + n

function nameOfPair({ key, split, n, count }: LedgerEntry): string {
  return `${key}: ${split} ${n} with ${count}`
}

export const windowJoin: Flow = {
  ...timed,
  build: ({ halves, shape }) => {
    const { left, right } = halves()
    return left
      .join(right)
      .where(({ split, n }) => keyOf(shape, split, n))
      .equalTo(({ split, n }) => keyOf(shape, split, n))
      .window(tumblingWindows({ sizeMs: shape.windowMs }))
      .apply<Entry>((one, other, { key }) => ({ ...one, key, count: pairOf(other.split, other.n) }), {
        schema: entrySchema,
      })
  },
  judge: (facts, entries) => {
    const windowOf = (n: number) => Math.floor((n * facts.shape.stepMs) / facts.shape.windowMs)
    return judgePairs(facts, entries, (left, right) => windowOf(left) === windowOf(right))
  },
}

export const intervalJoin: Flow = {
  ...timed,
  endings: ['bounded', 'bounded', 'drained', 'stopped', 'cut'],
  build: ({ halves, shape }) => {
    const { left, right } = halves()
    const keyed = (stream: Stream<Numbered>) => stream.keyBy(({ split, n }) => keyOf(shape, split, n))
    return keyed(left)
      .intervalJoin(keyed(right))
      .between(-shape.gapMs, shape.timerDelayMs)
      .process<Entry>((one, other, { key, emit }) => emit({ ...one, key, count: pairOf(other.split, other.n) }), {
        schema: entrySchema,
      })
  },
  judge: (facts, entries) => {
    const { stepMs, gapMs, timerDelayMs } = facts.shape
    return judgePairs(facts, entries, (left, right) => {
      const apartMs = (right - left) * stepMs
      return apartMs >= -gapMs && apartMs <= timerDelayMs
    })
  },
}

function judgePairs(
  facts: Facts,
  entries: readonly LedgerEntry[],
  meet: (left: number, right: number) => boolean,
): string[] {
  const records = [...recordsRead(facts)]
  const rights = Map.groupBy(
    records.filter(({ split }) => !isLeft(facts.shape, split)),
    ({ key }) => key,
  )
  const names = new Set<string>()
  for (const { split, n, key } of records.filter((record) => isLeft(facts.shape, record.split)))
    for (const right of rights.get(key) ?? [])
      if (meet(n, right.n))
        names.add(nameOfPair({ key, split, n, magic: LEDGER_MAGIC, count: pairOf(right.split, right.n) }))
  return compareNames('pairs', names, entries, nameOfPair)
}
