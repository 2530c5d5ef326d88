import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { MAX_WATERMARK } from '../record/element.ts'
import { ManualClock, manualEnvironment } from '../testkit/manual-clock.ts'
import { listing, ofKey, valuesOf, WindowSubtasks } from './test-windows.ts'
import type { Event } from './test-windows.ts'
import type { AnyTrigger, Trigger } from './trigger.ts'
import { continuousTrigger, countTrigger, eventTimeTrigger, processingTimeTrigger, purging } from './triggers.ts'
import { allTime, globalWindow, sessionWindows, slidingWindows, tumblingWindows } from './window-assigner.ts'
import type { WindowAssigner } from './window-assigner.ts'
import { windowWork } from './window-work.ts'

const keys = ['a', 'b', 'c', 'f']

const ofAllTime = (key: string, numbers: number[]): unknown => [key, allTime.startMs, allTime.endMs, numbers]

const numbersOf = (values: readonly unknown[]): unknown[] => values.map((value) => (value as unknown[])[3])

describe('a global window', () => {
  it('fires with every third record, and keeps what it holds unless the trigger purges', async () => {
    for (const [trigger, second] of [
      [countTrigger(3), [0, 1, 2, 3, 4, 5]],
      [purging(countTrigger(3)), [3, 4, 5]],
    ] as const) {
      const windows = await WindowSubtasks.open({ assigner: globalWindow(), trigger })
      for (let n = 0; n < 8; n++) {
        windows.process({ key: 'a', n }, n * 100)
        windows.process({ key: 'b', n }, n * 100)
      }
      const emitted = windows.takeOutput().filter(({ value }) => (value as unknown[])[0] === 'a')
      expect(emitted).toEqual([
        { value: ofAllTime('a', [0, 1, 2]), timestamp: 200 },
        { value: ofAllTime('a', [...second]), timestamp: 500 },
      ])
    }
  })

  it('takes records without event time, and gives such results', async () => {
    const windows = await WindowSubtasks.open({ assigner: globalWindow(), trigger: countTrigger(1) })
    windows.process({ key: 'a', n: 1 })
    expect(windows.takeOutput()).toEqual([{ value: ofAllTime('a', [1]), timestamp: undefined }])
  })

  it('ends with its input under the event-time trigger', async () => {
    const windows = await WindowSubtasks.open({ assigner: globalWindow(), trigger: eventTimeTrigger() })
    windows.process({ key: 'a', n: 1 }, 5)
    windows.watermark(1_000_000)
    windows.process({ key: 'a', n: 2 }, 6)
    expect(windows.takeOutput()).toEqual([])
    windows.watermark(MAX_WATERMARK)
    expect(windows.takeOutput()).toEqual([{ value: ofAllTime('a', [1, 2]), timestamp: undefined }])
  })

  it('deals each key’s records out in lots of n, restored anywhere at any parallelism', async () => {
    const step = fc.oneof(
      { weight: 10, arbitrary: fc.constantFrom(...keys) },
      { weight: 1, arbitrary: fc.integer({ min: 1, max: 3 }) },
    )
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(step, { maxLength: 40, size: 'max' }),
        async (count, steps) => {
          const windows = await WindowSubtasks.open({ assigner: globalWindow(), trigger: purging(countTrigger(count)) })
          for (const [n, stepped] of steps.entries()) {
            if (typeof stepped === 'number') await windows.restore(stepped)
            else windows.process({ key: stepped, n }, n)
          }
          const emitted = valuesOf(windows.takeOutput())
          for (const key of keys) {
            const numbers = steps.flatMap((stepped, n) => (stepped === key ? [n] : []))
            const lots: number[][] = []
            for (let start = 0; start + count <= numbers.length; start += count)
              lots.push(numbers.slice(start, start + count))
            expect(numbersOf(ofKey(emitted, key))).toEqual(lots)
          }
        },
      ),
      { numRuns: 60 },
    )
  })
})

