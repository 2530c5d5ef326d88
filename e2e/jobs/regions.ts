// Two regions that share nothing, each in slots of its own, with the books left and right: one may restart without the other.

import { defineJob } from 'millrace'
import { counted, ledgerArgs, sinkOf } from './shape.ts'

export default defineJob({ args: ledgerArgs }, (env, args) => {
  if (args.checkpointMs !== undefined) env.config.checkpointIntervalMs = args.checkpointMs
  for (const region of ['left', 'right']) {
    counted(env, args, { prefix: `${region}-`, group: region })
      .sinkTo(sinkOf(args, region))
      .uid(`${region}-ledger`)
  }
})
