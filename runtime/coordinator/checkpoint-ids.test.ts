import { describe, expect, it } from 'vitest'
import { ReservedIds } from './checkpoint-ids.ts'

describe('reserved checkpoint ids', () => {
  it('rise through the blocks and stop where nothing more is reserved (rule 6)', () => {
    const ids = new ReservedIds()
    ids.add({ from: 1001, to: 1002 })
    ids.add({ from: 4001, to: 4001 })
    expect([ids.next(), ids.next(), ids.next()]).toEqual([1001, 1002, 4001])
    expect(() => ids.next()).toThrow(/MR-O15/)
  })

  it('ask for the next block long before the last one is used up', () => {
    const ids = new ReservedIds()
    expect(ids.needsBlock).toBe(true)
    ids.add({ from: 1, to: 501 })
    expect(ids.needsBlock).toBe(false)
    ids.next()
    ids.next()
    expect(ids.needsBlock).toBe(true)
  })
})