describe('the event-time trigger', () => {
  it('does what tumbling and sliding windows do without a trigger, in any order of records, watermarks and restores', async () => {
    const action = fc.oneof(
      {
        weight: 8,
        arbitrary: fc.record({ key: fc.constantFrom(...keys), time: fc.integer({ min: -40, max: 40 }) }),
      },
      { weight: 3, arbitrary: fc.record({ by: fc.integer({ min: 1, max: 15 }), subtask: fc.nat({ max: 2 }) }) },
      { weight: 1, arbitrary: fc.record({ count: fc.integer({ min: 1, max: 3 }) }) },
    )
    const shape = fc.record({
      sizeMs: fc.integer({ min: 1, max: 12 }),
      slideMs: fc.integer({ min: 1, max: 15 }),
      offsetMs: fc.integer({ min: -20, max: 20 }),
      allowedLatenessMs: fc.constantFrom(0, 0, 3, 20),
    })
    await fc.assert(
      fc.asyncProperty(shape, fc.array(action, { maxLength: 40, size: 'max' }), async (sizes, actions) => {
        const setup = {
          assigner: slidingWindows(sizes),
          allowedLatenessMs: sizes.allowedLatenessMs,
          lateTag: 'late',
        }
        const plain = await WindowSubtasks.open(setup)
        const triggered = await WindowSubtasks.open({ ...setup, trigger: eventTimeTrigger() })
        for (const windows of [plain, triggered]) {
          windows.watermark(-60)
          for (const [n, step] of actions.entries()) {
            if ('key' in step) windows.process({ key: step.key, n }, step.time)
            else if ('count' in step) await windows.restore(step.count)
            else {
              const subtask = step.subtask % windows.count
              windows.watermark(windows.watermarkOf(subtask) + step.by, subtask)
            }
          }
          windows.watermark(MAX_WATERMARK)
        }
        const [expected, actual] = [plain.takeOutput(), triggered.takeOutput()]
        for (const key of keys) {
          const one = (emitted: typeof expected): typeof expected =>
            emitted.filter(({ value }) => (value as unknown[])[0] === key)
          expect(one(actual)).toEqual(one(expected))
        }
        expect(triggered.late).toEqual(plain.late)
        expect(await triggered.isEmpty()).toBe(true)
      }),
      { numRuns: 60 },
    )
  })
})

describe('the count trigger', () => {
  it('counts per window, and leaves at the end of a window what has not fired', async () => {
    const windows = await WindowSubtasks.open({ assigner: tumblingWindows({ sizeMs: 10 }), trigger: countTrigger(2) })
    for (const [n, time] of [1, 11, 2, 3, 12].entries()) windows.process({ key: 'a', n }, time)
    windows.watermark(1_000)
    expect(windows.takeOutput()).toEqual([
      { value: ['a', 0, 10, [0, 2]], timestamp: 9 },
      { value: ['a', 10, 20, [1, 4]], timestamp: 19 },
    ])
    expect(await windows.isEmpty()).toBe(true)
  })

  it('adds up what it counted in sessions that become one', async () => {
    const windows = await WindowSubtasks.open({ assigner: sessionWindows({ gapMs: 10 }), trigger: countTrigger(4) })
    for (const [n, time] of [0, 1, 15, 8].entries()) windows.process({ key: 'a', n }, time)
    expect(valuesOf(windows.takeOutput())).toEqual([['a', 0, 25, [0, 1, 2, 3]]])
  })
})

describe('the continuous trigger', () => {
  it('fires at each multiple of event time before which a record came, and at the end', async () => {
    const windows = await WindowSubtasks.open({
      assigner: tumblingWindows({ sizeMs: 100 }),
      trigger: continuousTrigger({ everyMs: 10 }),
    })
    const fired: unknown[] = []
    for (const [n, time] of [3, 7, 41, 12, 95].entries()) {
      windows.process({ key: 'a', n }, time)
      if (n === 3) windows.watermark(45)
      fired.push(...numbersOf(valuesOf(windows.takeOutput())))
    }
    // 41 and 12 came before the timer of 10 had fired, so they were with it.
    expect(fired).toEqual([[0, 1, 2, 3]])
    windows.watermark(98)
    expect(windows.takeOutput()).toEqual([])
    windows.watermark(1_000)
    expect(windows.takeOutput()).toEqual([{ value: ['a', 0, 100, [0, 1, 2, 3, 4]], timestamp: 99 }])
    expect(await windows.isEmpty()).toBe(true)
  })

  it('gives early results of event-time windows by the wall clock, and none after the last', async () => {
    const windows = await WindowSubtasks.open({
      assigner: tumblingWindows({ sizeMs: 100 }),
      trigger: continuousTrigger({ everyMs: 1_000, time: 'processing' }),
      allowedLatenessMs: 50,
    })
    windows.process({ key: 'a', n: 1 }, 10)
    await windows.advance(999)
    expect(windows.takeOutput()).toEqual([])
    await windows.advance(1)
    expect(windows.takeOutput()).toEqual([{ value: ['a', 0, 100, [1]], timestamp: 99 }])
    await windows.advance(5_000)
    expect(windows.takeOutput()).toEqual([])
    windows.process({ key: 'a', n: 2 }, 20)
    windows.watermark(99)
    expect(numbersOf(valuesOf(windows.takeOutput()))).toEqual([[1, 2]])
    await windows.advance(5_000)
    expect(windows.takeOutput()).toEqual([])
    windows.process({ key: 'a', n: 3 }, 30)
    expect(numbersOf(valuesOf(windows.takeOutput()))).toEqual([[1, 2, 3]])
    windows.watermark(1_000)
    expect(await windows.isEmpty()).toBe(true)
  })

  it('goes on with the interval of sessions that become one, and leaves no timer of theirs', async () => {
    const windows = await WindowSubtasks.open({
      assigner: sessionWindows({ gapMs: 50 }),
      trigger: continuousTrigger({ everyMs: 20 }),
    })
    for (const [n, time] of [65, 0, 41].entries()) windows.process({ key: 'a', n }, time)
    windows.watermark(20)
    expect(windows.takeOutput()).toEqual([{ value: ['a', 0, 115, [0, 1, 2]], timestamp: 114 }])
    windows.watermark(113)
    expect(windows.takeOutput()).toEqual([])
    windows.watermark(115)
    expect(valuesOf(windows.takeOutput())).toEqual([['a', 0, 115, [0, 1, 2]]])
    expect(await windows.isEmpty()).toBe(true)
  })

  it('fires a global window at the end of its input too, and does not go on for ever', async () => {
    const windows = await WindowSubtasks.open({
      assigner: globalWindow(),
      trigger: purging(continuousTrigger({ everyMs: 10 })),
    })
    windows.process({ key: 'a', n: 1 }, 5)
    windows.watermark(20)
    windows.process({ key: 'a', n: 2 }, 21)
    windows.process({ key: 'a', n: 3 }, 4)
    windows.watermark(MAX_WATERMARK)
    expect(windows.takeOutput()).toEqual([
      { value: ofAllTime('a', [1]), timestamp: 10 },
      { value: ofAllTime('a', [2, 3]), timestamp: 30 },
    ])
    expect(await windows.isEmpty()).toBe(true)
  })
})

