// Windows of other kinds: sessions, windows of the wall clock, and one for all time that fires by number.

import { z } from 'zod'
import type { LedgerEntry } from '../../connectors/ledger.ts'
import { checkMagic } from '../../connectors/sequence.ts'
import type { OperatorStream } from '../../job/stream.ts'
import { countTrigger, purging } from '../../operators/triggers.ts'
import { globalWindow, sessionWindows, tumblingWindows } from '../../operators/window-assigner.ts'
import { compareNames, entrySchema, keyOf, recordsRead, weightOf } from './flow.ts'
import type { Entry, Facts, Flow, FlowInputs, NumberedKey } from './flow.ts'
import { entryOf } from './windows.ts'

const sums = {
  create: () => 0,
  add: (sum: number, { split, n, magic }: { readonly split: number; readonly n: number; readonly magic: number }) => {
    checkMagic({ magic })
    return sum + weightOf(split, n)
  },
  result: (sum: number) => sum,
  merge: (left: number, right: number) => left + right,
}

/** `n` is when the session began, in steps; `count` its sum. */
export const sessions: Flow = {
  endings: ['bounded', 'bounded', 'drained'],
  streams: 'one',
  immediate: false,
  build: ({ all, shape }) =>
    all()
      .keyBy(({ split, n }) => keyOf(shape, split, n))
      .window(sessionWindows({ gapMs: shape.gapMs }))
      .aggregate<number, number, Entry>(sums, {
        accumulator: z.int(),
        schema: entrySchema,
        process: (key, { startMs }, sum) => entryOf(key, startMs / shape.stepMs, sum),
      }),
  judge: (facts, entries) =>
    compareNames('sessions', sessionsOf(facts), entries, ({ key, n, count }) => `${key} from ${n}: ${count}`),
  isComplete: () => true,
}

function sessionsOf(facts: Facts): Set<string> {
  const { stepMs, gapMs } = facts.shape
  const sessions = new Set<string>()
  for (const [key, records] of byKey(facts)) {
    records.sort((left, right) => left.n - right.n)
    let begin = records[0]!.n
    let [last, sum] = [begin, 0]
    for (const { split, n } of records) {
      if ((n - last) * stepMs >= gapMs) {
        sessions.add(`${key} from ${begin}: ${sum}`)
        begin = n
        sum = 0
      }
      last = n
      sum += weightOf(split, n)
    }
    sessions.add(`${key} from ${begin}: ${sum}`)
  }
  return sessions
}

/** Which window a record is in is up to the clock of its subtask: the sums of a key add up to all its records. */
export const processingWindows: Flow = {
  // The end of a bounded job overtakes its last windows.
  endings: ['quiet'],
  streams: 'one',
  immediate: false,
  build: ({ all, shape }) =>
    all()
      .keyBy(({ split, n }) => keyOf(shape, split, n))
      .window(tumblingWindows({ sizeMs: shape.windowMs, time: 'processing' }))
      .aggregate<number, number, Entry>(sums, {
        accumulator: z.int(),
        schema: entrySchema,
        process: (key, { startMs }, sum) => entryOf(key, startMs, sum),
      }),
  judge: (facts, entries) =>
    compareNames('sums of keys', totals(facts), [...totalsSeen(entries)], ({ key, count }) => `${key}: ${count}`),
  isComplete: (facts, entries) =>
    totalOf(totalsSeen(entries)) >=
    totalOf([...recordsRead(facts)].map(({ split, n }) => ({ count: weightOf(split, n) }))),
}

function totals(facts: Facts): Set<string> {
  const all = [...byKey(facts)].map(
    ([key, records]) => `${key}: ${records.reduce((sum, { split, n }) => sum + weightOf(split, n), 0)}`,
  )
  return new Set(all)
}

function totalsSeen(entries: readonly LedgerEntry[]): LedgerEntry[] {
  const seen = new Map<string, LedgerEntry>()
  for (const entry of entries) {
    const count = (seen.get(entry.key!)?.count ?? 0) + (entry.count ?? Number.NaN)
    seen.set(entry.key!, { ...entry, count })
  }
  return [...seen.values()]
}

function totalOf(entries: readonly { readonly count?: number }[]): number {
  return entries.reduce((total, { count }) => total + (count ?? Number.NaN), 0)
}

/** So many records of a key come out together. */
const together = 3

/** Which ones is up to the order of their arrival, how many is not: no record twice, of each key all but what is too few for another firing. */
export const countWindows: Flow = {
  endings: ['bounded', 'bounded', 'quiet', 'cut', 'stopped', 'drained'],
  streams: 'one',
  immediate: false,
  build: ({ all, shape }: FlowInputs): OperatorStream<Entry> =>
    all()
      .keyBy(({ split, n }) => keyOf(shape, split, n))
      .window(globalWindow())
      .trigger(purging(countTrigger(together)))
      .process<Entry>((key, _window, records) => records.map((value) => ({ ...value, key, count: records.length })), {
        schema: entrySchema,
      }),
  judge: judgeCountWindows,
  isComplete: (facts, entries) => entries.length >= firedOf(byKey(facts)),
}

function firedOf(records: ReadonlyMap<string, readonly NumberedKey[]>): number {
  return [...records.values()].reduce((sum, { length }) => sum + length - (length % together), 0)
}

function judgeCountWindows(facts: Facts, entries: readonly LedgerEntry[]): string[] {
  const seen = new Set(entries.map(({ split, n }) => `${split} ${n}`))
  const failures: string[] = []
  if (seen.size !== entries.length) failures.push(`${entries.length - seen.size} records came in two windows`)
  const records = byKey(facts)
  const came = new Map<string, number>()
  for (const { key, split, n, count } of entries) {
    came.set(key!, (came.get(key!) ?? 0) + 1)
    if (count !== together || key !== keyOf(facts.shape, split, n) || n >= facts.readOf(split))
      failures.push(`unexpected ${JSON.stringify({ key, split, n, count })}`)
  }
  for (const [key, { length }] of records) {
    const right = length - (length % together)
    if ((came.get(key) ?? 0) !== right) failures.push(`${came.get(key) ?? 0} records of ${key} came, not ${right}`)
  }
  return failures.slice(0, 6)
}

function byKey(facts: Facts): Map<string, NumberedKey[]> {
  return Map.groupBy(recordsRead(facts), ({ key }) => key)
}
