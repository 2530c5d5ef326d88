import { describe, expect, it } from 'vitest'
import { countedAs } from './faults.ts'
import { kindsMissing, seedsForEachKind } from './floor.ts'

const all = Object.fromEntries(Object.values(countedAs).map(([name]) => [name!, 1]))
const seedsOf = (faults: Readonly<Record<string, number>>, count = seedsForEachKind) =>
  Array.from({ length: count }, (_, seed) => (seed === 3 ? faults : { kill: 1 }))

describe('the kinds of faults over many seeds', () => {
  it('are all there when each has met anybody in some seed', () => {
    expect(kindsMissing(seedsOf(all))).toEqual([])
    const { 'store slow': _, ...others } = all
    expect(kindsMissing(seedsOf({ ...others, 'ledger slow': 2 }))).toEqual([])
  })

  it.each(Object.entries(countedAs))('lack %s when nobody has met it', (kind, names) => {
    const left = Object.fromEntries(Object.entries(all).filter(([name]) => !names.includes(name)))
    const missing = kindsMissing(Array.from({ length: seedsForEachKind }, () => ({ ...left, [names[0]!]: 0 })))
    expect(missing).toContain(kind)
    for (const other of missing) expect(countedAs[other as keyof typeof countedAs]).toEqual(names)
  })

  it('say nothing of few seeds', () => {
    expect(kindsMissing(seedsOf({}, seedsForEachKind - 1))).toEqual([])
    expect(kindsMissing(seedsOf({})).length).toBeGreaterThan(20)
  })
})