describe('a trigger of one’s own', () => {
  /** Fires once a window's numbers add up to 10, or 5 ms of the wall clock after its first record. */
  const enough: Trigger<Event, { sum: number }> = {
    name: 'enough',
    state: z.object({ sum: z.number() }),
    onRecord({ n }, { state, timers, processingTimeMs }) {
      if (state.get() === undefined) {
        state.update({ sum: 0 })
        timers.register('processing', processingTimeMs + 5)
      }
      state.mutate((seen) => void (seen.sum += n))
      return state.get()!.sum >= 10 ? 'fire and purge' : 'continue'
    },
    onProcessingTime: (_timeMs, { state }) => ((state.get()?.sum ?? 0) > 0 ? 'fire and purge' : 'purge'),
    onMerge(merged, { state }) {
      state.update({ sum: merged.reduce((sum, seen) => sum + seen.sum, 0) })
    },
  }

  it('remembers per key and window, also across a restore', async () => {
    const windows = await WindowSubtasks.open({
      assigner: tumblingWindows({ sizeMs: 10 }),
      trigger: enough,
    })
    windows.process({ key: 'a', n: 4 }, 1)
    windows.process({ key: 'a', n: 5 }, 11)
    windows.process({ key: 'f', n: 6 }, 1)
    await windows.restore(3)
    windows.process({ key: 'a', n: 6 }, 2)
    expect(valuesOf(windows.takeOutput())).toEqual([['a', 0, 10, [4, 6]]])
    await windows.advance(5)
    expect(new Set(valuesOf(windows.takeOutput()))).toEqual(
      new Set([
        ['a', 10, 20, [5]],
        ['f', 0, 10, [6]],
      ]),
    )
    windows.watermark(1_000)
    expect(windows.takeOutput()).toEqual([])
  })

  it('sees what was remembered of merged sessions, earliest first, and timers that it left at the start of one that is no more do nothing', async () => {
    const seen: unknown[] = []
    const merging: Trigger<Event, number[]> = {
      name: 'merging',
      onRecord({ n }, { state, timers, window }) {
        state.update([...(state.get() ?? []), n])
        timers.register('event', window.startMs + 40)
        return 'continue'
      },
      onEventTime(timestampMs, { window, timestamp, key, windowTime, ended }) {
        seen.push([timestampMs, timestamp, key, window, windowTime, ended])
        return 'fire'
      },
      onMerge(merged, { state }) {
        seen.push(merged)
        state.update(merged.flat())
      },
    }
    const windows = await WindowSubtasks.open({
      assigner: sessionWindows({ gapMs: 10 }),
      trigger: merging,
      allowedLatenessMs: 100,
    })
    for (const [n, time] of [20, 0, 11, 5].entries()) windows.process({ key: 'a', n }, time)
    windows.process({ key: 'a', n: 4 }, 12)
    windows.watermark(1_000)
    expect(seen).toEqual([[[0]], [[1], [0, 2]], [40, 40, 'a', { startMs: 0, endMs: 30 }, 'event', true]])
    expect(valuesOf(windows.takeOutput())).toEqual([['a', 0, 30, [0, 1, 2, 3, 4]]])
    expect(await windows.isEmpty()).toBe(true)
  })

  it('is told the end of a window, before which its own timers came and after which none comes', async () => {
    const seen: unknown[] = []
    const telling: Trigger = {
      name: 'telling',
      onRecord(_value, { timers }) {
        for (const time of [3, 9, 14, 15]) timers.register('event', time)
        for (const time of [5, 50]) timers.register('processing', time)
        return 'continue'
      },
      onEnd({ window, timestamp, ended }) {
        seen.push(['end', window, timestamp, ended])
        return 'continue'
      },
      onEventTime(timeMs) {
        seen.push(['event', timeMs])
        return 'continue'
      },
      onProcessingTime(timeMs, { timestamp }) {
        seen.push(['processing', timeMs, timestamp])
        return 'continue'
      },
      clear({ state }) {
        seen.push('clear')
        state.clear()
      },
    }
    const windows = await WindowSubtasks.open(
      {
        assigner: tumblingWindows({ sizeMs: 10 }),
        trigger: telling,
        allowedLatenessMs: 5,
      },
      manualEnvironment({ clock: new ManualClock(0) }),
    )
    windows.process({ key: 'a', n: 1 }, 1)
    await windows.advance(10)
    windows.watermark(8)
    expect(seen).toEqual([
      ['processing', 5, undefined],
      ['event', 3],
    ])
    windows.watermark(14)
    windows.watermark(1_000)
    await windows.advance(100)
    expect(seen.slice(2)).toHaveLength(4)
    expect(new Set(seen.slice(2, 4))).toEqual(
      new Set([
        ['event', 9],
        ['end', { startMs: 0, endMs: 10 }, 9, true],
      ]),
    )
    expect(seen.slice(4)).toEqual([['event', 14], 'clear'])
    expect(windows.takeOutput()).toEqual([])
    expect(await windows.isEmpty()).toBe(true)
  })

  it('is named when it throws, gives a promise, or gives no result', async () => {
    for (const [onRecord, code] of [
      [() => JSON.parse('{') as never, 'MR-J50'],
      [() => Promise.resolve('fire') as never, 'MR-J51'],
      [() => undefined as never, 'MR-J55'],
    ] as const) {
      const windows = await WindowSubtasks.open({ assigner: globalWindow(), trigger: { name: 'wrong', onRecord } })
      expect(() => windows.process({ key: 'a', n: 1 }, 1)).toThrow(expect.objectContaining({ code }))
    }
  })

  it('does not find windows of a trigger of another name: it would not know their timers', async () => {
    const windows = await WindowSubtasks.open({ assigner: globalWindow(), trigger: enough })
    windows.process({ key: 'a', n: 1 }, 1)
    await expect(windows.restore(1, { trigger: countTrigger(1) })).rejects.toThrow(/MR-T02.*'enough'.*'count'/s)
  })
})

