// The ledger as a job of real processes: two numbered splits, a counter per key, windows per split, two two-phase file sinks.

import { defineJob, monotonic, tumblingWindows, valueState, z } from 'millrace'
import { checkMagic, jsonLineFileSink, sequenceRecordSchema } from 'millrace/connectors'
import { faultsIn, throwingSink } from './planned-faults.ts'
import { keyOf, splits, windowRecords } from './ledger-shape.ts'
import { outlastingSequence } from './outlasting-source.ts'

const counted = sequenceRecordSchema.extend({ key: z.string(), count: z.int() })
const windowTotal = z.object({ split: z.int(), startMs: z.int(), records: z.int(), sum: z.int() })

const args = z.object({
  output: z.string(),
  perSplit: z.coerce.number(),
  ratePerSecond: z.coerce.number(),
  /** A folder for marks of the faults that were met already; without it there are none. */
  faults: z.string().optional(),
})

export default defineJob({ args }, (env, { output, perSplit, ratePerSecond, faults }) => {
  env.config.checkpointIntervalMs = 40
  env.config.restartStrategy = { type: 'fixed-delay', attempts: 100, delayMs: 10 }
  env.config.parallelism = 2
  const fault = faultsIn(faults)

  const numbers = env.source(outlastingSequence({ output, splits, perSplit, ratePerSecond }), {
    uid: 'numbers',
    watermarks: monotonic(({ n }) => n * 1_000),
  })

  numbers
    .map(
      (record) => {
        checkMagic(record)
        if (record.split === 0) fault.atRecord(record.n)
        return record
      },
      { schema: sequenceRecordSchema },
    )
    .uid('checked')
    .keyBy(({ split, n }) => keyOf(split, n))
    .process(
      {
        state: { count: valueState('count', z.int()) },
        open: () => fault.atOpen(),
        process: (record, { key, state, emit }) => {
          const count = (state.count.get() ?? 0) + 1
          state.count.update(count)
          emit({ ...record, key, count })
        },
        close: () => fault.atClose(),
      },
      { schema: counted },
    )
    .uid('counter')
    .sinkTo(throwingSink(jsonLineFileSink({ folder: `${output}/${env.job}/entries` }), fault))
    .uid('entries')

  numbers
    .keyBy(({ split }) => split)
    .window(tumblingWindows({ sizeMs: windowRecords * 1_000 }))
    .aggregate(
      {
        create: () => ({ records: 0, sum: 0 }),
        add: (total, { n }) => ({ records: total.records + 1, sum: total.sum + n }),
        result: (total) => total,
      },
      {
        accumulator: z.object({ records: z.int(), sum: z.int() }),
        schema: windowTotal,
        process: (split, { startMs }, total) => ({ split, startMs, ...total }),
      },
    )
    .uid('totals')
    .sinkTo(jsonLineFileSink({ folder: `${output}/${env.job}/windows` }))
    .uid('windows')
})
