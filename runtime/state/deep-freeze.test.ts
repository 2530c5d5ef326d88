import { describe, expect, it } from 'vitest'
import { deepFreeze } from './deep-freeze.ts'

describe('deepFreeze', () => {
  it('freezes objects and arrays to the bottom, members of Maps and Sets too, and gives back the same value', () => {
    const value = { list: [{ deep: [1] }], map: new Map([['a', { b: 1 }]]), set: new Set([[1]]) }
    expect(deepFreeze(value)).toBe(value)
    expect(() => value.list.push({ deep: [] })).toThrow(TypeError)
    expect(() => value.list[0]!.deep.push(2)).toThrow(TypeError)
    expect(() => (value.map.get('a')!.b = 2)).toThrow(TypeError)
    expect(Object.isFrozen([...value.set][0])).toBe(true)
  })

  it('leaves primitives and typed arrays alone, and ends on an object that contains itself', () => {
    expect(deepFreeze(4)).toBe(4)
    expect(deepFreeze(null)).toBe(null)
    const bytes = Uint8Array.of(1)
    deepFreeze({ bytes })
    bytes[0] = 2
    expect(bytes[0]).toBe(2)
    const loop: { self?: unknown } = {}
    loop.self = loop
    expect(Object.isFrozen(deepFreeze(loop))).toBe(true)
  })
})
