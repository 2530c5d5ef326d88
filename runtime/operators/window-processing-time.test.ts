import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_WATERMARK } from '../record/element.ts'
import { ManualClock, manualEnvironment } from '../testkit/manual-clock.ts'
import { ofKey, valuesOf, WindowSubtasks } from './test-windows.ts'
import type { WindowSetup } from './test-windows.ts'
import type { Trigger } from './trigger.ts'
import type { WindowAssigner } from './window-assigner.ts'
import { sessionWindows, slidingWindows, tumblingWindows } from './window-assigner.ts'

const openAtZero = (setup: WindowSetup): Promise<WindowSubtasks> =>
  WindowSubtasks.open(setup, manualEnvironment({ clock: new ManualClock(0) }))

class SteppedClock extends ManualClock {
  backMs = 0

  override wallMs(): number {
    return super.wallMs() - this.backMs
  }
}

describe('windows of processing time', () => {
  it('fire when the wall clock has passed their end, whatever event time says, and give results without event time', async () => {
    const windows = await openAtZero({ assigner: tumblingWindows({ sizeMs: 10, time: 'processing' }) })
    windows.process({ key: 'a', n: 1 }, 1_000_000)
    windows.watermark(MAX_WATERMARK)
    await windows.advance(9)
    windows.process({ key: 'a', n: 2 })
    expect(windows.takeOutput()).toEqual([])
    await windows.advance(1)
    expect(windows.takeOutput()).toEqual([{ value: ['a', 0, 10, [1, 2]], timestamp: undefined }])
    expect(await windows.isEmpty()).toBe(true)
  })

  it('fire soon after a restore when their end passed meanwhile', async () => {
    for (const assigner of [
      tumblingWindows({ sizeMs: 10, time: 'processing' }),
      sessionWindows({ gapMs: 10, time: 'processing' }),
    ]) {
      const windows = await openAtZero({ assigner })
      windows.process({ key: 'a', n: 1 })
      windows.process({ key: 'f', n: 2 })
      await windows.restore(3)
      await windows.advance(100_000)
      expect(new Set(valuesOf(windows.takeOutput()))).toEqual(
        new Set([
          ['a', 0, 10, [1]],
          ['f', 0, 10, [2]],
        ]),
      )
      expect(await windows.isEmpty()).toBe(true)
    }
  })

  it('of sessions end a gap after the last record', async () => {
    const windows = await openAtZero({ assigner: sessionWindows({ gapMs: 10, time: 'processing' }) })
    windows.process({ key: 'a', n: 1 })
    await windows.advance(9)
    windows.process({ key: 'a', n: 2 })
    await windows.advance(9)
    expect(windows.takeOutput()).toEqual([])
    await windows.advance(1)
    expect(valuesOf(windows.takeOutput())).toEqual([['a', 0, 19, [1, 2]]])
    windows.process({ key: 'a', n: 3 })
    await windows.advance(100)
    expect(valuesOf(windows.takeOutput())).toEqual([['a', 19, 29, [3]]])
    expect(await windows.isEmpty()).toBe(true)
  })

  it.each<[string, WindowAssigner, readonly number[], number, readonly unknown[]]>([
    [
      'a session that would have contained it',
      sessionWindows({ gapMs: 10, time: 'processing' }),
      [8, 10],
      13,
      [
        ['a', 0, 18, [0, 1]],
        ['a', 5, 15, [2]],
      ],
    ],
    [
      'a session that would have grown',
      sessionWindows({ gapMs: 10, time: 'processing' }),
      [10],
      5,
      [
        ['a', 0, 10, [0]],
        ['a', 5, 15, [1]],
      ],
    ],
    [
      'a tumbling window',
      tumblingWindows({ sizeMs: 10, time: 'processing' }),
      [10],
      3,
      [
        ['a', 0, 10, [0]],
        ['a', 0, 10, [1]],
      ],
    ],
  ])(
    'give each record once, also one that comes after the wall clock was set back behind the end of %s',
    async (_, assigner, pausesMs, backMs, expected) => {
      const clock = new SteppedClock(0)
      const windows = await WindowSubtasks.open({ assigner }, manualEnvironment({ clock }))
      for (const [n, pauseMs] of pausesMs.entries()) {
        windows.process({ key: 'a', n })
        await windows.advance(pauseMs)
      }
      expect(valuesOf(windows.takeOutput())).toEqual(expected.slice(0, 1))
      expect(await windows.isEmpty()).toBe(true)
      clock.backMs = backMs
      windows.process({ key: 'a', n: pausesMs.length })
      await windows.advance(100)
      expect(valuesOf(windows.takeOutput())).toEqual(expected.slice(1))
      expect(await windows.isEmpty()).toBe(true)
    },
  )

  it('fire what their trigger waits for at the end itself, and are gone then', async () => {
    for (const timesMs of [[10], [10, 4], [4, 10]]) {
      const seen: number[] = []
      const trigger: Trigger = {
        name: 'waiting',
        onRecord(_value, { timers }) {
          for (const timeMs of timesMs) timers.register('processing', timeMs)
          return 'continue'
        },
        onProcessingTime(timeMs) {
          seen.push(timeMs)
          return 'fire and purge'
        },
      }
      const windows = await openAtZero({ assigner: tumblingWindows({ sizeMs: 10, time: 'processing' }), trigger })
      windows.process({ key: 'a', n: 1 })
      await windows.advance(10)
      expect(seen).toEqual(timesMs.toSorted((left, right) => left - right))
      expect(valuesOf(windows.takeOutput())).toEqual([['a', 0, 10, [1]]])
      expect(await windows.isEmpty()).toBe(true)
    }
  })

  it('do not find windows of event time', async () => {
    const windows = await openAtZero({ assigner: tumblingWindows({ sizeMs: 10 }) })
    windows.process({ key: 'a', n: 1 }, 1)
    const assigner = tumblingWindows({ sizeMs: 10, time: 'processing' })
    await expect(windows.restore(1, { assigner })).rejects.toThrow(/MR-T02.*processing time/s)
  })

  it('emit what a plain loop over all records says, restored anywhere at any parallelism', async () => {
    const keys = ['a', 'b', 'c', 'f']
    const action = fc.oneof(
      { weight: 6, arbitrary: fc.record({ key: fc.constantFrom(...keys) }) },
      { weight: 4, arbitrary: fc.record({ ms: fc.integer({ min: 1, max: 9 }) }) },
      { weight: 1, arbitrary: fc.record({ count: fc.integer({ min: 1, max: 3 }) }) },
    )
    const shape = fc.record({ sizeMs: fc.integer({ min: 1, max: 12 }), slideMs: fc.integer({ min: 1, max: 15 }) })
    await fc.assert(
      fc.asyncProperty(
        shape,
        fc.array(action, { maxLength: 40, size: 'max' }),
        async ({ sizeMs, slideMs }, actions) => {
          const windows = await openAtZero({
            assigner: slidingWindows({ sizeMs, slideMs, time: 'processing' }),
          })
          const records: { readonly key: string; readonly n: number; readonly time: number }[] = []
          for (const [n, step] of actions.entries()) {
            if ('key' in step) {
              records.push({ key: step.key, n, time: windows.wallMs })
              windows.process({ key: step.key, n })
            } else if ('count' in step) await windows.restore(step.count)
            else await windows.advance(step.ms)
          }
          await windows.advance(100)
          const emitted = valuesOf(windows.takeOutput())
          for (const key of keys) {
            const expected: unknown[] = []
            for (let start = -15; start < 500; start++) {
              if (start % slideMs !== 0) continue
              const within = records.filter(
                (record) => record.key === key && record.time >= start && record.time < start + sizeMs,
              )
              if (within.length > 0) expected.push([key, start, start + sizeMs, within.map(({ n }) => n)])
            }
            expect(ofKey(emitted, key)).toEqual(expected)
          }
          expect(await windows.isEmpty()).toBe(true)
        },
      ),
      { numRuns: 60 },
    )
  })
})
