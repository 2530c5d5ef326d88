import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Key } from '../record/contract.ts'
import { MAX_WATERMARK } from '../record/element.ts'
import { keyGroupOf } from '../record/key-group.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { openHarness } from './harness.ts'
import type { Emitted, HarnessSnapshot, OperatorHarness } from './harness.ts'
import { lastWindowStart, slidingWindows, tumblingWindows } from './window-assigner.ts'
import type { SlidingWindows } from './window-assigner.ts'
import { aggregateContents, listContents, reduceContents } from './window-contents.ts'
import type { WindowContents } from './window-contents.ts'
import { WindowOperator } from './window-operator.ts'

interface Event {
  readonly key: string
  readonly n: number
}

const byKey = (event: Event): string => event.key

/** Emits [key, start, end, numbers]. */
const listing = listContents(typeInfoOf<unknown>('list'), (key, window, values) => [
  [key, window.startMs, window.endMs, values.map((value) => (value as Event).n)],
])

const summing = aggregateContents(
  {
    create: () => ({ sum: 0 }),
    add(accumulator, value) {
      const running = accumulator as { sum: number }
      running.sum += (value as Event).n
      return running
    },
    result: (accumulator) => (accumulator as { sum: number }).sum,
  },
  typeInfoOf<unknown>('sum'),
  (key, window, result) => [key, window.startMs, result],
)

interface Opening {
  readonly assigner?: SlidingWindows
  readonly contents?: WindowContents
  readonly allowedLatenessMs?: number
  readonly restored?: readonly HarnessSnapshot[]
  readonly keyGroups?: readonly [number, number]
}

function open(options: Opening = {}): Promise<OperatorHarness> {
  const { assigner = tumblingWindows({ sizeMs: 10 }), contents = listing, allowedLatenessMs = 0, ...rest } = options
  return openHarness({
    operator: new WindowOperator({ assigner, contents, allowedLatenessMs, lateTag: 'late' }),
    keySelector: byKey,
    ...rest,
  })
}

const valuesOf = (emitted: readonly Emitted[]): unknown[] => emitted.map(({ value }) => value)

describe('window assigners', () => {
  it('put a time at or after a window’s start and before its end, also before the epoch', () => {
    const days = tumblingWindows({ sizeMs: 10, offsetMs: 3 })
    expect([-8, -7, -6, 2, 3, 12, 13].map((time) => lastWindowStart(days, time))).toEqual([-17, -7, -7, -7, 3, 3, 13])
    expect(lastWindowStart(tumblingWindows({ sizeMs: 10, offsetMs: -47 }), 0)).toBe(-7)
  })

  it('refuse sizes that are no durations', () => {
    for (const sizeMs of [0, -1, 1.5, Number.NaN, 1e15])
      expect(() => tumblingWindows({ sizeMs })).toThrow(expect.objectContaining({ code: 'MR-J54' }))
    expect(() => slidingWindows({ sizeMs: 10, slideMs: 0 })).toThrow(expect.objectContaining({ code: 'MR-J54' }))
    expect(() => slidingWindows({ sizeMs: 10, slideMs: 5, offsetMs: 0.5 })).toThrow(
      expect.objectContaining({ code: 'MR-J54' }),
    )
  })
})

