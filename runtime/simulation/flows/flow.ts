// What a simulated job does between its sources and its ledger, and how the ledger is judged: by a plain computation over the same
// numbered records, that uses none of the operators under test.

import { z } from 'zod'
import type { Environment } from '../../base/environment.ts'
import type { LedgerEntry } from '../../connectors/ledger.ts'
import { LEDGER_MAGIC, sequenceRecordSchema } from '../../connectors/sequence.ts'
import type { OperatorStream, Stream } from '../../job/stream.ts'
import type { Ending, JobShape } from '../job/shape.ts'

export const numberedSchema = sequenceRecordSchema.extend({ pad: z.string() })
export type Numbered = z.infer<typeof numberedSchema>

export const entrySchema = z.object({
  split: z.int(),
  n: z.int(),
  magic: z.int(),
  key: z.string(),
  count: z.int(),
  pad: z.string(),
})
export type Entry = z.infer<typeof entrySchema>

export interface FlowInputs {
  readonly shape: JobShape
  /** Of the process that builds the graph: asynchronous functions wait by its clock. */
  readonly environment: Environment
  /** All splits in one stream. */
  readonly all: () => Stream<Numbered>
  /** The first half of the splits, and the other. */
  readonly halves: () => { readonly left: Stream<Numbered>; readonly right: Stream<Numbered> }
}

/** What is known of a job that has ended. */
export interface Facts {
  readonly shape: JobShape
  /** How many records of a split must be in the results, and no more than these. */
  readonly readOf: (split: number) => number
  /** How many of these another job had read before this one began where that one stood. */
  readonly before: (split: number) => number
  /** Event time has ended: every window and timer has fired. */
  readonly timeEnded: boolean
  /** At least once, and something was restored: nothing is lost, but records may count twice. */
  readonly mayRepeat: boolean
  /** The order of the entries is that of their commits. */
  readonly ordered: boolean
}

export interface Flow {
  readonly endings: readonly Ending[]
  /** Two: the operator reads each half of the splits by itself. */
  readonly streams: 'one' | 'two'
  /** Each record comes out once, as soon as it is there: what a job has given out follows from what it has read. */
  readonly immediate: boolean
  readonly build: (inputs: FlowInputs) => OperatorStream<Entry>
  /** Sentences about what is wrong; none: exact. */
  readonly judge: (facts: Facts, entries: readonly LedgerEntry[]) => string[]
  /** Whether a job that does not end by itself has given out all that it ever will. */
  readonly isComplete: (facts: Facts, entries: readonly LedgerEntry[]) => boolean
}

/** The key of a record where a count or a window is kept. */
export function keyOf(shape: JobShape, split: number, n: number): string {
  if (shape.flow === 'event timers' || shape.flow === 'processing timers' || shape.flow === 'pipes')
    return `split ${split}`
  return `key ${(split * 5 + n) % shape.keys}`
}

export function splitOf(key: string): number {
  return Number(key.slice('split '.length))
}

/** What a record adds to a sum: no two records the same, so that one cannot stand in for another. */
export function weightOf(split: number, n: number): number {
  return 1 + split * 100_003 + n * 7
}

export interface NumberedKey {
  readonly split: number
  readonly n: number
  readonly key: string
}

/** All records that must be in the results. */
export function* recordsRead({ shape, readOf }: Pick<Facts, 'shape' | 'readOf'>): Generator<NumberedKey> {
  for (let split = 0; split < shape.splits; split++) {
    const records = readOf(split)
    for (let n = 0; n < records; n++) yield { split, n, key: keyOf(shape, split, n) }
  }
}

/** Each name must come exactly once, and no other. */
export function compareNames(
  what: string,
  expected: ReadonlySet<string>,
  entries: readonly LedgerEntry[],
  nameOf: (entry: LedgerEntry) => string,
): string[] {
  const wrong: string[] = []
  const seen = new Set<string>()
  for (const entry of entries) {
    const name = entry.magic === LEDGER_MAGIC ? nameOf(entry) : `of magic ${entry.magic}: ${JSON.stringify(entry)}`
    if (seen.has(name)) wrong.push(`${name} twice`)
    else if (!expected.has(name)) wrong.push(`${name} unexpected`)
    seen.add(name)
  }
  for (const name of expected) if (!seen.has(name)) wrong.push(`${name} missing`)
  return wrong.length === 0
    ? []
    : [`${wrong.length} of ${expected.size} ${what} are wrong: ${wrong.slice(0, 6).join('; ')}`]
}
