// A job in a file of its own, for the mini cluster's tests.

import { defineJob, valueState, z } from 'millrace'
import { jsonLineFileSink, jsonLineFiles } from 'millrace/connectors'

const counted = z.object({ word: z.string(), count: z.int() })

export default defineJob({ args: z.object({ input: z.string() }) }, (env, { input }) => {
  env
    .source(jsonLineFiles({ path: input, schema: z.object({ word: z.string() }) }), { uid: 'words' })
    .keyBy(({ word }) => word)
    .process(
      {
        state: { count: valueState('count', z.int()) },
        process({ word }, { state: { count }, emit }) {
          count.update((count.get() ?? 0) + 1)
          emit({ word, count: count.get()! })
        },
      },
      { schema: counted },
    )
    .uid('counts')
    .sinkTo(jsonLineFileSink({ folder: `out/${env.job}` }))
    .uid('files')
})
