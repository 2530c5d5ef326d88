import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_WATERMARK } from '../record/element.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { coGroupWork } from './co-group.ts'
import type { CoGroupSettings } from './co-group.ts'
import { coGroupResults, joinResults } from './co-group-contents.ts'
import { openHarness } from './harness.ts'
import type { HarnessSnapshot, OperatorHarness } from './harness.ts'
import { outputTag } from './output-tag.ts'
import { TwoSubtasks, anyActions } from './test-two-inputs.ts'
import type { Model, Sided } from './test-two-inputs.ts'
import { countTrigger } from './triggers.ts'
import { globalWindow, sessionWindows, slidingWindows, tumblingWindows } from './window-assigner.ts'

const numbers = (records: readonly unknown[]): number[] => records.map((record) => (record as Sided).n)

/** Gives [key, start, left numbers, right numbers]. */
const listing = coGroupResults((lefts, rights, { key, window }) => [
  [key, window.startMs, numbers(lefts), numbers(rights)],
])

/** Gives [left number, right number]. */
const pairing = joinResults((left, right) => [(left as Sided).n, (right as Sided).n])

function settings(more: Partial<CoGroupSettings> = {}): CoGroupSettings {
  return {
    type: typeInfoOf<unknown>('sides'),
    results: listing,
    assigner: tumblingWindows({ sizeMs: 10 }),
    trigger: undefined,
    allowedLatenessMs: undefined,
    lateTags: { left: undefined, right: undefined },
    ...more,
  }
}

interface Opened {
  readonly harness: OperatorHarness
  readonly left: (n: number, time?: number) => void
  readonly right: (n: number, time?: number) => void
}

async function open(more: Partial<CoGroupSettings> = {}, restored: readonly HarnessSnapshot[] = []): Promise<Opened> {
  const keySelector = ({ key }: Sided): string => key
  const operator = coGroupWork(settings(more)).create()
  const harness = await openHarness({ operator, keySelector, secondKeySelector: keySelector, restored })
  return {
    harness,
    left: (n, time) => harness.process({ side: 'left', key: 'k', n, time }, time),
    right: (n, time) => harness.processSecond({ side: 'right', key: 'k', n, time }, time),
  }
}

const valuesOf = (harness: OperatorHarness): unknown[] => harness.takeOutput().map(({ value }) => value)

describe('a coGroup', () => {
  it('gives both sides of each window, also when one has none, with the time of its end', async () => {
    const { harness, left, right } = await open()
    left(1, 0)
    right(2, 9)
    left(3, 4)
    right(4, 10)
    harness.watermark(MAX_WATERMARK)
    expect(harness.takeOutput()).toEqual([
      { value: ['k', 0, [1, 3], [2]], timestamp: 9 },
      { value: ['k', 10, [], [4]], timestamp: 19 },
    ])
  })

  it('emits to side outputs, and gives lists that a late record does not change afterwards', async () => {
    const seen: (readonly unknown[])[] = []
    const tag = outputTag<number>('sizes')
    const { harness, left } = await open({
      allowedLatenessMs: 100,
      results: coGroupResults((lefts, rights, context) => {
        seen.push(lefts)
        context.emitTo(tag, lefts.length + rights.length)
        return []
      }),
    })
    left(1, 0)
    harness.watermark(20)
    left(2, 1)
    expect(seen.map(numbers)).toEqual([[1], [1, 2]])
    expect(harness.sideOutput('sizes')).toEqual([
      { value: 1, timestamp: 9 },
      { value: 2, timestamp: 9 },
    ])
  })

  it('refuses what is no iterable', async () => {
    const { harness, left } = await open({ results: () => 7 as unknown as Iterable<unknown> })
    left(1, 0)
    expect(() => harness.watermark(20)).toThrow(/MR-J55/)
  })
})

