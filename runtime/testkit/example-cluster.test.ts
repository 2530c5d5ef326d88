// As it stands in docs/testing.md.

import { expect, it } from 'vitest'
import { defineJob, valueState, z } from 'millrace'
import { MemoryLedger, checkLedger, ledgerSink, sequence } from 'millrace/connectors'
import { openMiniCluster } from 'millrace/testkit'

const [splits, perSplit, keys] = [3, 100, 5]
const keyOf = (split: number, n: number): string => `key ${(split + n) % keys}`
const entry = z.object({ split: z.int(), n: z.int(), magic: z.int(), key: z.string(), count: z.int() })

/** Counts records by key, into a ledger that outlives the job. */
const countingJob = (ledger: MemoryLedger) =>
  defineJob((env) => {
    env
      .source(sequence({ splits, perSplit, ratePerSecond: 300 }), { uid: 'numbers' })
      .keyBy(({ split, n }) => keyOf(split, n))
      .process(
        {
          state: { count: valueState('count', z.int()) },
          process(record, { key, state: { count }, emit }) {
            count.update((count.get() ?? 0) + 1)
            emit({ ...record, key, count: count.get()! })
          },
        },
        { schema: entry },
      )
      .uid('counts')
      .sinkTo(ledgerSink(ledger))
      .uid('ledger')
  })

it('counts exactly, whatever is killed, at another parallelism and from a savepoint', async () => {
  const ledger = new MemoryLedger()
  const job = countingJob(ledger)
  const settings = { checkpointIntervalMs: 200 }

  const first = await openMiniCluster({ job, parallelism: 2, settings })
  await first.start()
  await first.checkpoint()
  await first.advance(50)
  // What this slot did since the checkpoint is done again.
  first.killSlot()
  await first.until(() => first.restarts.length === 1)
  // The next checkpoint completes, and nobody is left to commit it.
  const crash = first.killAt('coordinator.swap.after')
  await first.until(() => crash.happened)
  await first.restart()
  await first.rescale(3)
  await first.advance(100)
  const savepoint = await first.stop()

  const second = await openMiniCluster({ job, parallelism: 1, settings })
  await second.start({ from: savepoint })
  expect(await second.untilEnd()).toEqual({ kind: 'finished' })
  expect(checkLedger(ledger.entries, { splits, perSplit, keyOf })).toMatchObject({ exact: true, present: 300 })
})
