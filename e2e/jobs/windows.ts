// Windows of event time per split: the ledger gets one entry a window, numbered as the windows are, and damaged on purpose when the
// window's records are not exactly those that belong to it.

import { defineJob, monotonic, tumblingWindows, z } from 'millrace'
import { LEDGER_MAGIC } from 'millrace/connectors'
import { ledgerArgs, numbersOf, sinkOf } from './shape.ts'

const total = z.object({ records: z.int(), sum: z.int() })
const entry = z.object({ split: z.int(), n: z.int(), magic: z.int() })

const args = ledgerArgs.extend({
  /** Records of one split in a window. */
  windowRecords: z.int().min(1).default(100),
})

export default defineJob({ args }, (env, options) => {
  const { windowRecords, perSplit, checkpointMs, book } = options
  if (checkpointMs !== undefined) env.config.checkpointIntervalMs = checkpointMs
  const sizeMs = windowRecords * 1_000

  env
    .source(numbersOf(options), { uid: 'numbers', watermarks: monotonic(({ n }) => n * 1_000) })
    .keyBy(({ split }) => split)
    .window(tumblingWindows({ sizeMs }))
    .aggregate(
      {
        create: () => ({ records: 0, sum: 0 }),
        add: ({ records, sum }, { n }) => ({ records: records + 1, sum: sum + n }),
        result: (result) => result,
      },
      {
        accumulator: total,
        schema: entry,
        process: (split, { startMs }, { records, sum }) => {
          const first = startMs / 1_000
          const expected = Math.min(windowRecords, (perSplit ?? Number.POSITIVE_INFINITY) - first)
          const isRight = records === expected && sum === expected * first + (expected * (expected - 1)) / 2
          return { split, n: startMs / sizeMs, magic: isRight ? LEDGER_MAGIC : 0 }
        },
      },
    )
    .uid('windows')
    .sinkTo(sinkOf(options, book))
    .uid('ledger')
})