describe('the window operator', () => {
  it('fires a window once when the watermark reaches its last millisecond, with that as timestamp', async () => {
    const harness = await open()
    harness.process({ key: 'a', n: 1 }, 3)
    harness.process({ key: 'a', n: 2 }, 9)
    harness.process({ key: 'a', n: 3 }, 10)
    harness.watermark(8)
    expect(harness.takeOutput()).toEqual([])
    harness.watermark(9)
    expect(harness.takeOutput()).toEqual([{ value: ['a', 0, 10, [1, 2]], timestamp: 9 }])
    harness.watermark(MAX_WATERMARK)
    expect(harness.takeOutput()).toEqual([{ value: ['a', 10, 20, [3]], timestamp: 19 }])
  })

  it('gives a record older than the watermark to the late output and counts it', async () => {
    const harness = await open()
    harness.watermark(9)
    harness.process({ key: 'a', n: 1 }, 9)
    harness.process({ key: 'a', n: 2 }, 10)
    harness.watermark(19)
    expect(valuesOf(harness.takeOutput())).toEqual([['a', 10, 20, [2]]])
    expect(harness.sideOutput('late')).toEqual([{ value: { key: 'a', n: 1 }, timestamp: 9 }])
    expect(harness.metrics.values.get('late_records_total')).toBe(1)
  })

  it('takes a record below the watermark whose window has not fired yet', async () => {
    const harness = await open()
    harness.watermark(8)
    harness.process({ key: 'a', n: 1 }, 2)
    harness.watermark(9)
    expect(valuesOf(harness.takeOutput())).toEqual([['a', 0, 10, [1]]])
  })

  it('fires again for each record within the allowed lateness, and is cleared after it', async () => {
    const harness = await open({ allowedLatenessMs: 5 })
    harness.process({ key: 'a', n: 1 }, 1)
    harness.watermark(9)
    harness.process({ key: 'a', n: 2 }, 2)
    harness.process({ key: 'b', n: 3 }, 2)
    expect(valuesOf(harness.takeOutput())).toEqual([
      ['a', 0, 10, [1]],
      ['a', 0, 10, [1, 2]],
      ['b', 0, 10, [3]],
    ])
    harness.watermark(13)
    expect(harness.takeOutput()).toEqual([])
    harness.process({ key: 'a', n: 4 }, 3)
    expect(valuesOf(harness.takeOutput())).toEqual([['a', 0, 10, [1, 2, 4]]])
    harness.watermark(14)
    harness.process({ key: 'a', n: 5 }, 3)
    expect(harness.takeOutput()).toEqual([])
    expect(valuesOf(harness.sideOutput('late'))).toEqual([{ key: 'a', n: 5 }])
  })

  it.each([0, 5])('leaves no state and no timer behind at an allowed lateness of %d ms', async (allowedLatenessMs) => {
    const harness = await open({ allowedLatenessMs, assigner: slidingWindows({ sizeMs: 10, slideMs: 4 }) })
    harness.process({ key: 'a', n: 1 }, 1)
    harness.watermark(12)
    harness.process({ key: 'a', n: 2 }, 9)
    harness.watermark(1_000)
    const snapshot = await harness.snapshot()
    expect(snapshot.keyed?.groups.every((group) => group.handle === undefined)).toBe(true)
  })

  it('reduces and aggregates', async () => {
    const sums = await open({ contents: summing })
    const reduced = await open({
      contents: reduceContents(
        (left, right) => ({ key: (left as Event).key, n: (left as Event).n + (right as Event).n }),
        typeInfoOf<unknown>('event'),
        undefined,
      ),
    })
    for (const harness of [sums, reduced]) {
      harness.process({ key: 'a', n: 1 }, 1)
      harness.process({ key: 'a', n: 2 }, 2)
      harness.watermark(9)
    }
    expect(valuesOf(sums.takeOutput())).toEqual([['a', 0, 3]])
    expect(valuesOf(reduced.takeOutput())).toEqual([{ key: 'a', n: 3 }])
  })

  it('refuses a record without event time', async () => {
    const harness = await open()
    expect(() => harness.process({ key: 'a', n: 1 })).toThrow(expect.objectContaining({ code: 'MR-J53' }))
  })

  it('fires a window whose end falls on the clean-up of another, though the allowed lateness was taken away at a restore', async () => {
    const before = await open({ allowedLatenessMs: 10 })
    before.process({ key: 'a', n: 1 }, 1)
    before.process({ key: 'a', n: 2 }, 11)
    before.watermark(10)
    expect(valuesOf(before.takeOutput())).toEqual([['a', 0, 10, [1]]])
    const after = await open({ restored: [await before.snapshot()] })
    after.watermark(1_000)
    expect(valuesOf(after.takeOutput())).toEqual([['a', 10, 20, [2]]])
  })

  it.each([
    [0, 10],
    [10, 0],
    [10, 15],
    [15, 10],
  ])('leaves nothing behind when an allowed lateness of %d ms becomes %d ms at a restore', async (first, second) => {
    const before = await open({ allowedLatenessMs: first })
    for (const time of [1, 8, 11, 21]) before.process({ key: 'a', n: time }, time)
    before.watermark(10)
    const after = await open({ allowedLatenessMs: second, restored: [await before.snapshot()] })
    after.watermark(1_000)
    expect(valuesOf(after.takeOutput())).toEqual([
      ['a', 10, 20, [11]],
      ['a', 20, 30, [21]],
    ])
    expect((await after.snapshot()).keyed?.groups.every((group) => group.handle === undefined)).toBe(true)
  })

  it('is refused for windows of another size: what they hold would never fire', async () => {
    const before = await open({ assigner: tumblingWindows({ sizeMs: 10 }) })
    before.process({ key: 'a', n: 1 }, 1)
    const restored = [await before.snapshot()]
    await expect(open({ assigner: tumblingWindows({ sizeMs: 20 }), restored })).rejects.toThrow(/MR-T02.*10 ms.*20 ms/s)
    const slid = await open({ assigner: slidingWindows({ sizeMs: 10, slideMs: 5 }), restored })
    slid.watermark(1_000)
    expect(valuesOf(slid.takeOutput())).toEqual([['a', 0, 10, [1]]])
  })

  it('keeps late what was late before a restore, though the restored watermark is that of the slowest block', async () => {
    const lower = await open({ keyGroups: [0, 63] })
    const upper = await open({ keyGroups: [64, 127] })
    const keys = Array.from({ length: 50 }, (_, index) => `key-${index}`)
    const inLower = keys.find((key) => keyGroupOf(key, 128) < 64)!
    const inUpper = keys.find((key) => keyGroupOf(key, 128) >= 64)!
    lower.watermark(15)
    upper.watermark(105)
    const restored = [await lower.snapshot(), await upper.snapshot()]

    const both = await open({ restored })
    expect(both.currentWatermark).toBe(15)
    both.process({ key: inLower, n: 1 }, 25)
    both.process({ key: inUpper, n: 2 }, 25)
    expect(valuesOf(both.sideOutput('late'))).toEqual([{ key: inUpper, n: 2 }])
    both.watermark(105)
    expect(valuesOf(both.takeOutput())).toEqual([[inLower, 20, 30, [1]]])
  })
})

