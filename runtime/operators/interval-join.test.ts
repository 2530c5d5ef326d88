import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { typeInfoOf } from '../record/type-info.ts'
import { openHarness } from './harness.ts'
import type { Emitted, HarnessSnapshot, OperatorHarness } from './harness.ts'
import { IntervalJoinOperator, intervalJoinState } from './interval-join.ts'
import type { IntervalJoinSettings } from './interval-join.ts'
import { TwoSubtasks, anyActions } from './test-two-inputs.ts'
import type { Sided } from './test-two-inputs.ts'

const list = typeInfoOf<unknown>('list')

function operator(more: Partial<IntervalJoinSettings>): IntervalJoinOperator {
  return new IntervalJoinOperator({
    lowerMs: -5,
    upperMs: 10,
    join(left, right, { key, leftTimestamp, rightTimestamp, emit }) {
      emit([key, (left as Sided).n, leftTimestamp, (right as Sided).n, rightTimestamp])
    },
    states: { left: intervalJoinState('left', list), right: intervalJoinState('right', list) },
    lateTags: { left: 'late left', right: 'late right' },
    ...more,
  })
}

interface Opened {
  readonly harness: OperatorHarness
  readonly left: (n: number, time: number) => void
  readonly right: (n: number, time: number) => void
}

async function open(
  more: Partial<IntervalJoinSettings> = {},
  restored: readonly HarnessSnapshot[] = [],
): Promise<Opened> {
  const keySelector = ({ key }: Sided): string => key
  const options = { operator: operator(more), keySelector, secondKeySelector: keySelector, restored }
  const harness = await openHarness(options)
  return {
    harness,
    left: (n, time) => harness.process({ side: 'left', key: 'k', n, time }, time),
    right: (n, time) => harness.processSecond({ side: 'right', key: 'k', n, time }, time),
  }
}

const pairsOf = (harness: OperatorHarness): unknown[] =>
  harness.takeOutput().map(({ value }) => [(value as unknown[])[1], (value as unknown[])[3]])

/** Keys that still have something in state or a timer. */
const groupsLeft = async (harness: OperatorHarness): Promise<number> =>
  (await harness.snapshot()).keyed!.groups.filter(({ handle }) => handle !== undefined).length

