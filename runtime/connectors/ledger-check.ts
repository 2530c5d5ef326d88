// Judges a ledger: lost, doubled, reordered, unexpected, damaged and miscounted records. Pure.

import type { LedgerEntry } from './ledger.ts'
import { LEDGER_MAGIC } from './sequence.ts'

export interface LedgerExpectation {
  readonly splits: number
  /** How many records of each split must be there: 0 ≤ n < perSplit. */
  readonly perSplit: number | ((split: number) => number)
  /** Set when a keyed counter stands before the ledger: entries must carry this key and counts 1, 2, 3 … without gap per key. */
  readonly keyOf?: (split: number, n: number) => string
  /** How many times each record is to be there, e.g. 2 behind a union with itself; default 1. */
  readonly copies?: number
  /** Whether records may come more than once (an at-least-once sink); counts per key are not judged then. */
  readonly atLeastOnce?: boolean
}

export interface LedgerReport {
  readonly exact: boolean
  readonly expected: number
  readonly present: number
  readonly lost: number
  readonly duplicate: number
  /** Entries that stand behind a later one of the same split (and key, if there is one). */
  readonly reordered: number
  /** Entries of no split or number of the source. */
  readonly unexpected: number
  readonly wrongMagic: number
  /** Entries whose key is not the record's. */
  readonly wrongKey: number
  /** Keys whose counts are not exactly 1 … the number of their records. */
  readonly wrongCounts: number
  /** The first few findings, for people. */
  readonly samples: readonly string[]
}

const SAMPLES_MAX = 20

/** `entries` in the order in which they were committed. */
export function checkLedger(entries: readonly LedgerEntry[], expectation: LedgerExpectation): LedgerReport {
  const { splits, keyOf, copies = 1, atLeastOnce = false } = expectation
  const perSplit = (split: number): number =>
    typeof expectation.perSplit === 'number' ? expectation.perSplit : expectation.perSplit(split)
  const samples: string[] = []
  const note = (finding: string): void => {
    if (samples.length < SAMPLES_MAX) samples.push(finding)
  }
  const seen = Array.from({ length: splits }, (_, split) => new Uint32Array(perSplit(split)))
  const latest = new Map<string, number>()
  const countsOf = new Map<string, number[]>()
  let [reordered, unexpected, wrongMagic, wrongKey] = [0, 0, 0, 0]

  for (const entry of entries) {
    const { split, n, magic, key } = entry
    if (magic !== LEDGER_MAGIC) {
      wrongMagic++
      note(`wrong magic: ${JSON.stringify(entry)}`)
      continue
    }
    const numbers = seen[split]
    if (numbers === undefined || !Number.isInteger(n) || n < 0 || n >= numbers.length) {
      unexpected++
      note(`unexpected: ${JSON.stringify(entry)}`)
      continue
    }
    numbers[n]!++
    // A key's records take one way through the job, so their order must hold; records of different keys may overtake one another.
    const line = key === undefined ? String(split) : `${split} ${key}`
    const before = latest.get(line)
    if (before !== undefined && n < before && !atLeastOnce) {
      reordered++
      note(`reordered: ${JSON.stringify(entry)} behind ${before}`)
    }
    latest.set(line, Math.max(n, before ?? 0))
    if (keyOf === undefined) continue
    if (key !== keyOf(split, n)) {
      wrongKey++
      note(`wrong key: ${JSON.stringify(entry)}`)
      continue
    }
    const counts = countsOf.get(key)
    if (counts === undefined) countsOf.set(key, [entry.count ?? Number.NaN])
    else counts.push(entry.count ?? Number.NaN)
  }

  let [expected, lost, duplicate] = [0, 0, 0]
  const expectedPerKey = new Map<string, number>()
  for (const [split, numbers] of seen.entries()) {
    for (const [n, times] of numbers.entries()) {
      expected += copies
      if (keyOf !== undefined) expectedPerKey.set(keyOf(split, n), (expectedPerKey.get(keyOf(split, n)) ?? 0) + copies)
      if (times < copies) {
        lost += copies - times
        note(`lost: split ${split}, n ${n}`)
      }
      if (times > copies && !atLeastOnce) {
        duplicate += times - copies
        note(`duplicate: split ${split}, n ${n}, ${times} times`)
      }
    }
  }

  let wrongCounts = 0
  for (const [key, records] of atLeastOnce ? [] : expectedPerKey) {
    const counts = (countsOf.get(key) ?? []).sort((left, right) => left - right)
    if (counts.length === records && counts.every((value, index) => value === index + 1)) continue
    wrongCounts++
    note(`wrong counts: key ${key} has ${counts.length} of ${records}, ${JSON.stringify(counts.slice(0, 10))} …`)
  }

  const faults = lost + duplicate + reordered + unexpected + wrongMagic + wrongKey + wrongCounts
  return {
    exact: faults === 0,
    expected,
    present: entries.length,
    lost,
    duplicate,
    reordered,
    unexpected,
    wrongMagic,
    wrongKey,
    wrongCounts,
    samples,
  }
}
