import { describe, expect, it } from 'vitest'
import { typeInfoOf } from '../record/type-info.ts'
import type { MapState } from '../state/contract.ts'
import { mapState, valueState } from '../state/descriptors.ts'
import { openHarness } from './harness.ts'
import { KeyedProcessOperator } from './keyed-process.ts'
import type { AnyKeyedProcessFunction, KeyedProcessFunction } from './keyed-process.ts'
import { RollingAggregateOperator, rollingAggregateState } from './rolling-aggregate.ts'
import { RollingReduceOperator, rollingReduceState } from './rolling-reduce.ts'

interface Reading {
  readonly sensor: string
  readonly value: number
}

const bySensor = (reading: Reading): string => reading.sensor

interface CountState {
  readonly count: ReturnType<typeof valueState<number>>
}

/** Counts per sensor and says the count 100 ms of event time after the first record, and after 50 ms of processing time. */
const counting: KeyedProcessFunction<string, Reading, CountState, string> = {
  state: { count: valueState<number>('count') },
  process(_reading, { state, timers, timestamp, processingTimeMs }) {
    const before = state.count.get()
    if (before === undefined) {
      timers.register('event', (timestamp ?? 0) + 100, 'count')
      timers.register('processing', processingTimeMs + 50)
    }
    state.count.update((before ?? 0) + 1)
  },
  onTimer(timer, { key, state, emit }) {
    emit(`${key} ${timer.domain} ${timer.tag}: ${state.count.get()}`)
  },
}

const countingOperator = (): KeyedProcessOperator =>
  new KeyedProcessOperator(counting as unknown as AnyKeyedProcessFunction)

describe('a keyed process function', () => {
  it('sees its own key in state and timers, and emits with the event timer’s time', async () => {
    const harness = await openHarness({ operator: countingOperator(), keySelector: bySensor })
    harness.process({ sensor: 'a', value: 1 }, 1_000)
    harness.process({ sensor: 'b', value: 1 }, 1_050)
    harness.process({ sensor: 'a', value: 1 }, 1_060)
    harness.watermark(1_120)
    expect(harness.takeOutput()).toEqual([{ value: 'a event count: 2', timestamp: 1_100 }])
    harness.watermark(1_150)
    expect(harness.takeOutput()).toEqual([{ value: 'b event count: 1', timestamp: 1_150 }])
  })

  it('emits without event time from a processing-time timer', async () => {
    const harness = await openHarness({ operator: countingOperator(), keySelector: bySensor })
    harness.process({ sensor: 'a', value: 1 }, 1_000)
    await harness.advance(50)
    expect(harness.takeOutput()).toEqual([{ value: 'a processing : 1', timestamp: undefined }])
  })

  it('goes on with state and timers after a restore', async () => {
    const before = await openHarness({ operator: countingOperator(), keySelector: bySensor })
    before.process({ sensor: 'a', value: 1 }, 1_000)
    before.watermark(1_050)
    const snapshot = await before.snapshot()
    before.process({ sensor: 'a', value: 1 }, 1_051)

    const after = await openHarness({ operator: countingOperator(), keySelector: bySensor, restored: [snapshot] })
    expect(after.currentWatermark).toBe(1_050)
    after.process({ sensor: 'a', value: 1 }, 1_051)
    after.watermark(1_100)
    expect(after.takeOutput()).toEqual([{ value: 'a event count: 2', timestamp: 1_100 }])
  })

  it('names the operator when a timer’s function throws or gives a promise', async () => {
    for (const [onTimer, code] of [
      [() => JSON.parse('{') as unknown, 'MR-J50'],
      [() => Promise.resolve(), 'MR-J51'],
    ] as const) {
      const failing = { ...counting, onTimer } as unknown as AnyKeyedProcessFunction
      const harness = await openHarness({ operator: new KeyedProcessOperator(failing), keySelector: bySensor })
      harness.process({ sensor: 'a', value: 1 }, 0)
      expect(() => harness.watermark(200)).toThrow(expect.objectContaining({ code }))
    }
  })

  it('keeps a map per key apart from other keys', async () => {
    const operator = new KeyedProcessOperator({
      state: { seen: mapState('seen', { key: 'number' }) as never },
      process(value, { state, emit }) {
        const seen = (state as { seen: MapState<number, number> }).seen
        const reading = value as Reading
        seen.put(reading.value, (seen.get(reading.value) ?? 0) + 1)
        emit(seen.entries())
      },
    })
    const harness = await openHarness({ operator, keySelector: bySensor })
    harness.process({ sensor: 'a', value: 7 })
    harness.process({ sensor: 'b', value: 7 })
    harness.process({ sensor: 'a', value: 7 })
    expect(harness.takeOutput().map(({ value }) => value)).toEqual([[[7, 1]], [[7, 1]], [[7, 2]]])
  })
})

describe('rolling reduce and aggregate', () => {
  it('emit the result so far of each key, also across a restore', async () => {
    const state = rollingReduceState(typeInfoOf<unknown>('reading'))
    const larger = (left: unknown, right: unknown): unknown =>
      (left as Reading).value >= (right as Reading).value ? left : right
    const before = await openHarness({ operator: new RollingReduceOperator(larger, state), keySelector: bySensor })
    before.process({ sensor: 'a', value: 3 }, 1)
    before.process({ sensor: 'b', value: 1 }, 2)
    before.process({ sensor: 'a', value: 2 }, 3)
    expect(before.takeOutput().map(({ value }) => (value as Reading).value)).toEqual([3, 1, 3])

    const restored = [await before.snapshot()]
    const after = await openHarness({
      operator: new RollingReduceOperator(larger, state),
      keySelector: bySensor,
      restored,
    })
    after.process({ sensor: 'a', value: 1 }, 4)
    expect(after.takeOutput()).toEqual([{ value: { sensor: 'a', value: 3 }, timestamp: 4 }])
  })

  it('aggregate in place', async () => {
    interface Mean {
      sum: number
      count: number
    }
    const mean = {
      create: (): unknown => ({ sum: 0, count: 0 }),
      add(accumulator: unknown, value: unknown): unknown {
        const running = accumulator as Mean
        running.sum += (value as Reading).value
        running.count++
        return running
      },
      result: (accumulator: unknown): unknown => (accumulator as Mean).sum / (accumulator as Mean).count,
    }
    const state = rollingAggregateState(mean, typeInfoOf<unknown>('mean'))
    const harness = await openHarness({ operator: new RollingAggregateOperator(state), keySelector: bySensor })
    harness.process({ sensor: 'a', value: 3 })
    harness.process({ sensor: 'a', value: 4 })
    harness.process({ sensor: 'b', value: 9 })
    expect(harness.takeOutput().map(({ value }) => value)).toEqual([3, 3.5, 9])
  })

  it('say that reduce changed its argument', async () => {
    const adding = (left: unknown, right: unknown): unknown => {
      ;(left as { value: number }).value += (right as Reading).value
      return left
    }
    const operator = new RollingReduceOperator(adding, rollingReduceState(typeInfoOf<unknown>('reading')))
    const harness = await openHarness({ operator, keySelector: bySensor })
    harness.process({ sensor: 'a', value: 3 })
    expect(() => harness.process({ sensor: 'a', value: 3 })).toThrow(expect.objectContaining({ code: 'MR-J52' }))
  })
})
