import { describe, expect, it } from 'vitest'
import { checkLedger, type LedgerExpectation } from './ledger-check.ts'
import type { LedgerEntry } from './ledger.ts'
import { LEDGER_MAGIC } from './sequence.ts'

const keyOf = (split: number, n: number): string => `k${(split + n) % 2}`
const expectation: LedgerExpectation = { splits: 2, perSplit: 3, keyOf }

function exactLedger(): LedgerEntry[] {
  const counts = new Map<string, number>()
  const entries: LedgerEntry[] = []
  for (let n = 0; n < 3; n++) {
    for (let split = 0; split < 2; split++) {
      const key = keyOf(split, n)
      const count = (counts.get(key) ?? 0) + 1
      counts.set(key, count)
      entries.push({ split, n, magic: LEDGER_MAGIC, key, count })
    }
  }
  return entries
}

describe('ledger check', () => {
  it('finds nothing in an exact ledger', () => {
    expect(checkLedger(exactLedger(), expectation)).toMatchObject({ exact: true, expected: 6, present: 6, samples: [] })
  })

  const faults: { what: string; spoil: (entries: LedgerEntry[]) => void; found: object }[] = [
    {
      what: 'a lost record and the hole in its key',
      spoil: (entries) => entries.splice(2, 1),
      found: { lost: 1, wrongCounts: 1 },
    },
    {
      what: 'a doubled record',
      spoil: (entries) => entries.push(entries[5]!),
      found: { duplicate: 1, wrongCounts: 1 },
    },
    {
      what: 'an overtaken record',
      spoil: (entries) => entries.sort((left, right) => right.n - left.n || right.split - left.split),
      found: { reordered: 2, lost: 0, duplicate: 0 },
    },
    {
      what: 'a record of no split',
      spoil: (entries) => entries.push({ ...entries[0]!, split: 2 }),
      found: { unexpected: 1 },
    },
    {
      what: 'a number beyond the end',
      spoil: (entries) => entries.push({ ...entries[0]!, n: 3 }),
      found: { unexpected: 1 },
    },
    { what: 'a broken number', spoil: (entries) => entries.push({ ...entries[0]!, n: 0.5 }), found: { unexpected: 1 } },
    {
      what: 'a shifted byte',
      spoil: (entries) => (entries[0] = { ...entries[0]!, magic: 7 }),
      found: { wrongMagic: 1, lost: 1 },
    },
    {
      what: 'a record under the key of another',
      spoil: (entries) => (entries[0] = { ...entries[0]!, key: 'k1' }),
      found: { wrongKey: 1, wrongCounts: 1 },
    },
    {
      what: 'a count that is wrong though every record is there',
      spoil: (entries) => (entries[4] = { ...entries[4]!, count: 9 }),
      found: { lost: 0, wrongCounts: 1 },
    },
    {
      what: 'a count taken twice',
      spoil: (entries) => (entries[5] = { ...entries[5]!, count: 2 }),
      found: { wrongCounts: 1 },
    },
  ]
  for (const { what, spoil, found } of faults) {
    it(`finds ${what}`, () => {
      const entries = exactLedger()
      spoil(entries)
      const report = checkLedger(entries, expectation)
      expect(report).toMatchObject({ exact: false, ...found })
      expect(report.samples.length).toBeGreaterThan(0)
    })
  }

  it('takes an empty ledger for one that lost everything', () => {
    expect(checkLedger([], expectation)).toMatchObject({ exact: false, lost: 6, wrongCounts: 2 })
  })

  it('lets records come again, but none be lost, where that is the promise', () => {
    const entries = [...exactLedger(), ...exactLedger()]
    expect(checkLedger(entries, { ...expectation, atLeastOnce: true }).exact).toBe(true)
    expect(checkLedger(entries.slice(0, 5), { ...expectation, atLeastOnce: true }).exact).toBe(false)
  })

  it('holds the order of a split without keys', () => {
    const entries = [1, 0].map((n) => ({ split: 0, n, magic: LEDGER_MAGIC }))
    expect(checkLedger(entries, { splits: 1, perSplit: 2 })).toMatchObject({ reordered: 1 })
  })
})
