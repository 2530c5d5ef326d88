import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MAX_WATERMARK } from '../record/element.ts'
import { ManualClock, manualEnvironment } from '../testkit/manual-clock.ts'
import { ofKey, valuesOf, WindowSubtasks } from './test-windows.ts'
import type { WindowSetup } from './test-windows.ts'
import { sessionWindows, slidingWindows, tumblingWindows } from './window-assigner.ts'

const openAtZero = (setup: WindowSetup): Promise<WindowSubtasks> =>
  WindowSubtasks.open(setup, manualEnvironment({ clock: new ManualClock(0) }))

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
    await windows.advance(1)
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

  it('of a session that has ended and grows, since the wall clock was set back, end once more: no record is lost', async () => {
    class SteppedClock extends ManualClock {
      backMs = 0

      override wallMs(): number {
        return super.wallMs() - this.backMs
      }
    }
    const clock = new SteppedClock(0)
    const assigner = sessionWindows({ gapMs: 10, time: 'processing' })
    const windows = await WindowSubtasks.open({ assigner }, manualEnvironment({ clock }))
    windows.process({ key: 'a', n: 1 })
    await windows.advance(10)
    expect(valuesOf(windows.takeOutput())).toEqual([['a', 0, 10, [1]]])
    clock.backMs = 5
    windows.process({ key: 'a', n: 2 })
    await windows.advance(9)
    expect(valuesOf(windows.takeOutput())).toEqual([])
    await windows.advance(1)
    expect(valuesOf(windows.takeOutput())).toEqual([['a', 0, 15, [1, 2]]])
    await windows.advance(1)
    expect(await windows.isEmpty()).toBe(true)
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
