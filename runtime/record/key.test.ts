import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { subtaskIndex, keyGroup } from '../base/ids.ts'
import { createReader, createWriter } from './bytes.ts'
import type { Key } from './contract.ts'
import { keyGroupOf, keyGroupRange, keyHash, murmur3, subtaskOfKeyGroup } from './key-group.ts'
import { decodeKey, encodeKey, keyCodec, mapKeyOf } from './key.ts'

const anyText = fc.oneof(
  fc.string({ maxLength: 150 }),
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 40 }).map((codes) => String.fromCharCode(...codes)),
)
const anyKey = fc.letrec<{ key: Key }>((tie) => ({
  key: fc.oneof(
    { maxDepth: 3 },
    anyText,
    fc.double({ noNaN: true }),
    fc.integer(),
    fc.bigInt(),
    fc.boolean(),
    fc.array(tie('key'), { maxLength: 4 }),
  ),
})).key

function bytesOf(key: Key): Uint8Array {
  const writer = createWriter(1)
  encodeKey(key, writer)
  return writer.take()
}

/** Keys are equal as values: -0 is 0. */
function normal(key: Key): Key {
  return typeof key === 'object' ? key.map(normal) : key === 0 ? 0 : key
}

const goldenKeysByKind: readonly (readonly Key[])[] = [
  [0, 1, -1, 2, 7, 42, 127, 128, 255, 256, 1000, 65_536, 2 ** 31 - 1, -(2 ** 31), 2 ** 31, 2 ** 32, 2 ** 53 - 1],
  [-(2 ** 53) + 1, 0.5, -0.5, 0.1, 1e100, Number.MIN_VALUE, Infinity, -Infinity, 1_730_000_000_000],
  ['', 'a', 'b', 'ab', 'abc', 'abcd', 'abcde', 'JFK', 'LAX', 'user-17', 'sensor/4/temperature', 'x'.repeat(127)],
  ['x'.repeat(128), 'é', 'naïve', '€uro', '日本語', '😀', '\ud800', 'a\udc00b', '\u0000', '\u0000a0:', '1', 'true'],
  [0n, 1n, -1n, 255n, 256n, -256n, 2n ** 64n, -(2n ** 100n)],
  [true, false],
  [[], [1], ['a'], ['a', 1], [['a'], 1], ['a', [1]], [1n, true, 'x'], [[], []], [0.5, 'é']],
]
const goldenKeys = goldenKeysByKind.flat()

describe('keys', () => {
  it('are given back by decoding, -0 as 0', () => {
    fc.assert(
      fc.property(anyKey, (key) => {
        const reader = createReader(bytesOf(key))
        expect(decodeKey(reader)).toStrictEqual(normal(key))
        expect(reader.position).toBe(reader.end)
      }),
      { numRuns: 300 },
    )
  })

  it('have different bytes and different map keys when they differ, and no bytes begin another key', () => {
    fc.assert(
      fc.property(anyKey, anyKey, (left, right) => {
        const same = Buffer.compare(bytesOf(left), bytesOf(right)) === 0
        expect(mapKeyOf(left) === mapKeyOf(right)).toBe(same)
        if (!same)
          expect(Buffer.from(bytesOf(left)).subarray(0, bytesOf(right).length).equals(bytesOf(right))).toBe(false)
      }),
      { numRuns: 500 },
    )
    const distinct = new Set(goldenKeys.map((key) => Buffer.from(bytesOf(key)).toString('hex')))
    expect(distinct.size).toBe(goldenKeys.length)
    expect(new Set(goldenKeys.map(mapKeyOf)).size).toBe(goldenKeys.length)
  })

  it('have one form for -0 and 0', () => {
    expect(bytesOf(-0)).toEqual(bytesOf(0))
    expect(bytesOf([-0])).toEqual(bytesOf([0]))
    expect(mapKeyOf([-0])).toBe(mapKeyOf([0]))
    expect(Object.is(mapKeyOf(-0), 0)).toBe(true)
    expect(keyGroupOf(-0, 128)).toBe(keyGroupOf(0, 128))
  })

  it('cannot be NaN, null, undefined, an object, or an endless array', () => {
    const endless: unknown[] = []
    endless.push(endless)
    const sparse: unknown[] = []
    sparse.length = 1
    for (const wrong of [Number.NaN, [1, Number.NaN], null, undefined, {}, new Date(0), Symbol('x'), endless, sparse]) {
      expect(() => bytesOf(wrong as Key)).toThrow('MR-R03')
      expect(() => mapKeyOf(wrong as Key)).toThrow('MR-R03')
      expect(() => keyGroupOf(wrong as Key, 128)).toThrow('MR-R03')
    }
  })

  it('refuse damaged bytes', () => {
    const nan = [1, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f]
    const negativeZero = [1, 0, 0, 0, 0, 0, 0, 0, 0x80]
    const deep = Array.from({ length: 40 }, () => [8, 1]).flat()
    for (const bytes of [[], [0], [99], [4, 5, 97], [8, 255, 255, 255, 127], [1, 2], nan, negativeZero, deep]) {
      expect(() => decodeKey(createReader(Uint8Array.from(bytes)))).toThrow('MR-R01')
    }
  })

  it('are read by no codec but the key codec', () => {
    expect(keyCodec.readerOf({ ...keyCodec.description, version: 2 })).toHaveProperty('codec')
    expect(keyCodec.readerOf({ ...keyCodec.description, kind: 'schema' })).toHaveProperty('refused')
  })
})

