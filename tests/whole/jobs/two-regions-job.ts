// Two pipelines that share nothing, in slots of their own: one may fail without the other.

import { defineJob, valueState, z } from 'millrace'
import { jsonLineFileSink, sequenceRecordSchema } from 'millrace/connectors'
import { keyOf, splits } from './ledger-shape.ts'
import { outlastingSequence } from './outlasting-source.ts'

const counted = sequenceRecordSchema.extend({ key: z.string(), count: z.int() })

const args = z.object({ output: z.string(), perSplit: z.coerce.number(), ratePerSecond: z.coerce.number() })

export default defineJob({ args }, (env, { output, perSplit, ratePerSecond }) => {
  env.config.checkpointIntervalMs = 40
  env.config.restartStrategy = { type: 'fixed-delay', attempts: 100, delayMs: 10 }
  for (const region of ['left', 'right']) {
    env
      .source(outlastingSequence({ output, splits, perSplit, ratePerSecond }), { uid: `${region}-numbers` })
      .slotSharingGroup(region)
      .keyBy(({ split, n }) => keyOf(split, n))
      .process(
        {
          state: { count: valueState('count', z.int()) },
          process: (record, { key, state, emit }) => {
            const count = (state.count.get() ?? 0) + 1
            state.count.update(count)
            emit({ ...record, key, count })
          },
        },
        { schema: counted },
      )
      .uid(`${region}-counter`)
      .sinkTo(jsonLineFileSink({ folder: `${output}/${region}/entries` }))
      .uid(`${region}-entries`)
  }
})
