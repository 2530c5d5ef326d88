import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OtherEntries } from './other-entries.ts'
import { Location, VALUE } from './slots.ts'

describe('the entries of other keys than numbers', () => {
  it('are found as in a Map, whatever comes and goes, and give back the memory of those that went', () => {
    const step = fc.record({ verb: fc.constantFrom('add', 'remove'), from: fc.nat(300), count: fc.nat(300) })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
        const entries = new OtherEntries()
        const model = new Map<string, string>()
        const location = new Location()
        for (const [index, { verb, from, count }] of steps.entries()) {
          for (let number = from; number < from + count; number++) {
            const key = `key ${number}`
            entries.find(key, location)
            expect(location.at >= 0).toBe(model.has(key))
            if (verb === 'add' && location.at < 0) {
              entries.add(key, key, `value ${index}`, 0, location)
              model.set(key, `value ${index}`)
            } else if (verb === 'remove' && location.at >= 0) {
              entries.remove(key, location)
              model.delete(key)
            }
          }
          const met = Array.from(entries.walk(location), ({ slots, at }) => [slots[at], slots[at + VALUE]] as const)
          expect(met).toHaveLength(model.size)
          expect(new Map(met)).toEqual(model)
          // Three for an entry, an eighth of the places in use, and 64 free ones that nobody misses.
          expect(location.slots.length).toBeLessThanOrEqual(3 * Math.max(model.size * 8, model.size + 64))
        }
      }),
    )
  })

  it('that are there throughout are met by a walk once, also when the memory is given back meanwhile', () => {
    const entries = new OtherEntries()
    const location = new Location()
    for (let key = 0; key < 500; key++) entries.add(`${key}`, `${key}`, key, 0, location)
    const met: unknown[] = []
    for (const { slots, at } of entries.walk(new Location())) {
      met.push(slots[at + VALUE])
      if (met.length !== 10) continue
      for (let key = 0; key < 490; key++) {
        entries.find(`${key}`, location)
        entries.remove(`${key}`, location)
      }
    }
    expect(met).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...Array.from({ length: 10 }, (_, index) => 490 + index)])
  })
})