describe('a window join', () => {
  it('gives each pair of a window once, and nothing where a side has none', async () => {
    const { harness, left, right } = await open({ results: pairing })
    left(1, 0)
    left(2, 1)
    right(3, 2)
    right(4, 3)
    left(5, 12)
    right(6, 25)
    harness.watermark(MAX_WATERMARK)
    expect(valuesOf(harness)).toEqual([
      [1, 3],
      [1, 4],
      [2, 3],
      [2, 4],
    ])
  })

  it('fires again as a whole for a record within the allowed lateness', async () => {
    const { harness, left, right } = await open({ results: pairing, allowedLatenessMs: 10 })
    left(1, 0)
    right(2, 0)
    harness.watermark(15)
    left(3, 1)
    expect(valuesOf(harness)).toEqual([
      [1, 2],
      [1, 2],
      [3, 2],
    ])
  })

  it('gives late records to the side output of their side; without one they are only counted', async () => {
    const { harness, left, right } = await open({ lateTags: { left: undefined, right: 'late right' } })
    harness.watermark(20)
    left(1, 0)
    right(2, 1)
    expect(harness.metrics.values.get('late_records_total')).toBe(2)
    expect(harness.sideOutput('late right')).toMatchObject([{ value: { n: 2 }, timestamp: 1 }])
    expect(harness.sideOutput('late left')).toEqual([])
  })

  it('has sessions that records of either side prolong and join', async () => {
    const { harness, left, right } = await open({ assigner: sessionWindows({ gapMs: 10 }) })
    left(1, 0)
    right(2, 14)
    right(3, 40)
    left(4, 7)
    harness.watermark(MAX_WATERMARK)
    expect(harness.takeOutput()).toEqual([
      { value: ['k', 0, [1, 4], [2]], timestamp: 23 },
      { value: ['k', 40, [], [3]], timestamp: 49 },
    ])
  })

  it('has windows of processing time, whose results have no event time', async () => {
    const { harness, left, right } = await open({
      results: pairing,
      assigner: tumblingWindows({ sizeMs: 1_000, time: 'processing' }),
    })
    left(1)
    right(2)
    await harness.advance(1_000)
    right(3)
    await harness.advance(1_000)
    expect(harness.takeOutput()).toEqual([{ value: [1, 2], timestamp: undefined }])
  })

  it('has a global window with a trigger, and is refused what does not go together', async () => {
    const { harness, left, right } = await open({
      results: pairing,
      assigner: globalWindow(),
      trigger: countTrigger(2),
    })
    left(1, 0)
    right(2, 5)
    expect(valuesOf(harness)).toEqual([[1, 2]])
    expect(() => coGroupWork(settings({ assigner: globalWindow() }))).toThrow(/MR-J57/)
    const lateTags = { left: undefined, right: 'late payments' }
    const processing = tumblingWindows({ sizeMs: 1, time: 'processing' })
    expect(() => coGroupWork(settings({ assigner: processing, lateTags }))).toThrow(/MR-J58.*'late payments'/s)
  })

  it('refuses stored windows of another size', async () => {
    const { harness, left } = await open()
    left(1, 0)
    const other = open({ assigner: tumblingWindows({ sizeMs: 20 }) }, [await harness.snapshot()])
    await expect(other).rejects.toThrow(/MR-T02.*10 ms.*20 ms/s)
  })
})

describe('a coGroup and a loop over everything', () => {
  const shape = fc.record({
    sizeMs: fc.integer({ min: 1, max: 20 }),
    slideMs: fc.integer({ min: 1, max: 20 }),
    allowedLatenessMs: fc.constantFrom(0, 0, 5, 30),
  })

  it('fire the same windows with the same records, in any order of records, watermarks and rescales', async () => {
    await fc.assert(
      fc.asyncProperty(shape, anyActions, async (windows, actions) => {
        const model = new WindowModel(windows)
        const lateTags = { left: 'late left', right: 'late right' }
        const { allowedLatenessMs } = windows
        const work = coGroupWork(settings({ assigner: slidingWindows(windows), allowedLatenessMs, lateTags }))
        const subtasks = new TwoSubtasks(work.create, model)
        await subtasks.run(actions)
        expect(sorted(subtasks.emitted.map(({ value }) => value))).toEqual(sorted(model.fired))
        const late = [...subtasks.sideOutput('late left'), ...subtasks.sideOutput('late right')]
        expect(sorted(late.map(({ value }) => (value as Sided).n))).toEqual(sorted(model.late))
        expect(await subtasks.entryCount()).toBe(0)
      }),
      { numRuns: 100 },
    )
  })
})

const sorted = (values: readonly unknown[]): string[] => values.map((value) => JSON.stringify(value)).toSorted()

interface WindowShape {
  readonly sizeMs: number
  readonly slideMs: number
  readonly allowedLatenessMs: number
}

class WindowModel implements Model {
  readonly fired: unknown[] = []
  readonly late: number[] = []
  readonly #shape: WindowShape
  readonly #taken: { readonly record: Sided; readonly start: number }[] = []

  constructor(shape: WindowShape) {
    this.#shape = shape
  }

  record(record: Sided, watermark: number): void {
    const { sizeMs, allowedLatenessMs } = this.#shape
    const open = this.#starts()
      .filter((start) => record.time >= start && record.time < start + sizeMs)
      .filter((start) => start + sizeMs - 1 + allowedLatenessMs > watermark)
    for (const start of open) {
      this.#taken.push({ record, start })
      if (start + sizeMs - 1 <= watermark) this.#fire(record.key, start)
    }
    if (open.length === 0 && record.time + allowedLatenessMs <= watermark) this.late.push(record.n)
  }

  advance(key: string, from: number, to: number): void {
    for (const start of this.#starts()) {
      const last = start + this.#shape.sizeMs - 1
      if (last > from && last <= to) this.#fire(key, start)
    }
  }

  #starts(): number[] {
    const { slideMs } = this.#shape
    const starts: number[] = []
    for (let start = -100 - (-100 % slideMs); start < 100; start += slideMs) starts.push(start)
    return starts
  }

  #fire(key: string, start: number): void {
    const own = this.#taken.filter((taken) => taken.record.key === key && taken.start === start)
    if (own.length === 0) return
    const of = (side: Sided['side']): number[] =>
      own.filter(({ record }) => record.side === side).map(({ record }) => record.n)
    this.fired.push([key, start, of('left'), of('right')])
  }
}
