// As it stands in docs/testing.md.

import { expect, it } from 'vitest'
import { tumblingWindows } from 'millrace'
import { openHarness, operatorOf } from 'millrace/testkit'

interface Order {
  readonly customer: string
  readonly cents: number
}

const sums = operatorOf<Order>((orders) =>
  orders
    .keyBy(({ customer }) => customer)
    .window(tumblingWindows({ sizeMs: 60_000 }))
    .reduce((left, right) => ({ ...left, cents: left.cents + right.cents })),
)

it('sums the orders of a minute, also when its keys are dealt out anew', async () => {
  const before = await openHarness(sums)
  before.process({ customer: 'ada', cents: 100 }, 10_000)
  before.process({ customer: 'bob', cents: 300 }, 20_000)
  const restored = [await before.snapshot()]
  // Of 128 key groups the first subtask of two has one half, the second the other.
  const lower = await openHarness({ ...sums, restored, keyGroups: [0, 63] })
  const upper = await openHarness({ ...sums, restored, keyGroups: [64, 127] })
  for (const half of [lower, upper]) half.watermark(60_000)
  const sumsOfAll = [...lower.takeOutput(), ...upper.takeOutput()].map(({ value }) => value)
  expect(sumsOfAll).toHaveLength(2)
  expect(sumsOfAll).toContainEqual({ customer: 'ada', cents: 100 })
})
