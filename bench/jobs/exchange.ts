// Numbered records over one keyed exchange into a counter per key, and nothing of it put out: what channels cost.

import { defineJob, monotonic, valueState, z } from 'millrace'
import { sequence, sequenceRecordSchema } from 'millrace/connectors'

export default defineJob({ args: z.object({ keys: z.int().min(1).default(10_000) }) }, (env, { keys }) => {
  // In the distributed job it is off unless asked for.
  env.config.freezeRecords = false
  env
    .source(sequence({ splits: 4 }), { uid: 'numbers', watermarks: monotonic(({ n }) => n) })
    .keyBy(({ split, n }) => (n * 7_919 + split) % keys)
    .process(
      {
        state: { count: valueState('count', z.int()) },
        process: (_record, { state }) => state.count.update((state.count.get() ?? 0) + 1),
      },
      { schema: sequenceRecordSchema },
    )
    .uid('counter')
    .sinkTo({
      name: 'nowhere',
      createWriter: () => ({
        open: () => Promise.resolve(),
        write: () => undefined,
        prepareCommit: () => Promise.resolve([]),
        close: () => undefined,
      }),
    })
    .uid('nowhere')
})
