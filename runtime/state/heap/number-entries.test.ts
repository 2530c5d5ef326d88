import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { keyHash } from '../../record/key-group.ts'
import { MOVED_AT_ONCE, NumberEntries } from './number-entries.ts'
import { EPOCH, Location, VALUE } from './slots.ts'

type Text = string

function find(entries: NumberEntries, key: number): Text | undefined {
  const location = new Location()
  entries.find(key, keyHash(key), location)
  return location.at < 0 ? undefined : (location.slots[location.at + VALUE] as Text)
}

function set(entries: NumberEntries, key: number, value: Text): void {
  const location = new Location()
  entries.find(key, keyHash(key), location)
  if (location.at < 0) entries.add(key, keyHash(key), value, 0, location)
  else location.slots[location.at + VALUE] = value
}

function remove(entries: NumberEntries, key: number): void {
  const location = new Location()
  entries.find(key, keyHash(key), location)
  if (location.at >= 0) entries.remove(location)
}

function keysOf(entries: NumberEntries): number[] {
  return Array.from(entries.walk(new Location()), ({ slots, at }) => slots[at] as number)
}

describe('the entries of number keys', () => {
  it('are found as in a Map, whatever comes, goes and moves to another table', () => {
    const step = fc.record({
      verb: fc.constantFrom('set', 'set', 'set', 'remove', 'remove many', 'reserve'),
      key: fc.oneof(fc.nat(60), fc.double({ noNaN: true })),
    })
    fc.assert(
      fc.property(fc.array(step, { maxLength: 400 }), (steps) => {
        const entries = new NumberEntries()
        const model = new Map<number, Text>()
        for (const [index, { verb, key: drawn }] of steps.entries()) {
          const key = drawn === 0 ? 0 : drawn
          if (verb === 'set') {
            set(entries, key, `${index}`)
            model.set(key, `${index}`)
          } else if (verb === 'reserve') {
            entries.reserve(index)
          } else {
            const gone = verb === 'remove' ? [key] : [...model.keys()].slice(0, 40)
            for (const one of gone) {
              remove(entries, one)
              model.delete(one)
            }
          }
          expect(entries.size).toBe(model.size)
        }
        for (const key of [...model.keys(), 1, 2, 3, 0.5]) expect(find(entries, key)).toBe(model.get(key))
        expect(new Set(keysOf(entries))).toEqual(new Set(model.keys()))
      }),
    )
  })

  it('are found by key where hashes are equal', () => {
    const entries = new NumberEntries()
    const location = new Location()
    for (const key of [1, 2, 3]) {
      entries.find(key, 7, location)
      expect(location.at).toBe(-1)
      entries.add(key, 7, `value ${key}`, key, location)
    }
    entries.find(2, 7, location)
    entries.remove(location)
    for (const key of [1, 3]) {
      entries.find(key, 7, location)
      const { slots, at } = location
      expect([slots[at], slots[at + VALUE], slots[at + EPOCH]]).toEqual([key, `value ${key}`, key])
    }
    entries.find(2, 7, location)
    expect(location.at).toBe(-1)
  })

  it('that stay are met by a walk, whatever comes and goes meanwhile', () => {
    const numbers = fc.uniqueArray(fc.nat(400), { maxLength: 120 })
    fc.assert(
      fc.property(numbers, numbers, numbers, (first, added, removed) => {
        const entries = new NumberEntries()
        for (const key of first) set(entries, key, 'first')
        const met: number[] = []
        const meet = ({ slots, at }: Location): void => {
          expect(slots[at + VALUE]).toBe(find(entries, slots[at] as number))
          met.push(slots[at] as number)
        }
        const walk = entries.walk(new Location())
        for (let index = 0; index < 2; index++) {
          const begun = walk.next()
          if (begun.done !== true) meet(begun.value)
        }
        for (const key of added) if (!first.includes(key)) set(entries, key, 'added')
        for (const key of removed) remove(entries, key)
        for (const location of walk) meet(location)
        expect(met).toEqual(expect.arrayContaining(first.filter((key) => !removed.includes(key))))
        expect(met.slice(2).filter((key) => removed.includes(key))).toEqual([])
      }),
    )
  })

  it('move to a larger or smaller table a few at a time, and all of them', () => {
    const entries = new NumberEntries()
    const location = new Location()
    /** How many an operation brings into another array than they were in, besides the entry that it adds. */
    let before = new Map<unknown, unknown>()
    let movedMax = 0
    let moves = 0
    const look = (): void => {
      const now = new Map<unknown, unknown>()
      let moved = 0
      for (const { slots, at } of entries.walk(location)) {
        now.set(slots[at], slots)
        if (before.has(slots[at]) && before.get(slots[at]) !== slots) moved++
      }
      before = now
      movedMax = Math.max(movedMax, moved)
      moves += moved
    }
    // The table of 1024 places was full with 682.
    const count = 690
    for (let key = 0; key < count; key++) {
      entries.add(key, keyHash(key), 'value', 0, location)
      look()
    }
    expect([movedMax > 0, movedMax <= MOVED_AT_ONCE]).toEqual([true, true])
    const movedByGrowth = moves
    const arrays = (): number => new Set(Array.from(entries.walk(location), ({ slots }) => slots)).size
    expect(arrays()).toBe(2)
    // Without another entry to come: looks bring the rest over, and the table before is forgotten.
    for (let key = 0; key < count; key++) entries.find(key, keyHash(key), location)
    expect(arrays()).toBe(1)
    look()
    movedMax = 0
    for (let key = 0; key < count; key++) {
      entries.find(key, keyHash(key), location)
      const found = { slots: location.slots, at: location.at }
      look()
      entries.remove(found)
      look()
      expect(find(entries, key)).toBeUndefined()
      look()
    }
    expect(movedMax).toBeLessThanOrEqual(MOVED_AT_ONCE)
    expect(moves).toBeGreaterThan(movedByGrowth)
  })
})
