// Operator state that a user's own sink keeps, through a whole job at other parallelisms: union state goes whole to everybody, split state
// is dealt out.

import { describe, expect, it } from 'vitest'
import { defineJob, z } from '../../runtime/api.ts'
import { sequence } from '../../runtime/connectors/api.ts'
import { openMiniCluster } from '../../runtime/testkit/api.ts'
import { holdingSink } from '../support/holding-sink.ts'
import type { Committed } from '../support/holding-sink.ts'

const [splits, perSplit] = [3, 60]
const redistributions = ['union', 'split'] as const

function holdingJob(committed: Committed, restored: string[][][]) {
  return defineJob((env) => {
    env.config.checkpointIntervalMs = 50
    const texts = env
      .source(sequence({ splits, perSplit, ratePerSecond: 300 }), { uid: 'numbers' })
      .map(({ split, n }) => `${split}.${n}`, { schema: z.string() })
    for (const [index, redistribution] of redistributions.entries()) {
      const onRestored = (items: readonly string[]): void => void (restored[index] ??= []).push([...items])
      texts
        .rebalance()
        .map((text) => `${redistribution} ${text}`, { schema: z.string() })
        .sinkTo(holdingSink({ redistribution, committed, onRestored }))
        .uid(redistribution)
    }
  })
}

describe('operator state of a sink', () => {
  it.each([
    { from: 2, to: 3 },
    { from: 3, to: 1 },
    { from: 1, to: 2 },
    { from: 2, to: 2 },
  ])('of each redistribution is exact from parallelism $from to $to, also behind a crash', async ({ from, to }) => {
    const committed: Committed = new Map()
    const restored: string[][][] = []
    const cluster = await openMiniCluster({ job: holdingJob(committed, restored), parallelism: from })
    await cluster.start()
    await cluster.advance(150)
    restored.length = 0
    await cluster.rescale(to)
    const [unions, dealt] = restored
    expect(unions!.length).toBe(to)
    expect(unions![0]!.length).toBeGreaterThan(10)
    // Whole, and in one order.
    for (const items of unions!) expect(items).toEqual(unions![0])
    expect(dealt!.flat().map(withoutKind).toSorted()).toEqual(unions![0]!.map(withoutKind).toSorted())
    await cluster.advance(100)
    cluster.killSlot()
    await cluster.until(() => cluster.restarts.length === 1)
    expect(await cluster.untilEnd()).toEqual({ kind: 'finished' })

    const given = [...committed.values()].flat().toSorted()
    const all = Array.from({ length: splits }, (_, split) =>
      Array.from({ length: perSplit }, (_, n) => `${split}.${n}`),
    ).flat()
    const expected = redistributions.flatMap((kind) => all.map((text) => `${kind} ${text}`))
    expect(given).toEqual(expected.toSorted())
  })
})

const withoutKind = (text: string): string => text.slice(text.indexOf(' ') + 1)
