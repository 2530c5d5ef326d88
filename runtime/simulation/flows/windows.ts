// Sums of event-time windows: an entry for each firing. `n` says which window of the key it is, `count` holds the sum.

import { z } from 'zod'
import type { LedgerEntry } from '../../connectors/ledger.ts'
import { LEDGER_MAGIC, checkMagic } from '../../connectors/sequence.ts'
import type { OperatorStream } from '../../job/stream.ts'
import { tumblingWindows } from '../../operators/window-assigner.ts'
import { recordsOf } from '../job/shape.ts'
import { entrySchema, keyOf, recordsRead, weightOf } from './flow.ts'
import type { Entry, Facts, Flow, FlowInputs } from './flow.ts'

export const windows: Flow = {
  endings: ['bounded', 'bounded', 'drained'],
  streams: 'one',
  immediate: false,
  build: buildWindows,
  judge: judgeWindows,
  isComplete: () => true,
}

/** One split falls silent for good, and the others' windows must fire all the same. */
export const idleWindows: Flow = {
  ...windows,
  // Event time is not stored with a source's splits: after a restore, silent ones alone bring it nowhere.
  endings: ['bounded', 'cut'],
  isComplete({ shape }, entries) {
    const silentMs = recordsOf(shape, 0) * shape.stepMs
    return entries.some(({ n }) => n * shape.windowMs > silentMs)
  },
}

function buildWindows({ all, shape }: FlowInputs): OperatorStream<Entry> {
  return all()
    .keyBy(({ split, n }) => keyOf(shape, split, n))
    .window(tumblingWindows({ sizeMs: shape.windowMs }))
    .aggregate<{ sum: number }, number, Entry>(
      {
        create: () => ({ sum: 0 }),
        add: (accumulator, { split, n, magic }) => {
          checkMagic({ magic })
          accumulator.sum += weightOf(split, n)
          return accumulator
        },
        result: ({ sum }) => sum,
      },
      {
        accumulator: z.object({ sum: z.int() }),
        schema: entrySchema,
        process: (key, { startMs }, sum) => entryOf(key, startMs / shape.windowMs, sum),
      },
    )
}

export function entryOf(key: string, n: number, count: number): Entry {
  return { split: 0, n, magic: LEDGER_MAGIC, key, count, pad: '' }
}

interface WindowSum {
  readonly key: string
  readonly window: number
  readonly sum: number
}

/** The same sums by a plain loop. */
function windowSums(facts: Facts, newest: number): Map<string, WindowSum> {
  const { shape } = facts
  const sums = new Map<string, WindowSum>()
  const lastMs = (newest + 1) * shape.windowMs
  // Of splits without end, those that can be in the windows.
  const readOf = (split: number) =>
    facts.timeEnded ? facts.readOf(split) : Math.min(recordsOf(shape, split), Math.ceil(lastMs / shape.stepMs))
  for (const { split, n, key } of recordsRead({ shape, readOf })) {
    const window = Math.floor((n * shape.stepMs) / shape.windowMs)
    const name = `${key} ${window}`
    sums.set(name, { key, window, sum: (sums.get(name)?.sum ?? 0) + weightOf(split, n) })
  }
  return sums
}

/** All windows have fired where event time has ended; else, of each key, all before its last one. */
function judgeWindows(facts: Facts, entries: readonly LedgerEntry[]): string[] {
  const { timeEnded, mayRepeat } = facts
  const newestOf = new Map<string, number>()
  for (const { key, n } of entries) newestOf.set(key!, Math.max(n, newestOf.get(key!) ?? 0))
  const sums = windowSums(facts, Math.max(0, ...newestOf.values()))
  const expected = [...sums.values()].filter(({ key, window }) => timeEnded || window <= (newestOf.get(key) ?? -1))
  const wrong: string[] = []
  const seen = new Map<string, number>()
  for (const entry of entries) {
    const name = `${entry.key} ${entry.n}`
    seen.set(name, (seen.get(name) ?? 0) + 1)
    const right = sums.get(name)
    if (entry.magic !== LEDGER_MAGIC) wrong.push(`unexpected ${JSON.stringify(entry)}`)
    // Read again, and in a window that a later cut does not have.
    else if (right === undefined && !mayRepeat) wrong.push(`unexpected ${JSON.stringify(entry)}`)
    else if (right !== undefined && !isSum(entry.count ?? Number.NaN, right.sum, mayRepeat))
      wrong.push(`window ${name} is ${entry.count}, not ${right.sum}`)
  }
  for (const { key, window } of expected) {
    const times = seen.get(`${key} ${window}`) ?? 0
    if (times === 0) wrong.push(`window ${key} ${window} is missing`)
  }
  for (const [name, times] of seen) if (times > 1 && !mayRepeat) wrong.push(`window ${name} came ${times} times`)
  return wrong.length === 0 ? [] : [`${wrong.length} windows are wrong: ${wrong.slice(0, 6).join('; ')}`]
}

function isSum(sum: number, right: number, mayRepeat: boolean): boolean {
  return mayRepeat ? sum >= right : sum === right
}
