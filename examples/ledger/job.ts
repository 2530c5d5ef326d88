// Numbered records, a counter per key, and the ledger: a server of its own that judges from outside whether the job was exact.
// Kill whatever you like meanwhile.
//
//   node e2e/harness/ledger-server.ts --folder out/ledger --port 7070
//   millrace run examples/ledger/job.ts --arg url=http://127.0.0.1:7070 --arg perSplit=100000
//   curl 'http://127.0.0.1:7070/report?splits=4&perSplit=100000&keys=1000'

import { defineJob, monotonic, valueState, z } from 'millrace'
import { checkMagic, httpLedgerSink, plainHttpLedgerSink, sequence, sequenceRecordSchema } from 'millrace/connectors'

const counted = sequenceRecordSchema.extend({ key: z.string(), count: z.int() })

const args = z.object({
  /** Of the ledger server. */
  url: z.url({ protocol: /^http$/ }),
  /** Jobs that are judged apart write to books of their own. */
  book: z.string().default('main'),
  splits: z.int().min(1).default(4),
  /** Records of each split; default: endless. */
  perSplit: z.int().min(0).optional(),
  /** Over all splits; default: as fast as they are taken. */
  ratePerSecond: z.number().positive().optional(),
  keys: z.int().min(1).default(1_000),
  /** two-phase: exact, visible at commit. plain: at least once, visible at once. */
  sink: z.enum(['two-phase', 'plain']).default('two-phase'),
  /** What each key holds in state besides its count, bytes. */
  stateBytes: z.int().min(0).default(0),
  /** From one checkpoint to the next; default: what the command says, else 10 s. */
  checkpointMs: z.int().min(1).optional(),
})

export default defineJob({ args }, (env, options) => {
  const { url, book, splits, perSplit, ratePerSecond, keys, sink, stateBytes, checkpointMs } = options
  if (checkpointMs !== undefined) env.config.checkpointIntervalMs = checkpointMs
  const filling = 'x'.repeat(stateBytes)

  env
    .source(sequence({ splits, perSplit, ...(ratePerSecond === undefined ? {} : { ratePerSecond }) }), {
      uid: 'numbers',
      watermarks: monotonic(({ n }) => n * 1_000),
    })
    .map(
      (record) => {
        checkMagic(record)
        return record
      },
      { schema: sequenceRecordSchema },
    )
    .uid('checked')
    // The ledger server knows this formula, and so how many records each key must have.
    .keyBy(({ split, n }) => `key ${(n * 7_919 + split * 3) % keys}`)
    .process(
      {
        state: { counter: valueState('counter', z.object({ count: z.int(), filling: z.string() })) },
        process(record, { key, state, emit }) {
          const count = (state.counter.get()?.count ?? 0) + 1
          state.counter.update({ count, filling })
          emit({ ...record, key, count })
        },
      },
      { schema: counted },
    )
    .uid('counter')
    .sinkTo(sink === 'plain' ? plainHttpLedgerSink({ url, book }) : httpLedgerSink({ url, book }))
    .uid('ledger')
})
