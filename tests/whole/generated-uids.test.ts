// A job that leaves its uids to the engine: it finds its state again while its graph is what it was, and is refused when it is not.

import { describe, expect, it } from 'vitest'
import { defineJob, z } from '../../runtime/api.ts'
import { collected, collectionSink, sequence } from '../../runtime/connectors/api.ts'
import { openMiniCluster } from '../../runtime/testkit/api.ts'
import type { MiniCluster } from '../../runtime/testkit/api.ts'
import { holdingSink } from '../support/holding-sink.ts'

const [splits, perSplit, keys] = [2, 120, 4]

/** What is edited between two starts. */
interface Version {
  autoUid: boolean
  hasFilter: boolean
}

function countingJob(version: Version, results: string) {
  const counted = z.object({ key: z.int(), count: z.int() })
  return defineJob((env) => {
    env.config.autoUid = version.autoUid
    env.config.checkpointIntervalMs = 100
    const numbers = env.source(sequence({ splits, perSplit, ratePerSecond: 300 }))
    const kept = version.hasFilter ? numbers.filter(() => true) : numbers
    kept
      .map(({ n }) => ({ key: n % keys, count: 1 }), { schema: counted })
      .keyBy(({ key }) => key)
      .reduce((left, right) => ({ key: left.key, count: left.count + right.count }))
      .sinkTo(collectionSink(results))
  })
}

async function startedAgain(results: string, parallelism: number) {
  const version: Version = { autoUid: true, hasFilter: false }
  const cluster = await openMiniCluster({ job: countingJob(version, results), parallelism })
  await cluster.start()
  await cluster.advance(200)
  return { version, cluster }
}

const countsOf = (results: string): string[] =>
  collected<{ readonly key: number; readonly count: number }>(results)
    .map(({ key, count }) => `${key}: ${count}`)
    .toSorted()

const total = (splits * perSplit) / keys
const exact = Array.from({ length: keys }, (_, key) =>
  Array.from({ length: total }, (_nothing, index) => `${key}: ${index + 1}`),
)
  .flat()
  .toSorted()

async function finishesExactly(cluster: MiniCluster, results: string): Promise<void> {
  expect(await cluster.untilEnd()).toEqual({ kind: 'finished' })
  expect(countsOf(results)).toEqual(exact)
}

describe('a job with generated uids', () => {
  it('goes on exactly behind a crash, and at another parallelism from its savepoint', async () => {
    const results = 'generated uids, the same graph'
    const { cluster } = await startedAgain(results, 2)
    cluster.killSlot()
    await cluster.until(() => cluster.restarts.length === 1)
    cluster.killCoordinator()
    await cluster.restart()
    await cluster.rescale(3)
    await finishesExactly(cluster, results)
  })

  it('is refused when its graph has changed before its state, naming what would be lost, and goes on when it is put back', async () => {
    const results = 'generated uids, another graph'
    const { cluster, version } = await startedAgain(results, 2)
    await cluster.stop()
    version.hasFilter = true
    await expect(cluster.start()).rejects.toThrow(/^MR-C11 .*uid reduce-[0-9a-f]{8} in savepoint \d+ of .*reduced/)
    version.hasFilter = false
    await cluster.restart()
    await finishesExactly(cluster, results)
  })

  it('is refused without autoUid, before anything runs', async () => {
    const results = 'generated uids, no longer wanted'
    const { cluster, version } = await startedAgain(results, 1)
    await cluster.stop()
    version.autoUid = false
    await expect(cluster.start()).rejects.toThrow(/^MR-J03 [^]*\.uid\('…'\)[^]*autoUid/)
    version.autoUid = true
    await cluster.start()
    await finishesExactly(cluster, results)
  })

  it('is refused at its first start, and not at its first restart, when a sink keeps state without a uid', async () => {
    const version = { autoUid: false }
    const { createCommitter: _, ...sink } = holdingSink({ redistribution: 'split', committed: new Map() })
    const plain: typeof sink = {
      ...sink,
      createWriter: (context) => ({ ...sink.createWriter(context), prepareCommit: () => Promise.resolve([]) }),
    }
    const job = defineJob((env) => {
      env.config.autoUid = version.autoUid
      env
        .source(sequence({ splits, perSplit, ratePerSecond: 300 }), { uid: 'numbers' })
        .map(({ n }) => `${n}`, { schema: z.string() })
        .sinkTo(plain)
    })
    const refused = await openMiniCluster({ job, parallelism: 2 })
    await refused.start()
    const outcome = await refused.untilEnd()
    expect(outcome).toMatchObject({ kind: 'failed' })
    expect(JSON.stringify(outcome)).toMatch(/MR-J69 A sink whose writer keeps state has no uid/)
    expect(refused.restarts).toEqual([])

    version.autoUid = true
    const trusted = await openMiniCluster({ job, parallelism: 2 })
    await trusted.start()
    await trusted.checkpoint()
    trusted.killSlot()
    expect(await trusted.untilEnd()).toEqual({ kind: 'finished' })
    expect(trusted.restarts.length).toBe(1)
  })
})