describe('windows against a model in plain loops', () => {
  type Action =
    | { readonly kind: 'record'; readonly key: string; readonly time: number }
    | { readonly kind: 'watermark'; readonly by: number }
    | { readonly kind: 'restore' }

  const action: fc.Arbitrary<Action> = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        kind: fc.constant('record' as const),
        key: fc.constantFrom('a', 'b', 'c'),
        time: fc.integer({ min: -40, max: 40 }),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ kind: fc.constant('watermark' as const), by: fc.integer({ min: 1, max: 15 }) }),
    },
    { weight: 1, arbitrary: fc.constant({ kind: 'restore' as const }) },
  )
  const shape = fc.record({
    sizeMs: fc.integer({ min: 1, max: 12 }),
    slideMs: fc.integer({ min: 1, max: 15 }),
    offsetMs: fc.integer({ min: -20, max: 20 }),
    allowedLatenessMs: fc.constantFrom(0, 0, 3, 20),
  })

  it('emit the same in the same order for each key, with a restore anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(shape, fc.array(action, { maxLength: 40, size: 'max' }), async (windows, actions) => {
        const assigner = slidingWindows(windows)
        const { allowedLatenessMs } = windows
        const model = new Model(windows)
        let harness = await open({ assigner, allowedLatenessMs })
        let watermark = -60
        harness.watermark(watermark)
        const emitted: Emitted[] = []
        const late: Emitted[] = []
        for (const [n, step] of actions.entries()) {
          if (step.kind === 'record') {
            harness.process({ key: step.key, n }, step.time)
            model.record(step.key, n, step.time)
          } else if (step.kind === 'watermark') {
            watermark += step.by
            harness.watermark(watermark)
            model.advance(watermark)
          } else {
            emitted.push(...harness.takeOutput())
            late.push(...harness.sideOutput('late'))
            harness = await open({ assigner, allowedLatenessMs, restored: [await harness.snapshot()] })
          }
        }
        harness.watermark(MAX_WATERMARK)
        model.advance(MAX_WATERMARK)
        emitted.push(...harness.takeOutput())
        late.push(...harness.sideOutput('late'))
        for (const key of ['a', 'b', 'c']) {
          const ofKey = valuesOf(emitted).filter((value) => (value as Key[])[0] === key)
          expect(ofKey).toEqual(model.emitted.filter((value) => value[0] === key))
        }
        expect(valuesOf(late).map((value) => (value as Event).n)).toEqual(model.late)
      }),
      { numRuns: 80 },
    )
  })
})

interface WindowShape {
  readonly sizeMs: number
  readonly slideMs: number
  readonly offsetMs: number
  readonly allowedLatenessMs: number
}

/** What windows mean, in loops over everything. */
class Model {
  readonly emitted: [string, number, number, number[]][] = []
  readonly late: number[] = []
  readonly #shape: WindowShape
  #records: { readonly key: string; readonly n: number; readonly start: number }[] = []
  #watermark = -60

  constructor(shape: WindowShape) {
    this.#shape = shape
  }

  record(key: string, n: number, time: number): void {
    const { sizeMs, allowedLatenessMs } = this.#shape
    let taken = false
    for (const start of this.#starts().toReversed()) {
      if (time < start || time >= start + sizeMs || start + sizeMs - 1 + allowedLatenessMs <= this.#watermark) continue
      taken = true
      this.#records.push({ key, n, start })
      if (start + sizeMs - 1 <= this.#watermark) this.#emit(key, start)
    }
    if (!taken && time + allowedLatenessMs <= this.#watermark) this.late.push(n)
  }

  advance(watermark: number): void {
    const { sizeMs } = this.#shape
    for (const start of this.#starts()) {
      const last = start + sizeMs - 1
      if (last <= this.#watermark || last > watermark) continue
      for (const key of ['a', 'b', 'c']) this.#emit(key, start)
    }
    this.#watermark = watermark
  }

  /** Every window that any record of the test could be in. */
  #starts(): number[] {
    const starts: number[] = []
    for (let start = -300; start < 300; start++) {
      if (Number.isInteger((start - this.#shape.offsetMs) / this.#shape.slideMs)) starts.push(start)
    }
    return starts
  }

  #emit(key: string, start: number): void {
    const numbers = this.#records.filter((record) => record.key === key && record.start === start).map(({ n }) => n)
    if (numbers.length > 0) this.emitted.push([key, start, start + this.#shape.sizeMs, numbers])
  }
}
