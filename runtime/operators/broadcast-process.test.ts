import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { mapState, valueState } from '../state/descriptors.ts'
import { broadcastProcessOperator, keyedBroadcastProcessOperator } from './broadcast-process.ts'
import type { BroadcastProcessFunction, KeyedBroadcastProcessFunction } from './broadcast-process.ts'
import type { BroadcastDeclaration } from './broadcast-state.ts'
import { openHarness } from './harness.ts'
import type { HarnessOptions, HarnessSnapshot, OperatorHarness } from './harness.ts'

const limit = z.object({ limit: z.number(), tags: z.array(z.string()).default([]) })
const limits = { limits: mapState('limits', { key: 'string', value: limit }) }

interface Reading {
  readonly sensor: string
  readonly value: number
}

interface Rule {
  readonly sensor: string
  readonly limit: number | undefined
}

/** Emits readings above the limit of their sensor. */
const alarms: BroadcastProcessFunction<Reading, Rule, typeof limits, string> = {
  process({ sensor, value }, { broadcastState, emit }) {
    const rule = broadcastState.limits.get(sensor)
    if (rule !== undefined && value > rule.limit) emit(`${sensor} ${value} > ${rule.limit}`)
  },
  processBroadcast(rule, { broadcastState }) {
    if (rule.limit === undefined) broadcastState.limits.delete(rule.sensor)
    else broadcastState.limits.put(rule.sensor, { limit: rule.limit, tags: [] })
  },
}

const openAlarms = (
  restored: readonly HarnessSnapshot[] = [],
  declared: typeof limits = limits,
): Promise<OperatorHarness> => openHarness({ operator: broadcastProcessOperator(alarms, declared), restored })

const valuesOf = (harness: OperatorHarness): unknown[] => harness.takeOutput().map(({ value }) => value)

const brought = (sensor: string): Reading => ({ sensor, value: 10 })

describe('broadcast state', () => {
  it('is what the broadcast records made of it, for all records that follow', async () => {
    const harness = await openAlarms()
    harness.process(brought('a'), 1)
    harness.processSecond({ sensor: 'a', limit: 5 })
    harness.processSecond({ sensor: 'b', limit: 9 })
    harness.process(brought('a'), 2)
    harness.processSecond({ sensor: 'a', limit: 50 })
    harness.process(brought('a'), 3)
    harness.processSecond({ sensor: 'b', limit: undefined })
    harness.process(brought('b'), 4)
    expect(harness.takeOutput()).toEqual([{ value: 'a 10 > 5', timestamp: 2 }])
  })

  it('is stored to be given whole to each subtask', async () => {
    const harness = await openAlarms()
    harness.processSecond({ sensor: 'a', limit: 5 })
    harness.processSecond({ sensor: 'b', limit: 6 })
    const { part } = await harness.snapshot()
    expect(part.operatorState?.limits).toMatchObject({ redistribution: 'broadcast' })
    expect(part.operatorState?.limits?.items).toHaveLength(2)
    const restored = await openAlarms([{ keyed: undefined, part }])
    restored.process(brought('b'))
    expect(valuesOf(restored)).toEqual(['b 10 > 6'])
  })

  it('is cut at the snapshot: what changes later is not in it', async () => {
    const harness = await openAlarms()
    harness.processSecond({ sensor: 'a', limit: 5 })
    const snapshot = harness.snapshot()
    harness.processSecond({ sensor: 'a', limit: 500 })
    harness.processSecond({ sensor: 'b', limit: 1 })
    const restored = await openAlarms([await snapshot])
    restored.process(brought('a'))
    restored.process(brought('b'))
    expect(valuesOf(restored)).toEqual(['a 10 > 5'])
  })

  it('cannot be written from the side of the other stream', async () => {
    const harness = await openHarness({
      operator: broadcastProcessOperator<Reading, Rule, typeof limits, string>(
        {
          process(_value, { broadcastState }) {
            ;(broadcastState.limits as unknown as { clear: () => void }).clear()
          },
          processBroadcast: () => undefined,
        },
        limits,
      ),
    })
    expect(() => harness.process(brought('a'))).toThrow(/MR-J50.*clear is not a function/s)
  })

  it('holds values that only mutate changes, and gives keys, entries and size', async () => {
    const seen: unknown[] = []
    const harness = await openHarness({
      operator: broadcastProcessOperator<string, string, typeof limits, string>(
        {
          process(_value, { broadcastState: { limits } }) {
            seen.push(limits.size, limits.keys(), limits.entries(), limits.has('a'), limits.has('b'))
            ;(limits.get('a') as { limit: number }).limit = 2
          },
          processBroadcast(tag, { broadcastState: { limits } }) {
            if (!limits.has('a')) limits.put('a', { limit: 1, tags: [] })
            limits.mutate('a', ({ tags }) => void tags.push(tag))
            limits.mutate('absent', () => expect.unreachable())
          },
        },
        limits,
      ),
    })
    harness.processSecond('x')
    harness.processSecond('y')
    expect(() => harness.process('read')).toThrow(/MR-J52/)
    expect(seen).toEqual([1, ['a'], [['a', { limit: 1, tags: ['x', 'y'] }]], true, false])
  })

  it('refuses keys of another type than declared', async () => {
    const harness = await openHarness({
      operator: broadcastProcessOperator<string, unknown, typeof limits, string>(
        {
          process: () => undefined,
          processBroadcast: (key, { broadcastState }) =>
            broadcastState.limits.put(key as string, { limit: 1, tags: [] }),
        },
        limits,
      ),
    })
    expect(() => harness.processSecond(7)).toThrow(/MR-T07.*'limits' has string keys and was given number 7/s)
  })
})

