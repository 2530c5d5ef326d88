import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { NumberEntries } from './number-entries.ts'

interface Entry {
  readonly key: number
}

/** Few hashes, 0 and the largest among them, so that most keys share one. */
const hashOf = (key: number): number => [0, 1, 5, 0xffffffff][key % 4]!

describe('the entries of number keys', () => {
  it('are found as in a Map, also where hashes are equal', () => {
    const step = fc.record({ verb: fc.constantFrom('set', 'set', 'remove'), key: fc.nat(30) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const entries = new NumberEntries<Entry>()
        const model = new Map<number, Entry>()
        for (const { verb, key } of steps) {
          if (verb === 'set') {
            const entry = { key }
            entries.set(entry, hashOf(key))
            model.set(key, entry)
          } else {
            entries.remove(key, hashOf(key))
            model.delete(key)
          }
          expect(entries.size).toBe(model.size)
        }
        for (let key = 0; key <= 30; key++) expect(entries.get(key, hashOf(key))).toBe(model.get(key))
        expect(new Set(entries.values())).toEqual(new Set(model.values()))
      }),
    )
  })

  it('that stay are met once by a walk, whatever comes and goes meanwhile', () => {
    const numbers = fc.uniqueArray(fc.nat(200), { maxLength: 60 })
    fc.assert(
      fc.property(numbers, numbers, numbers, (first, added, removed) => {
        const entries = new NumberEntries<Entry>()
        for (const key of first) entries.set({ key }, key)
        const walk = entries.values()
        const met = [walk.next(), walk.next()]
        for (const key of added) if (!first.includes(key)) entries.set({ key }, key)
        for (const key of removed) entries.remove(key, key)
        const keys = [...met.flatMap(({ done, value }) => (done === true ? [] : [value])), ...walk].map(
          ({ key }) => key,
        )
        expect(new Set(keys).size).toBe(keys.length)
        expect(keys).toEqual(expect.arrayContaining(first.filter((key) => !removed.includes(key))))
      }),
    )
  })

  it('are given for their hash alone, whoever of several has it', () => {
    const entries = new NumberEntries<Entry>()
    expect(entries.candidate(7)).toBeUndefined()
    entries.set({ key: 1 }, 7)
    entries.set({ key: 2 }, 7)
    expect(entries.candidate(7)).toEqual({ key: 1 })
  })
})
