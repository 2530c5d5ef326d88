import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { OperatorStateSnapshot, Redistribution } from './contract.ts'
import { shareOfLists } from './operator-state-share.ts'
import { codec, handleIn } from './test-snapshots.ts'

/** undefined: the subtask wrote no list. */
function listsOf(redistribution: Redistribution, counts: readonly (number | undefined)[]) {
  return counts.map((count, index): OperatorStateSnapshot | undefined =>
    count === undefined ? undefined : { redistribution, codec, items: handleIn(`list-${index}`), count },
  )
}

/** By new subtask: the items it gets, as `<list>.<item>`. */
function dealt(redistribution: Redistribution, counts: readonly (number | undefined)[], parallelism: number) {
  return Array.from({ length: parallelism }, (_, subtask) =>
    shareOfLists(listsOf(redistribution, counts), { parallelism, subtask }).flatMap(({ items, from, to }) => {
      const list = items.kind === 'object' ? items.object.replace('list-', '') : ''
      return Array.from({ length: to - from }, (__, index) => `${list}.${from + index}`)
    }),
  )
}

describe('split lists', () => {
  it.each<[string, (number | undefined)[], number, string[][]]>([
    ['stay where they are at the same parallelism, however uneven', [3, 0], 2, [['0.0', '0.1', '0.2'], []]],
    ['stay where they are though one subtask wrote none', [undefined, 2], 2, [[], ['1.0', '1.1']]],
    ['of one subtask are cut for two', [3], 2, [['0.0', '0.1'], ['0.2']]],
    ['of two are joined in their order for one', [1, 2], 1, [['0.0', '1.0', '1.1']]],
    ['of two are cut across their border for three', [4, 1], 3, [['0.0', '0.1'], ['0.2', '0.3'], ['1.0']]],
    [
      'of three go to two',
      [2, 2, 1],
      2,
      [
        ['0.0', '0.1', '1.0'],
        ['1.1', '2.0'],
      ],
    ],
    ['leave subtasks without items when there are too few', [1, 1], 4, [['0.0'], ['1.0'], [], []]],
    ['that are empty are no list at all at another parallelism', [0, 0], 3, [[], [], []]],
  ])('%s: %j for %i', (_, counts, parallelism, expected) => {
    expect(dealt('split', counts, parallelism)).toEqual(expected)
  })

  it('give every item to exactly one subtask, in order, and at another parallelism parts whose sizes differ by at most one', () => {
    const counts = fc.array(fc.option(fc.nat(40), { nil: undefined }), { minLength: 1, maxLength: 9 })
    fc.assert(
      fc.property(counts, fc.integer({ min: 1, max: 12 }), (written, parallelism) => {
        fc.pre(written.some((count) => count !== undefined))
        const parts = dealt('split', written, parallelism)
        expect(parts.flat()).toEqual(
          written.flatMap((count, list) => Array.from({ length: count ?? 0 }, (_, item) => `${list}.${item}`)),
        )
        if (written.length === parallelism) return
        const sizes = parts.map((part) => part.length)
        expect(Math.max(...sizes) - Math.min(...sizes)).toBeLessThanOrEqual(1)
      }),
    )
  })
})

it('union lists go whole to every subtask, in the order of the old ones', () => {
  for (const parallelism of [1, 2, 3])
    expect(dealt('union', [1, undefined, 2], parallelism)).toEqual(
      Array.from({ length: parallelism }, () => ['0.0', '2.0', '2.1']),
    )
})

it('of broadcast lists each subtask gets one: its own at the same parallelism, if it has one', () => {
  expect(dealt('broadcast', [1, 2], 2)).toEqual([['0.0'], ['1.0', '1.1']])
  expect(dealt('broadcast', [undefined, 1], 2)).toEqual([['1.0'], ['1.0']])
  expect(dealt('broadcast', [1, 1], 3)).toEqual([['0.0'], ['1.0'], ['0.0']])
})
