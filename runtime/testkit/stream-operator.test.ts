import { describe, expect, it } from 'vitest'
import { mapState, outputTag, sessionWindows, tumblingWindows, valueState, z } from 'millrace'
import { openHarness, operatorOf } from 'millrace/testkit'
import type { OperatorHarness } from 'millrace/testkit'

const order = z.object({ customer: z.string(), cents: z.int() })
type Order = z.infer<typeof order>

const valuesOf = (harness: OperatorHarness) => harness.takeOutput().map(({ value }) => value)

describe('an operator of a stream in a harness', () => {
  const late = outputTag('late', order)
  const sums = operatorOf<Order>(
    (orders) =>
      orders
        .keyBy(({ customer }) => customer)
        .window(tumblingWindows({ sizeMs: 60_000 }))
        .lateTo(late)
        .reduce((left, right) => ({ ...left, cents: left.cents + right.cents })),
    { schema: order },
  )

  it('is a window that fires when time passes its end, with its late records aside', async () => {
    const harness = await openHarness(sums)
    harness.process({ customer: 'ada', cents: 1 }, 10_000)
    harness.process({ customer: 'ada', cents: 2 }, 20_000)
    expect(harness.takeOutput()).toEqual([])
    harness.watermark(60_000)
    expect(harness.takeOutput()).toEqual([{ value: { customer: 'ada', cents: 3 }, timestamp: 59_999 }])
    harness.process({ customer: 'bob', cents: 9 }, 1)
    expect(harness.sideOutput('late')).toEqual([{ value: { customer: 'bob', cents: 9 }, timestamp: 1 }])
  })

  it('keeps open windows over a restore in two subtasks, each its own keys', async () => {
    const first = await openHarness(sums)
    const customers = Array.from({ length: 20 }, (_, n) => `customer ${n}`)
    for (const customer of customers) first.process({ customer, cents: 1 }, 0)
    const restored = [await first.snapshot()]
    const halves = [
      await openHarness({ ...sums, restored, keyGroups: [0, 63] }),
      await openHarness({ ...sums, restored, keyGroups: [64, 127] }),
    ]
    const seen = halves.map((half) => {
      half.drain()
      return valuesOf(half).map((value) => (value as Order).customer)
    })
    expect(seen.every((half) => half.length > 0)).toBe(true)
    expect(seen.flat().toSorted()).toEqual(customers.toSorted())
    // And together again: what two made, one restores.
    const parts = [await halves[0]!.snapshot(), await halves[1]!.snapshot()]
    const whole = await openHarness({ ...sums, restored: parts })
    whole.drain()
    expect(valuesOf(whole), 'they have fired').toEqual([])
  })

  it('is a session of processing time that ends when the clock says so', async () => {
    const counts = operatorOf<Order>((orders) =>
      orders
        .keyBy(({ customer }) => customer)
        .window(sessionWindows({ gapMs: 1_000, time: 'processing' }))
        .process((key, _, records) => [`${key}: ${records.length}`]),
    )
    const harness = await openHarness(counts)
    harness.process({ customer: 'ada', cents: 1 })
    await harness.advance(900)
    harness.process({ customer: 'ada', cents: 2 })
    await harness.advance(999)
    expect(valuesOf(harness)).toEqual([])
    await harness.advance(1)
    expect(valuesOf(harness)).toEqual(['ada: 2'])
  })

  it('is an asynchronous function whose records in flight are in the snapshot', async () => {
    const answers: ((text: string) => void)[] = []
    const looked = operatorOf<string>(
      (names) =>
        names.mapAsync((name) => new Promise<string>((resolve) => answers.push((text) => resolve(`${name} ${text}`))), {
          timeoutMs: 5_000,
          schema: z.string(),
        }),
      { schema: z.string() },
    )
    const first = await openHarness(looked)
    first.process('ada')
    first.process('bob')
    answers[0]!('lives')
    await first.settle()
    expect(valuesOf(first)).toEqual(['ada lives'])
    const second = await openHarness({ ...looked, restored: [await first.snapshot()] })
    await second.settle()
    expect(answers).toHaveLength(3)
    answers[2]!('too')
    await second.settle()
    expect(valuesOf(second)).toEqual(['bob too'])
  })

  it('has two inputs with the same keys, or the second for everybody', async () => {
    const matched = operatorOf<Order, string>((orders, names) =>
      orders
        .keyBy(({ customer }) => customer)
        .connect(names.keyBy((name) => name))
        .process({
          state: { known: valueState('known', z.boolean()) },
          process: ({ customer, cents }, { state, emit }) => emit(`${customer} ${cents} ${state.known.get() === true}`),
          processSecond: (_, { state }) => state.known.update(true),
        }),
    )
    const harness = await openHarness(matched)
    harness.processSecond('ada')
    harness.process({ customer: 'ada', cents: 1 })
    harness.process({ customer: 'bob', cents: 2 })
    expect(valuesOf(harness)).toEqual(['ada 1 true', 'bob 2 false'])

    const rules = { limits: mapState('limits', { key: 'string', value: z.int() }) }
    const judged = operatorOf<Order, number>((orders, limits) =>
      orders.connect(limits.broadcast(rules)).process({
        process: ({ cents }, { broadcastState, emit }) => emit(cents > (broadcastState.limits.get('all') ?? 0)),
        processBroadcast: (limit, { broadcastState }) => broadcastState.limits.put('all', limit),
      }),
    )
    const first = await openHarness(judged)
    first.processSecond(5)
    const second = await openHarness({ ...judged, restored: [await first.snapshot()] })
    second.process({ customer: 'ada', cents: 5 })
    second.process({ customer: 'ada', cents: 6 })
    expect(valuesOf(second)).toEqual([false, true])
  })

  it('forgets state whose time is over when the clock says so', async () => {
    const seen = operatorOf<string>((names) =>
      names
        .keyBy((name) => name)
        .process({
          state: { seen: valueState('seen', z.boolean(), { ttl: { ms: 1_000 } }) },
          process(name, { state, emit }) {
            emit(`${name} ${state.seen.get() === true}`)
            state.seen.update(true)
          },
        }),
    )
    const first = await openHarness(seen)
    first.process('ada')
    await first.advance(999)
    first.process('ada')
    await first.advance(1_000)
    first.process('ada')
    expect(valuesOf(first)).toEqual(['ada false', 'ada true', 'ada false'])
  })

  it('is one operator: of more, and of none that fits, it is said', () => {
    expect(() => operatorOf<number>((numbers) => numbers.map((n) => n).filter((n) => n > 0))).toThrow(
      /MR-K04.*exactly one. There are 2: .*, tested/,
    )
  })
})
