import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { keyGroupOf } from '../record/key-group.ts'
import { listState, valueState } from '../state/descriptors.ts'
import { coProcessOperator } from './co-process.ts'
import type { CoProcessFunction } from './co-process.ts'
import { openHarness } from './harness.ts'
import type { HarnessOptions } from './harness.ts'
import { keyedCoProcessOperator } from './keyed-co-process.ts'
import type { KeyedCoProcessFunction } from './keyed-co-process.ts'

interface Order {
  readonly id: string
  readonly cents: number
}

interface Payment {
  readonly order: string
}

describe('a connected operator without keys', () => {
  it('has a function for each stream, and emits with the timestamp of the record', async () => {
    const harness = await openHarness({
      operator: coProcessOperator<number, string, string>({
        process: (value, { emit }) => emit(`number ${value}`),
        processSecond: (value, { emit, timestamp }) => emit(`text ${value} at ${timestamp}`),
      }),
    })
    harness.process(1, 10)
    harness.processSecond('one', 20)
    harness.processSecond('two')
    expect(harness.takeOutput()).toEqual([
      { value: 'number 1', timestamp: 10 },
      { value: 'text one at 20', timestamp: 20 },
      { value: 'text two at undefined', timestamp: undefined },
    ])
  })

  it('shares what open sets between both functions, and with no other attempt', async () => {
    class Numbering implements CoProcessFunction<string, string, string> {
      next = -1
      open(): void {
        this.next = 0
      }
      process(value: string, { emit }: { emit: (value: string) => void }): void {
        emit(`${value}${this.next++}`)
      }
      processSecond(value: string, { emit }: { emit: (value: string) => void }): void {
        emit(`${value}${this.next++}`)
      }
    }
    const shared = new Numbering()
    const first = await openHarness({ operator: coProcessOperator(shared) })
    first.process('a')
    first.processSecond('b')
    const second = await openHarness({ operator: coProcessOperator(shared) })
    second.processSecond('c')
    expect([...first.takeOutput(), ...second.takeOutput()].map(({ value }) => value)).toEqual(['a0', 'b1', 'c0'])
    expect(shared.next).toBe(-1)
  })

  it('names the function that threw, and refuses promises of either', async () => {
    const harness = await openHarness({
      operator: coProcessOperator({
        process: () => Promise.resolve() as unknown as void,
        processSecond: (value) => {
          if (value === 'bad') throw new RangeError('no')
          return Promise.resolve() as unknown as void
        },
      }),
    })
    expect(() => harness.process(1)).toThrow(/MR-J51.*process of/s)
    expect(() => harness.processSecond('good')).toThrow(/MR-J51.*processSecond of/s)
    expect(() => harness.processSecond('bad')).toThrow(/MR-J50.*processSecond of operator 'tested'.*RangeError: no/s)
  })
})

const state = {
  open: valueState('open', z.object({ id: z.string(), cents: z.int() })),
  early: listState('early', z.object({ order: z.string() })),
}

/** Emits each order when it is paid, whichever comes first, and orders that were not paid within 100 ms. */
const matching: KeyedCoProcessFunction<string, Order, Payment, typeof state, string> = {
  state,
  process(order, { state: { open, early }, timers, timestamp, emit, key }) {
    if (early.get().length > 0) return emit(`${key} paid before it came: ${order.cents}`)
    open.update({ ...order })
    timers.register('event', timestamp! + 100)
  },
  processSecond(payment, { state: { open, early }, emit, key }) {
    const order = open.get()
    if (order === undefined) return early.add({ ...payment })
    open.clear()
    emit(`${key} paid: ${order.cents}`)
  },
  onTimer({ timestampMs }, { key, state: { open }, emit }) {
    if (open.get() !== undefined) emit(`${key} unpaid at ${timestampMs}`)
    open.clear()
  },
}

const options = (more: Partial<HarnessOptions> = {}): HarnessOptions => ({
  operator: keyedCoProcessOperator(matching),
  keySelector: (order: Order) => order.id,
  secondKeySelector: (payment: Payment) => payment.order,
  ...more,
})

describe('a connected operator with keys', () => {
  it('has one state and one set of timers for both streams', async () => {
    const harness = await openHarness(options())
    harness.process({ id: 'a', cents: 5 }, 10)
    harness.process({ id: 'b', cents: 6 }, 11)
    harness.processSecond({ order: 'a' }, 12)
    harness.processSecond({ order: 'c' }, 13)
    harness.process({ id: 'c', cents: 7 }, 14)
    harness.watermark(200)
    expect(harness.takeOutput()).toEqual([
      { value: 'a paid: 5', timestamp: 12 },
      { value: 'c paid before it came: 7', timestamp: 14 },
      { value: 'b unpaid at 111', timestamp: 111 },
    ])
  })

  it('restores both sides’ state and the timers at another split of the key groups', async () => {
    const before = await openHarness(options())
    before.process({ id: 'a', cents: 5 }, 10)
    before.process({ id: 'b', cents: 6 }, 11)
    before.processSecond({ order: 'c' }, 12)
    const restored = [await before.snapshot()]
    const emitted: string[] = []
    for (const keyGroups of [
      [0, 50],
      [51, 127],
    ] as const) {
      const after = await openHarness(options({ restored, keyGroups }))
      const owns = (key: string): boolean => {
        const group = keyGroupOf(key, 128)
        return group >= keyGroups[0] && group <= keyGroups[1]
      }
      if (owns('a')) after.processSecond({ order: 'a' }, 20)
      if (owns('c')) after.process({ id: 'c', cents: 7 }, 21)
      after.watermark(200)
      emitted.push(...after.takeOutput().map(({ value }) => String(value)))
    }
    expect(emitted.toSorted()).toEqual(['a paid: 5', 'b unpaid at 111', 'c paid before it came: 7'])
  })

  it('tells keys of two types apart', async () => {
    const seen = valueState('seen', z.int())
    const harness = await openHarness({
      operator: keyedCoProcessOperator<unknown, unknown, unknown, { seen: typeof seen }, string>({
        state: { seen },
        process: (_value, context) => context.state.seen.update(1),
        processSecond: (_value, context) => context.emit(`${typeof context.key}: ${context.state.seen.get()}`),
      }),
      keySelector: (value: never) => value,
      secondKeySelector: (value: never) => value,
    })
    harness.process(1)
    harness.processSecond('1')
    harness.processSecond(1)
    expect(harness.takeOutput().map(({ value }) => value)).toEqual(['string: undefined', 'number: 1'])
  })
})
