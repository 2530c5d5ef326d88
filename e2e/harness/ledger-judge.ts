// Judges one book of the ledger, entry by entry as they become visible: lost, doubled, reordered, unexpected, damaged, miscounted.
// Keeps a bit for each record and two numbers for each key, so that ten million records fit.

import { Arrivals } from './ledger-arrivals.ts'
import type { LedgerArrival, LedgerGap } from './ledger-arrivals.ts'
import { grown, KeyCounts } from './ledger-counts.ts'
import { LEDGER_MAGIC } from './ledger-entry.ts'
import type { LedgerRow } from './ledger-entry.ts'
import { SeenNumbers } from './ledger-numbers.ts'

/** What the book should hold. Without `perSplit` a split should hold all numbers up to the highest that came. */
export interface LedgerQuestion {
  readonly splits?: number | undefined
  readonly perSplit?: number | undefined
  /** Number of keys (ledger-entry.ts); given with splits and perSplit, each key's number of records is checked too. */
  readonly keys?: number | undefined
  /** Gaps are looked for from here on, ms since the epoch by the ledger's clock. */
  readonly sinceMs?: number | undefined
  /** Repetitions, their order and counts are told and do not spoil `exact`. */
  readonly atLeastOnce?: boolean | undefined
}

export interface SplitReport {
  readonly split: number
  /** Records that came, each counted once. */
  readonly distinct: number
  readonly doubled: number
  /** −1: none. */
  readonly highest: number
  /** The highest n up to which none is missing; −1: 0 is missing. */
  readonly contiguous: number
}

export interface BookReport {
  /** Nothing is lost, doubled, reordered, unexpected, damaged or miscounted, and at least one record came. */
  readonly exact: boolean
  /** undefined: nobody said how many there should be. */
  readonly expected: number | undefined
  /** Entries, repetitions included. */
  readonly present: number
  readonly lost: number
  /** Entries too many. */
  readonly doubled: number
  /** Records that came for the first time behind a later one of the same split and key (of the same split, without keys). */
  readonly reordered: number
  /** Records of no split or number of the source. */
  readonly unexpected: number
  readonly wrongMagic: number
  readonly keys: number
  /** Keys whose counts are not 1 … the number of their records, each once. */
  readonly wrongCounts: number
  readonly splits: readonly SplitReport[]
  readonly gap: LedgerGap | undefined
  readonly firstArrival: LedgerArrival | undefined
  readonly lastArrival: LedgerArrival | undefined
  /** The first findings, for people. */
  readonly samples: readonly string[]
}

const SPLITS_MAX = 65_536
const N_MAX = 0xffff_fffe
const SAMPLES_MAX = 20

interface SplitSeen {
  readonly numbers: SeenNumbers
  doubled: number
  /** Records with keys that are ordered among themselves only: by the key's index, the latest n and one. */
  latestOfKey: Uint32Array<ArrayBuffer>
  latest: number
}

export class LedgerJudge {
  readonly arrivals = new Arrivals()
  readonly #splits = new Map<number, SplitSeen>()
  readonly #counts = new KeyCounts()
  readonly #samples: string[] = []
  #present = 0
  #reordered = 0
  #unexpected = 0
  #wrongMagic = 0

  /** Entries that became visible together, in their order. `from`: for people. */
  add(rows: readonly LedgerRow[], atMs: number, from: string): void {
    let isNew = false
    for (const row of rows) {
      this.#present++
      const [split, n, magic] = row
      if (magic !== LEDGER_MAGIC) {
        this.#wrongMagic++
        this.#note(`wrong magic: ${JSON.stringify(row)} of ${from}`)
      } else if (!isWithin(split, SPLITS_MAX) || !isWithin(n, N_MAX)) {
        this.#unexpected++
        this.#note(`unexpected: ${JSON.stringify(row)} of ${from}`)
      } else if (this.#addRecord(split, n, row, from) && !isNew) {
        isNew = true
        this.arrivals.add(atMs, split, n)
      }
    }
  }