describe('stored broadcast state', () => {
  const stored = async (): Promise<HarnessSnapshot> => {
    const harness = await openAlarms()
    harness.processSecond({ sensor: 'a', limit: 5 })
    return harness.snapshot()
  }
  const reopened = (declared: BroadcastDeclaration, restored: HarnessSnapshot): Promise<OperatorHarness> =>
    openHarness({
      operator: broadcastProcessOperator<string, unknown, BroadcastDeclaration, unknown>(
        {
          process: (name, { broadcastState, emit }) => emit(broadcastState[name]!.entries()),
          processBroadcast: () => undefined,
        },
        declared,
      ),
      restored: [restored],
    })

  it('is read under a schema that gained a field with a default and lost another', async () => {
    const later = z.object({ limit: z.number(), unit: z.string().default('°C') })
    const harness = await reopened({ limits: mapState('limits', { key: 'string', value: later }) }, await stored())
    harness.process('limits')
    expect(valuesOf(harness)).toEqual([[['a', { limit: 5, unit: '°C' }]]])
  })

  it('is refused under a schema or a type of key that it does not fit', async () => {
    const text = z.object({ limit: z.string() })
    await expect(
      reopened({ limits: mapState('limits', { key: 'string', value: text }) }, await stored()),
    ).rejects.toThrow(/MR-T02.*Operator 'tested', broadcast state 'limits'.*limit/s)
    await expect(
      reopened({ limits: mapState('limits', { key: 'number', value: limit }) }, await stored()),
    ).rejects.toThrow(/MR-T02.*its keys were stored as string and are number now/s)
  })

  it('is kept while the job does not declare it', async () => {
    const other = { other: mapState('other', { key: 'number', value: z.int() }) }
    const without = await reopened(other, await stored())
    without.process('other')
    expect(valuesOf(without)).toEqual([[]])
    const again = await openAlarms([await without.snapshot()])
    again.process(brought('a'))
    expect(valuesOf(again)).toEqual(['a 10 > 5'])
  })
})

const count = valueState('count', z.int())
const seen = mapState('seen', { key: 'number', value: z.string() })
const keyedState = { count, seen }
const steps = { steps: mapState('steps', { key: 'number', value: z.int() }) }

interface Step {
  readonly id: number
  readonly by: number
}

/** Counts in steps as told last; a step of 0 resets all counts and says what they were. */
const counting: KeyedBroadcastProcessFunction<string, string, Step, typeof keyedState, typeof steps, string> = {
  state: keyedState,
  process(value, { key, state, broadcastState, timers, timestamp, emit }) {
    const next = (state.count.get() ?? 0) + (broadcastState.steps.get(0) ?? 1)
    state.count.update(next)
    state.seen.put(next, value)
    timers.register('event', timestamp! + 100)
    emit(`${key} ${next}`)
  },
  processBroadcast({ id, by }, { broadcastState, forEachKey, emit }) {
    broadcastState.steps.put(id, by)
    if (by !== 0) return
    forEachKey(count, (key, handle) => {
      emit(`${key} was ${handle.get()}`)
      handle.clear()
      if (key === 'b') handle.update(1000)
    })
    forEachKey(seen, (key, handle) => emit(`${key} saw ${handle.size}`))
  },
  onTimer({ timestampMs }, { key, state, broadcastState, emit }) {
    emit(`${key} has ${state.count.get()} at ${timestampMs}, step ${broadcastState.steps.get(0)}`)
  },
}

const keyed = (more: Partial<HarnessOptions> = {}): HarnessOptions => ({
  operator: keyedBroadcastProcessOperator(counting, steps),
  keySelector: (value: string) => value,
  ...more,
})

describe('a keyed operator with broadcast state', () => {
  it('has state and timers of the key beside it', async () => {
    const harness = await openHarness(keyed())
    harness.process('a', 1)
    harness.processSecond({ id: 0, by: 10 })
    harness.process('a', 2)
    harness.watermark(101)
    expect(valuesOf(harness)).toEqual(['a 1', 'a 11', 'a has 11 at 101, step 10'])
  })

  it('visits every key that has something in a state, with the handle of that key', async () => {
    const harness = await openHarness(keyed())
    for (const key of ['a', 'b', 'c', 'c']) harness.process(key, 1)
    harness.takeOutput()
    harness.processSecond({ id: 0, by: 0 }, 7)
    const first = harness.takeOutput()
    expect(first.map(({ value }) => String(value)).toSorted()).toEqual(
      ['a saw 1', 'a was 1', 'b saw 1', 'b was 1', 'c saw 2', 'c was 2'].toSorted(),
    )
    expect(new Set(first.map(({ timestamp }) => timestamp))).toEqual(new Set([7]))
    harness.processSecond({ id: 0, by: 0 })
    expect(valuesOf(harness).filter((value) => String(value).includes('was'))).toEqual(['b was 1000'])
  })

  it('restores broadcast state whole and keyed state by key groups', async () => {
    const before = await openHarness(keyed())
    for (const key of ['a', 'b', 'c']) before.process(key, 1)
    before.processSecond({ id: 0, by: 10 })
    const restored = [await before.snapshot()]
    const found: string[] = []
    for (const keyGroups of [
      [0, 63],
      [64, 127],
    ] as const) {
      const after = await openHarness(keyed({ restored, keyGroups }))
      after.watermark(101)
      found.push(...valuesOf(after).map(String))
    }
    expect(found.toSorted()).toEqual(['a', 'b', 'c'].map((key) => `${key} has 1 at 101, step 10`))
  })
})
