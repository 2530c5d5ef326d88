import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkLedger } from '../../runtime/connectors/ledger-check.ts'
import { LEDGER_MAGIC as MAGIC_OF_THE_SOURCE } from '../../runtime/connectors/sequence.ts'
import { keyName, keyNumber, LEDGER_MAGIC } from './ledger-entry.ts'
import type { LedgerRow } from './ledger-entry.ts'
import { LedgerJudge } from './ledger-judge.ts'
import { SeenNumbers } from './ledger-numbers.ts'

const plain = (split: number, n: number): LedgerRow => [split, n, LEDGER_MAGIC]
const keyOf = (split: number, n: number, keys: number): string => keyName(keyNumber(split, n, keys))

/** What an exact job with a counter writes, split by split. */
function countedRows(splits: number, perSplit: number, keys: number): LedgerRow[] {
  const counts = new Map<string, number>()
  const rows: LedgerRow[] = []
  for (let n = 0; n < perSplit; n++) {
    for (let split = 0; split < splits; split++) {
      const key = keyOf(split, n, keys)
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      rows.push([split, n, LEDGER_MAGIC, key, count])
    }
  }
  return rows
}

function judged(...batches: readonly (readonly LedgerRow[])[]): LedgerJudge {
  const judge = new LedgerJudge()
  for (const [index, rows] of batches.entries()) judge.add(rows, 1_000 + 100 * index, `t${index}`)
  return judge
}