describe('windows and triggers that do not go together', () => {
  it.each<[string, WindowAssigner, AnyTrigger | undefined, { allowedLatenessMs?: number; lateTag?: string }]>([
    ['MR-J57', globalWindow(), undefined, {}],
    ['MR-J58', globalWindow(), countTrigger(1), { allowedLatenessMs: 5 }],
    ['MR-J58', tumblingWindows({ sizeMs: 1, time: 'processing' }), undefined, { lateTag: 'late' }],
    ['MR-J58', sessionWindows({ gapMs: 1, time: 'processing' }), undefined, { allowedLatenessMs: 0 }],
    ['MR-J59', globalWindow(), purging(processingTimeTrigger()), {}],
    ['MR-J59', tumblingWindows({ sizeMs: 1 }), processingTimeTrigger(), {}],
    ['MR-J59', tumblingWindows({ sizeMs: 1, time: 'processing' }), eventTimeTrigger(), {}],
  ])('are refused by %s (%#)', (code, assigner, trigger, { allowedLatenessMs, lateTag }) => {
    expect(() => windowWork({ assigner, trigger, contents: listing, allowedLatenessMs, lateTag })).toThrow(
      expect.objectContaining({ code }),
    )
  })

  it('have no sizes that are none, and no time that is none', () => {
    for (const wrong of [
      () => countTrigger(0),
      () => countTrigger(1.5),
      () => continuousTrigger({ everyMs: 0 }),
      () => continuousTrigger({ everyMs: 1, time: 'wall' as never }),
      () => tumblingWindows({ sizeMs: 1, time: 'wall' as never }),
      () => sessionWindows({ gapMs: 1, time: 'wall' as never }),
    ])
      expect(wrong).toThrow(expect.objectContaining({ code: 'MR-J54' }))
  })
})
