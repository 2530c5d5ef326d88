import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openHarness } from './harness.ts'
import { HistogramSketch } from './histogram-sketch.ts'
import { KeyedProcessOperator } from './keyed-process.ts'
import { ProcessOperator } from './process.ts'
import type { ProcessFunction } from './process.ts'
import type { OpenContext, ProcessContext } from './process-context.ts'
import type { Counter } from './user-metrics-contract.ts'

describe("a job's own metrics", () => {
  it('are the same object in open and in process, and stand in the report under uid, kind and name', async () => {
    class Sizes implements ProcessFunction<number, never> {
      rejected!: Counter
      sum = 0
      open({ metrics }: OpenContext): void {
        this.rejected = metrics.counter('rejected')
        metrics.gauge('sum', () => this.sum)
      }
      process(value: number, { metrics }: ProcessContext<never>): void {
        this.sum += value
        if (value < 0) this.rejected.increment()
        metrics.counter('rejected').increment(10)
        metrics.histogram('size').record(value)
      }
    }
    const operator = new ProcessOperator(new Sizes() as ProcessFunction<unknown, never>)
    const harness = await openHarness({ operator })
    for (const value of [4, -1, 9]) harness.process(value)
    expect(harness.metrics.figures()).toEqual({
      'user/tested/counter/rejected': 31,
      'user/tested/gauge/sum': 12,
      'user/tested/histogram/size/count': 3,
      'user/tested/histogram/size/sum': 12,
      'user/tested/histogram/size/min': -1,
      'user/tested/histogram/size/max': 9,
      'user/tested/histogram/size/p50': expect.closeTo(4, 1),
      'user/tested/histogram/size/p95': expect.closeTo(9, 0),
      'user/tested/histogram/size/p99': expect.closeTo(9, 0),
    })
  })

  it('are there for keyed functions and their timers', async () => {
    const operator = new KeyedProcessOperator({
      process: (_value, { timers }) => timers.register('event', 5),
      onTimer: (_timer, { metrics }) => metrics.counter('fired').increment(),
    })
    const harness = await openHarness({ operator, keySelector: (value: number) => value })
    for (const key of [1, 2]) harness.process(key)
    harness.watermark(5)
    expect(harness.metrics.figures()['user/tested/counter/fired']).toBe(2)
  })

  it('are refused under a name that no metric can have, or that another kind has', async () => {
    const refusedIn = async (use: (metrics: OpenContext['metrics']) => void): Promise<string> => {
      const open = ({ metrics }: OpenContext): void => use(metrics)
      const operator = new ProcessOperator({ open, process: () => {} })
      return String(await openHarness({ operator }).catch((error: unknown) => error))
    }
    for (const name of ['', 'Calls', '1st', 'a-b', 'a.b', 'a/b', '_a', 'a'.repeat(101)])
      expect(await refusedIn((metrics) => void metrics.counter(name))).toContain('MR-J72')
    const doubled = await refusedIn((metrics) => {
      metrics.gauge('calls', () => 1)
      metrics.counter('calls')
    })
    expect(doubled).toMatch(/MR-J72.*The counter 'calls' of operator 'tested' is already a gauge/)
    const again = await refusedIn((metrics) => {
      metrics.gauge('calls', () => 1)
      metrics.gauge('calls', () => 2)
      metrics.histogram('sizes').record(1)
      metrics.histogram('sizes').record(2)
    })
    expect(again).not.toContain('MR-')
  })

  it('leave a gauge out that throws, saying so once, and one that is no number', async () => {
    const open = ({ metrics }: OpenContext): void => {
      metrics.gauge('broken', () => {
        throw new Error('no pool')
      })
      metrics.gauge('unknown', () => Number.NaN)
      metrics.gauge('open', () => 3)
      metrics.histogram('empty')
    }
    const harness = await openHarness({ operator: new ProcessOperator({ open, process: () => {} }) })
    for (let report = 0; report < 2; report++)
      expect(harness.metrics.figures()).toEqual({
        'user/tested/gauge/open': 3,
        'user/tested/histogram/empty/count': 0,
        'user/tested/histogram/empty/sum': 0,
      })
    expect(harness.environment.lines).toEqual([
      {
        level: 'warn',
        message: 'a gauge threw and is not asked again',
        fields: { uid: 'tested', name: 'broken', error: 'Error: no pool' },
      },
    ])
  })
})

describe('the histogram', () => {
  const values = fc.array(
    fc.oneof(fc.double({ min: -1e12, max: 1e12, noNaN: true }), fc.integer({ min: 0, max: 50 })),
    {
      minLength: 1,
      maxLength: 300,
    },
  )

  it('knows every quantile to within 2 % of the value at that rank, and count, sum and bounds exactly', () => {
    const property = fc.property(values, fc.double({ min: 0, max: 1, noNaN: true }), (given, quantile) => {
      const sketch = new HistogramSketch()
      for (const value of given) sketch.record(value)
      const sorted = given.toSorted((left, right) => left - right)
      const exact = sorted[Math.max(0, Math.ceil(quantile * given.length) - 1)]!
      expect(Math.abs(sketch.quantile(quantile) - exact)).toBeLessThanOrEqual(Math.abs(exact) * 0.02 + 1e-8)
      expect([sketch.count, sketch.min, sketch.max]).toEqual([given.length, sorted[0], sorted.at(-1)])
      expect(sketch.sum).toBe(given.reduce((sum, value) => sum + value, 0))
    })
    fc.assert(property)
  })

  it('leaves out what is not finite, and takes values of any size', () => {
    const sketch = new HistogramSketch()
    for (const value of [Number.NaN, Infinity, -Infinity]) sketch.record(value)
    expect([sketch.count, sketch.quantile(0.5)]).toEqual([0, Number.NaN])
    for (const value of [1e-300, 1e300, -1e300]) sketch.record(value)
    expect([0, 0.5, 1].map((quantile) => sketch.quantile(quantile))).toEqual([
      expect.any(Number),
      0,
      expect.any(Number),
    ])
    expect([sketch.count, sketch.min, sketch.max]).toEqual([3, -1e300, 1e300])
  })
})