describe('an interval join', () => {
  it('joins what is within both bounds, whichever comes first, with the larger timestamp', async () => {
    const { harness, left, right } = await open()
    left(1, 100)
    for (const [n, time] of [94, 95, 110, 111].entries()) right(n, time)
    left(2, 105)
    expect(harness.takeOutput()).toEqual([
      { value: ['k', 1, 100, 1, 95], timestamp: 100 },
      { value: ['k', 1, 100, 2, 110], timestamp: 110 },
      { value: ['k', 2, 105, 2, 110], timestamp: 110 },
      { value: ['k', 2, 105, 3, 111], timestamp: 111 },
    ])
  })

  it('keeps records of one time apart', async () => {
    const { harness, left, right } = await open()
    left(1, 100)
    left(2, 100)
    right(3, 100)
    right(4, 100)
    expect(pairsOf(harness)).toEqual([
      [1, 3],
      [2, 3],
      [1, 4],
      [2, 4],
    ])
  })

  it('drops a record once nothing can come that it could be joined with, and keeps it until then', async () => {
    const { harness, left, right } = await open()
    left(1, 100)
    harness.watermark(109)
    right(2, 110)
    expect(pairsOf(harness)).toEqual([[1, 2]])
    harness.watermark(110)
    expect(await groupsLeft(harness)).toBe(1)
    harness.watermark(115)
    expect(await groupsLeft(harness)).toBe(0)
  })

  it('keeps nothing of a record whose partners are all here or late, and all of one that still may have one', async () => {
    const { harness, left, right } = await open({ lowerMs: -50, upperMs: -20 })
    right(1, 75)
    harness.watermark(80)
    left(2, 100)
    expect(pairsOf(harness)).toEqual([[2, 1]])
    left(3, 101)
    right(4, 81)
    expect(pairsOf(harness)).toEqual([
      [3, 1],
      [3, 4],
    ])
    harness.watermark(131)
    expect(await groupsLeft(harness)).toBe(0)
  })

  it('counts late records and gives them to the side output of their side', async () => {
    const { harness, left, right } = await open()
    left(1, 101)
    harness.watermark(100)
    left(2, 100)
    right(3, 100)
    right(4, 101)
    expect(pairsOf(harness)).toEqual([[1, 4]])
    expect(harness.metrics.values.get('late_records_total')).toBe(2)
    expect(harness.sideOutput('late left')).toMatchObject([{ value: { n: 2 }, timestamp: 100 }])
    expect(harness.sideOutput('late right')).toMatchObject([{ value: { n: 3 }, timestamp: 100 }])
  })

  it('refuses records without event time, promises, and names the join function that threw', async () => {
    const without = await open()
    expect(() => without.harness.process({ key: 'k' })).toThrow(expect.objectContaining({ code: 'MR-J80' }))
    const promising = await open({ join: () => Promise.resolve() as unknown as void })
    promising.left(1, 1)
    expect(() => promising.right(1, 1)).toThrow(/MR-J51.*the join function of/s)
    const throwing = await open({
      join: () => {
        throw new RangeError('no')
      },
    })
    throwing.left(1, 1)
    expect(() => throwing.right(1, 1)).toThrow(/MR-J50.*the join function of operator 'tested'.*RangeError: no/s)
  })

  it.each([
    { before: 10, after: 40, pairs: [[1, 3]] },
    { before: 40, after: 10, pairs: [] },
  ])('goes on with other bounds after a restore: from $before to $after', async ({ before, after, pairs }) => {
    const first = await open({ upperMs: before })
    first.left(1, 100)
    const second = await open({ upperMs: after }, [await first.harness.snapshot()])
    second.harness.watermark(120)
    second.right(3, 130)
    expect(pairsOf(second.harness)).toEqual(pairs)
    second.harness.watermark(200)
    expect(await groupsLeft(second.harness)).toBe(0)
  })
})

describe('an interval join and a loop over everything', () => {
  const bound = fc.integer({ min: -20, max: 20 })

  it('give the same pairs, in any order of records, watermarks and rescales, and leave nothing behind', async () => {
    await fc.assert(
      fc.asyncProperty(bound, bound, anyActions, async (one, other, actions) => {
        const bounds = { lowerMs: Math.min(one, other), upperMs: Math.max(one, other) }
        const taken: Sided[] = []
        const late: number[] = []
        const subtasks = new TwoSubtasks(() => operator(bounds), {
          record: (record, watermark) => void (record.time > watermark ? taken.push(record) : late.push(record.n)),
        })
        await subtasks.run(actions)
        expect(sorted(subtasks.emitted)).toEqual(sorted(pairsWithin(taken, bounds)))
        const lateOf = (tag: string): number[] => subtasks.sideOutput(tag).map(({ value }) => (value as Sided).n)
        expect([...lateOf('late left'), ...lateOf('late right')].toSorted(byNumber)).toEqual(late)
        expect(await subtasks.entryCount()).toBe(0)
      }),
      { numRuns: 100 },
    )
  })
})

function pairsWithin(
  records: readonly Sided[],
  { lowerMs, upperMs }: { readonly lowerMs: number; readonly upperMs: number },
): Emitted[] {
  const pairs: Emitted[] = []
  for (const left of records) {
    for (const right of records) {
      if (left.side !== 'left' || right.side !== 'right' || left.key !== right.key) continue
      const apart = right.time - left.time
      if (apart < lowerMs || apart > upperMs) continue
      const value = [left.key, left.n, left.time, right.n, right.time]
      pairs.push({ value, timestamp: Math.max(left.time, right.time) })
    }
  }
  return pairs
}

const sorted = (emitted: readonly Emitted[]): string[] => emitted.map((one) => JSON.stringify(one)).toSorted()
const byNumber = (left: number, right: number): number => left - right
