// What a job that was changed between two starts finds in the state of its operators, and times to live as a job sees them.

import { describe, expect, it } from 'vitest'
import { z, type ZodType } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import { mapState, valueState } from '../state/descriptors.ts'
import type { TtlOptions } from '../state/descriptors.ts'
import type { StreamOperator } from './contract.ts'
import { openHarness } from './harness.ts'
import type { Emitted } from './harness.ts'
import { KeyedProcessOperator } from './keyed-process.ts'
import type { AnyKeyedProcessFunction, KeyedProcessFunction } from './keyed-process.ts'
import { RollingAggregateOperator, rollingAggregateState } from './rolling-aggregate.ts'
import { RollingReduceOperator, rollingReduceState } from './rolling-reduce.ts'
import { tumblingWindows } from './window-assigner.ts'
import { aggregateContents } from './window-contents.ts'
import { WindowOperator } from './window-operator.ts'

interface Event {
  readonly key: string
  readonly n: number
}

const keySelector = ({ key }: Event): string => key
const valuesOf = (emitted: readonly Emitted[]): unknown[] => emitted.map(({ value }) => value)

const then = z.object({ count: z.int(), gone: z.string() })
const today = z.object({ count: z.number(), unit: z.string().default('km') })
const other = z.object({ count: z.string() })

/** Sums up into `count`, and makes of the accumulator what it is given for. */
const summing = {
  create: () => ({ count: 0, gone: 'gone' }),
  add: (accumulator: unknown, value: unknown) => {
    const held = accumulator as { count: number }
    return { ...held, count: held.count + (value as Event).n }
  },
  result: (accumulator: unknown) => ({ ...(accumulator as object) }),
}

const operators: Readonly<Record<string, (schema: ZodType) => StreamOperator>> = {
  'a process function': (schema) => {
    const state = { total: valueState<unknown>('total', schema) }
    const process: KeyedProcessFunction<string, Event, typeof state, unknown> = {
      state,
      process(value, { state: { total }, emit }) {
        total.update(summing.add(total.get() ?? summing.create(), value))
        emit(total.get())
      },
    }
    return new KeyedProcessOperator(process as unknown as AnyKeyedProcessFunction)
  },
  'a rolling reduce': (schema) =>
    new RollingReduceOperator(
      (left, right) => ({ ...(left as object), count: (left as { count: number }).count + (right as Event).n }),
      rollingReduceState(typeInfoOf<unknown>('reduced', schema)),
    ),
  'a rolling aggregate': (schema) =>
    new RollingAggregateOperator(rollingAggregateState(summing, typeInfoOf<unknown>('accumulator', schema))),
  'a window': (schema) =>
    new WindowOperator({
      assigner: tumblingWindows({ sizeMs: 10 }),
      contents: aggregateContents(summing, typeInfoOf<unknown>('accumulator', schema), undefined),
      allowedLatenessMs: 0,
      lateTag: undefined,
    }),
}

describe.each(Object.entries(operators))('the state of %s', (_name, create) => {
  const first = { key: 'a', n: 3, count: 3, gone: 'x' }
  const stored = async () => {
    const harness = await openHarness({ operator: create(then), keySelector })
    harness.process(first, 1)
    return harness.snapshot()
  }

  it('becomes what the schema of today makes of it, and goes on', async () => {
    const snapshot = await stored()
    const harness = await openHarness({ operator: create(today), keySelector, restored: [snapshot] })
    harness.process({ key: 'a', n: 0.5 }, 2)
    harness.watermark(100)
    expect(valuesOf(harness.takeOutput())).toEqual([{ count: 3.5, unit: 'km' }])
  })

  it('that cannot become the state of today is refused when the operator opens', async () => {
    const restored = [await stored()]
    await expect(openHarness({ operator: create(other), keySelector, restored })).rejects.toThrow(
      /MR-T02.*Operator 'tested', state '\w+': field count was int and is string today\./,
    )
  })
})

describe('a time to live in a process function', () => {
  /** Emits what it had seen before of the key, then how often each page. */
  const visits = (ttl: TtlOptions | undefined): StreamOperator => {
    const options = ttl === undefined ? {} : { ttl }
    const state = {
      last: valueState('last', z.int(), options),
      pages: mapState('pages', { key: 'number', value: z.int(), ...options }),
    }
    const process: KeyedProcessFunction<string, Event, typeof state, unknown> = {
      state,
      process({ n }, { state: { last, pages }, emit }) {
        emit([last.get(), pages.size])
        last.update(n)
        pages.put(n, 1)
      },
    }
    return new KeyedProcessOperator(process as unknown as AnyKeyedProcessFunction)
  }
  const event = (n: number): Event => ({ key: 'a', n })

  it('goes by the wall clock of the environment, also over a restore', async () => {
    const ttl = { ms: 1000 }
    const first = await openHarness({ operator: visits(ttl), keySelector })
    first.process(event(1))
    await first.advance(600)
    first.process(event(2))
    const { environment } = first
    const second = await openHarness({
      operator: visits(ttl),
      keySelector,
      environment,
      restored: [await first.snapshot()],
    })
    await second.advance(400)
    second.process(event(3))
    await second.advance(1000)
    second.process(event(4))
    expect(valuesOf(first.takeOutput())).toEqual([
      [undefined, 0],
      [1, 1],
    ])
    // After 1,000 ms page 1 is gone; after 2,000 all is.
    expect(valuesOf(second.takeOutput())).toEqual([
      [2, 1],
      [undefined, 0],
    ])
  })

  it('that a job adds to its state begins at the restore', async () => {
    const first = await openHarness({ operator: visits(undefined), keySelector })
    first.process(event(1))
    await first.advance(5000)
    const { environment } = first
    const restored = [await first.snapshot()]
    const second = await openHarness({ operator: visits({ ms: 1000 }), keySelector, environment, restored })
    await second.advance(999)
    second.process(event(2))
    await second.advance(1)
    second.process(event(3))
    expect(valuesOf(second.takeOutput())).toEqual([
      [1, 1],
      [2, 1],
    ])
  })
})