describe('the judge', () => {
  it('knows the magic number of the source', () => {
    expect(LEDGER_MAGIC).toBe(MAGIC_OF_THE_SOURCE)
  })

  it('calls exact what is whole, with and without an expected number', () => {
    const judge = judged(countedRows(2, 50, 7))
    expect(judge.report({ splits: 2, perSplit: 50, keys: 7 })).toMatchObject({
      exact: true,
      expected: 100,
      present: 100,
      keys: 7,
      samples: [],
    })
    expect(judge.report({})).toMatchObject({ exact: true, expected: undefined, lost: 0 })
    expect(judge.report({ splits: 2, perSplit: 50 }).splits).toEqual([
      { split: 0, distinct: 50, doubled: 0, highest: 49, contiguous: 49 },
      { split: 1, distinct: 50, doubled: 0, highest: 49, contiguous: 49 },
    ])
  })

  it('calls nothing exact while nothing came', () => {
    expect(judged().report({}).exact).toBe(false)
    expect(judged().report({ splits: 1, perSplit: 2 })).toMatchObject({ exact: false, lost: 2 })
  })

  it('sees a lost record, also before the highest when nobody says how many there are', () => {
    const judge = judged([plain(0, 0), plain(0, 2)])
    expect(judge.report({})).toMatchObject({ exact: false, lost: 1, samples: ['lost: split 0, n 1'] })
    expect(judge.report({ splits: 2, perSplit: 3 })).toMatchObject({ exact: false, lost: 4 })
    expect(judge.report({}).splits[0]).toMatchObject({ highest: 2, contiguous: 0 })
  })

  it('sees a doubled record, which at least once may be', () => {
    const judge = judged([plain(0, 0), plain(0, 1)], [plain(0, 1)])
    expect(judge.report({})).toMatchObject({ exact: false, doubled: 1, present: 3 })
    expect(judge.report({}).samples).toEqual(['doubled: [0,1,1297239111] of t1'])
    expect(judge.report({ atLeastOnce: true })).toMatchObject({ exact: true, doubled: 1 })
  })

  it('sees a reordered record of a split, and with keys of a key only', () => {
    expect(judged([plain(0, 1), plain(0, 0)]).report({})).toMatchObject({ exact: false, reordered: 1 })
    const [first, second, third] = countedRows(1, 3, 2) as [LedgerRow, LedgerRow, LedgerRow]
    expect(judged([second, first, third]).report({})).toMatchObject({ exact: true, reordered: 0 })
    expect(judged([third, first, second]).report({})).toMatchObject({ exact: false, reordered: 1 })
  })

  it('sees records of no split and no number of the source', () => {
    const judge = judged([plain(0, 0), plain(1, 0), plain(0, 1), [0, 1.5, LEDGER_MAGIC], [-1, 0, LEDGER_MAGIC]])
    expect(judge.report({ splits: 1, perSplit: 1 })).toMatchObject({ exact: false, unexpected: 4, lost: 0 })
    expect(judge.report({})).toMatchObject({ exact: false, unexpected: 2 })
  })

  it('sees a damaged record', () => {
    const judge = judged([plain(0, 0), [0, 1, LEDGER_MAGIC + 1], [0, 1, null]])
    expect(judge.report({})).toMatchObject({ exact: false, wrongMagic: 2, lost: 0 })
  })

  it('sees a count that is missing, there twice, or no count, and a key that has too few', () => {
    const right = countedRows(1, 6, 2)
    const changed = (index: number, count: unknown): readonly LedgerRow[] =>
      right.map((row, at) => (at === index ? [row[0], row[1], row[2], row[3], count] : row))
    expect(judged(right).report({}).wrongCounts).toBe(0)
    for (const count of [1, 7, 0, 1.5, null, undefined])
      expect(judged(changed(2, count)).report({}), String(count)).toMatchObject({ exact: false, wrongCounts: 1 })
    // The last of a key: only who knows how many it must have sees it.
    const stranger = right.map((row, at): LedgerRow => (at === 5 ? [row[0], row[1], row[2], 'key 5', 1] : row))
    expect(judged(stranger).report({}).wrongCounts).toBe(0)
    expect(judged(stranger).report({ splits: 1, perSplit: 6, keys: 2 }).wrongCounts).toBe(2)
  })

  it('takes the counts of a key in any order of commits', () => {
    const rows = countedRows(1, 40, 1)
    const judge = judged(rows.slice(20), rows.slice(0, 20))
    expect(judge.report({ splits: 1, perSplit: 40, keys: 1 }).wrongCounts).toBe(0)
  })

  it('measures the longest silence between records never seen before', () => {
    const judge = new LedgerJudge()
    judge.add([plain(0, 0)], 1_000, 'a')
    judge.add([plain(0, 0)], 1_400, 'a repetition is no new record')
    judge.add([plain(0, 1)], 1_500, 'b')
    judge.add([plain(0, 2)], 1_800, 'c')
    expect(judge.report({}).gap).toEqual({ ms: 500, fromMs: 1_000, toMs: 1_500 })
    expect(judge.report({ sinceMs: 1_499 }).gap).toEqual({ ms: 500, fromMs: 1_000, toMs: 1_500 })
    expect(judge.report({ sinceMs: 1_500 }).gap).toEqual({ ms: 300, fromMs: 1_500, toMs: 1_800 })
    expect(judge.report({ sinceMs: 1_800 }).gap).toBeUndefined()
    expect(judge.arrivals.firstAfter(1_000)).toEqual({ atMs: 1_500, split: 0, n: 1 })
    expect(judge.arrivals.firstAfter(1_800)).toBeUndefined()
    expect(judge.report({})).toMatchObject({ firstArrival: { atMs: 1_000 }, lastArrival: { atMs: 1_800, n: 2 } })
  })

  it('finds what the check of a whole ledger finds, whatever was done to an exact one', () => {
    const damage = fc.record({ at: fc.nat(79), kind: fc.constantFrom('drop', 'repeat', 'swap', 'magic', 'count') })
    fc.assert(
      fc.property(fc.array(damage, { maxLength: 4 }), (damages) => {
        const rows = countedRows(2, 40, 5)
        for (const { at, kind } of damages) {
          const row = rows[at]
          if (row === undefined) continue
          if (kind === 'drop') rows.splice(at, 1)
          if (kind === 'repeat') rows.push(row)
          if (kind === 'swap') rows.splice(at, 2, ...rows.slice(at, at + 2).toReversed())
          if (kind === 'magic') rows[at] = [row[0], row[1], 1, row[3], row[4]]
          if (kind === 'count') rows[at] = [row[0], row[1], row[2], row[3], Number(row[4]) + 1]
        }
        const entries = rows.map(([split, n, magic, key, count]) => ({
          split: split as number,
          n: n as number,
          magic: magic as number,
          key: key as string,
          count: count as number,
        }))
        const whole = checkLedger(entries, { splits: 2, perSplit: 40, keyOf: (split, n) => keyOf(split, n, 5) })
        const report = judged(rows).report({ splits: 2, perSplit: 40, keys: 5 })
        expect(report).toMatchObject({
          exact: whole.exact,
          lost: whole.lost,
          doubled: whole.duplicate,
          wrongMagic: whole.wrongMagic,
          unexpected: whole.unexpected,
          wrongCounts: whole.wrongCounts,
        })
      }),
    )
  })
})

describe('the numbers seen', () => {
  it('are kept over full and empty pieces', () => {
    const seen = new SeenNumbers()
    for (let n = 0; n < 200_000; n++) if (n !== 70_000) expect(seen.add(n)).toBe(true)
    expect(seen.add(3)).toBe(false)
    expect(seen.add(4_000_000_000)).toBe(true)
    expect([seen.size, seen.highest, seen.contiguous]).toEqual([200_000, 4_000_000_000, 69_999])
    expect([seen.below(70_000), seen.below(70_001), seen.below(150_000)]).toEqual([70_000, 70_000, 149_999])
    expect(seen.missing(200_002, 10)).toEqual([70_000, 200_000, 200_001])
    seen.add(70_000)
    expect(seen.contiguous).toBe(199_999)
  })
})