describe('key groups', () => {
  it('use the murmur3 that everybody else uses', () => {
    const hash = (text: string, seed = 0): number => murmur3(Buffer.from(text), 0, text.length, seed) >>> 0
    expect(hash('')).toBe(0)
    expect(hash('', 1)).toBe(0x514e28b7)
    expect(hash('hello')).toBe(0x248bfa47)
    expect(hash('hello, world')).toBe(0x149bbb7f)
    expect(hash('aaaa', 0x9747b28c)).toBe(0x5a97808a)
    expect(hash('The quick brown fox jumps over the lazy dog')).toBe(0x2e4ff723)
  })

  it('follow from the key bytes, also on the fast paths', () => {
    fc.assert(
      fc.property(anyKey, fc.integer({ min: 1, max: 32_768 }), (key, maxParallelism) => {
        const bytes = bytesOf(key)
        expect(keyHash(key)).toBe(murmur3(bytes, 0, bytes.length))
        expect(keyGroupOf(key, maxParallelism)).toBe((murmur3(bytes, 0, bytes.length) >>> 0) % maxParallelism)
      }),
      { numRuns: 500 },
    )
  })

  it('R13: ranges partition all groups, sizes differ by at most one, and the owner of a group has it in its range', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.double({ min: 0, max: 1, noNaN: true }), (maximum, share) => {
        const parallelism = Math.max(1, Math.round(share * maximum))
        let next = 0
        const sizes = new Set<number>()
        for (let subtask = 0; subtask < parallelism; subtask++) {
          const { first, last } = keyGroupRange(parallelism, subtaskIndex(subtask), maximum)
          expect(first).toBe(next)
          sizes.add(last - first + 1)
          for (let group = first as number; group <= last; group++) {
            expect(subtaskOfKeyGroup(keyGroup(group), parallelism, maximum)).toBe(subtask)
          }
          next = last + 1
        }
        expect(next).toBe(maximum)
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
        expect(Math.min(...sizes)).toBeGreaterThanOrEqual(1)
      }),
      { numRuns: 150 },
    )
  })

  it('R13: rescaling puts every key into exactly one subtask', () => {
    fc.assert(
      fc.property(anyKey, fc.integer({ min: 1, max: 128 }), (key, parallelism) => {
        const group = keyGroupOf(key, 128)
        const owners = Array.from({ length: parallelism }, (_, subtask) =>
          keyGroupRange(parallelism, subtaskIndex(subtask), 128),
        ).filter(({ first, last }) => first <= group && group <= last)
        expect(owners).toHaveLength(1)
      }),
    )
  })

  it('refuse a parallelism above the maximum', () => {
    expect(() => keyGroupRange(129, subtaskIndex(0), 128)).toThrow('parallelism 129')
    expect(() => keyGroupRange(4, subtaskIndex(4), 128)).toThrow('subtask 4')
  })

  it('spread keys evenly', () => {
    const counts = Array.from({ length: 128 }, () => 0)
    for (let index = 0; index < 128_000; index++) counts[keyGroupOf(index, 128)]!++
    expect(Math.min(...counts)).toBeGreaterThan(850)
    expect(Math.max(...counts)).toBeLessThan(1150)
  })

  it('R13: are those of the golden file, and so are the bytes: stored keys stay where they are', async () => {
    const lines = goldenKeys.map((key) => {
      const hex = Buffer.from(bytesOf(key)).toString('hex')
      return `${hex} ${keyGroupOf(key, 128)} ${keyGroupOf(key, 32_768)}`
    })
    await expect(`${lines.join('\n')}\n`).toMatchFileSnapshot('testdata/key-groups.txt')
    const stored = readFileSync(new URL('testdata/key-groups.txt', import.meta.url), 'utf8')
      .trim()
      .split('\n')
    const decoded = stored.map((line) => decodeKey(createReader(Buffer.from(line.split(' ')[0]!, 'hex'))))
    expect(decoded).toStrictEqual(goldenKeys)
  })
})