  report(question: LedgerQuestion): BookReport {
    const { splits, perSplit, keys, sinceMs = 0, atLeastOnce = false } = question
    const samples = [...this.#samples]
    let [lost, doubled, unexpected, distinct] = [0, 0, this.#unexpected, 0]
    const seen = [...this.#splits].toSorted(([left], [right]) => left - right)
    const wanted = new Set(seen.map(([split]) => split))
    for (let split = 0; split < (splits ?? 0); split++) wanted.add(split)
    for (const split of wanted) {
      const { numbers = new SeenNumbers(), doubled: again = 0 } = this.#splits.get(split) ?? {}
      const limit = splits !== undefined && split >= splits ? 0 : (perSplit ?? numbers.highest + 1)
      const inside = numbers.below(limit)
      distinct += numbers.size
      doubled += again
      lost += limit - inside
      unexpected += numbers.size - inside
      if (numbers.size > inside)
        samples.push(`unexpected: ${numbers.size - inside} of split ${split} from n ${limit} on`)
      for (const n of numbers.missing(limit, 5)) samples.push(`lost: split ${split}, n ${n}`)
    }
    const isWhole = splits !== undefined && perSplit !== undefined
    const wrongCounts = this.#counts.wrong(
      isWhole && keys !== undefined && !atLeastOnce ? { splits, perSplit, keys } : undefined,
    )
    const faults = lost + unexpected + this.#wrongMagic
    const orderFaults = atLeastOnce ? 0 : doubled + this.#reordered + wrongCounts.count
    return {
      exact: faults + orderFaults === 0 && distinct > 0,
      expected: isWhole ? splits * perSplit : undefined,
      present: this.#present,
      lost,
      doubled,
      reordered: this.#reordered,
      unexpected,
      wrongMagic: this.#wrongMagic,
      keys: this.#counts.size,
      wrongCounts: wrongCounts.count,
      splits: seen.map(([split, { numbers, doubled }]) => ({
        split,
        distinct: numbers.size,
        doubled,
        highest: numbers.highest,
        contiguous: numbers.contiguous,
      })),
      gap: this.arrivals.largestGap(sinceMs),
      firstArrival: this.arrivals.first,
      lastArrival: this.arrivals.last,
      samples: [...samples, ...wrongCounts.samples].slice(0, 2 * SAMPLES_MAX),
    }
  }

  /** Whether the record came for the first time. */
  #addRecord(split: number, n: number, row: LedgerRow, from: string): boolean {
    let seen = this.#splits.get(split)
    if (seen === undefined) {
      seen = { numbers: new SeenNumbers(), doubled: 0, latestOfKey: new Uint32Array(1_024), latest: -1 }
      this.#splits.set(split, seen)
    }
    const [, , , key, count] = row
    const index = typeof key === 'string' ? this.#counts.add(key, count) : undefined
    if (!seen.numbers.add(n)) {
      seen.doubled++
      this.#note(`doubled: ${JSON.stringify(row)} of ${from}`)
      return false
    }
    const latest = latestOf(seen, index)
    if (n < latest) {
      this.#reordered++
      this.#note(`reordered: ${JSON.stringify(row)} of ${from} behind n ${latest}`)
    } else if (index === undefined) seen.latest = n
    else seen.latestOfKey[index] = n + 1
    return true
  }

  #note(finding: string): void {
    if (this.#samples.length < SAMPLES_MAX) this.#samples.push(finding)
  }
}

/** −1: none. Makes room for the key. */
function latestOf(seen: SplitSeen, keyIndex: number | undefined): number {
  if (keyIndex === undefined) return seen.latest
  while (keyIndex >= seen.latestOfKey.length) seen.latestOfKey = grown(seen.latestOfKey)
  return seen.latestOfKey[keyIndex]! - 1
}

function isWithin(value: unknown, max: number): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max
}
