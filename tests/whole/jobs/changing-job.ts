// A counter whose state, names and input differ from start to start, as a job file's do when somebody edits it.

import { appendFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'
import { defineJob, outputTag, valueState, z } from 'millrace'
import { MALFORMED_TAG, jsonLineFileSink, jsonLineFiles, sequenceRecordSchema } from 'millrace/connectors'
import type { MalformedFileRecord } from 'millrace/connectors'
import { keyOf, splits } from './ledger-shape.ts'
import { outlastingSequence } from './outlasting-source.ts'

const counted = sequenceRecordSchema.extend({ key: z.string(), count: z.int() })

const states = {
  original: z.object({ count: z.int(), note: z.string() }),
  'field with a default': z.object({ count: z.int(), note: z.string(), colour: z.string().default('red') }),
  'field of another type': z.object({ count: z.string(), note: z.string() }),
}

const args = z.object({
  perSplit: z.coerce.number(),
  ratePerSecond: z.coerce.number(),
  state: z.enum(['original', 'field with a default', 'field of another type']).default('original'),
  counterUid: z.string().default('counter'),
  sinkUid: z.string().default('entries'),
  maxParallelism: z.coerce.number().default(128),
  /** The graph that a slot builds is not the coordinator's. */
  graphDiffers: z.boolean().default(false),
  malformed: z.enum(['fail', 'skip', 'side output']).default('fail'),
  /** A file that tells who has seen a record beside the ledger: a function and a plain sink, chained to the source. */
  seen: z.string().optional(),
  /** JSON lines to read in place of the sequence. */
  input: z.string().optional(),
})

/** Makes a key's state larger than what is inlined in a manifest. */
const note = 'x'.repeat(2_000)

export default defineJob({ args }, (env, options) => {
  const { perSplit, ratePerSecond, input, malformed } = options
  env.config.checkpointIntervalMs = 40
  env.config.maxParallelism = options.maxParallelism
  env.config.restartStrategy = { type: 'fixed-delay', attempts: 100, delayMs: 100 }
  const lines =
    input === undefined ? undefined : jsonLineFiles({ path: input, schema: sequenceRecordSchema, malformed })
  const numbers =
    lines === undefined
      ? env.source(outlastingSequence({ output: 'out', splits, perSplit, ratePerSecond }), { uid: 'numbers' })
      : env.source(lines, { uid: 'lines' })
  if (malformed === 'side output') {
    numbers
      .sideOutput(outputTag<MalformedFileRecord>(MALFORMED_TAG))
      .sinkTo(jsonLineFileSink({ folder: 'out/malformed' }))
      .uid('malformed')
  }
  const { seen } = options
  if (seen !== undefined) {
    const writer = { open: async () => undefined, prepareCommit: async () => [], close: () => undefined }
    numbers
      .map((record) => (appendFileSync(seen, 'function\n'), record))
      .sinkTo({ name: 'seen', createWriter: () => ({ ...writer, write: () => appendFileSync(seen, 'plain sink\n') }) })
      .uid('seen')
  }
  numbers
    .keyBy(({ split, n }) => keyOf(split, n))
    .process(
      {
        state: { counts: valueState<Record<string, unknown>>('counts', states[options.state]) },
        process: (record, { key, state, emit }) => {
          const count = Number(state.counts.get()?.['count'] ?? 0) + 1
          state.counts.update({ count, note, ...(options.state === 'field with a default' && { colour: 'blue' }) })
          emit({ ...record, key, count })
        },
      },
      { schema: counted },
    )
    .uid(options.graphDiffers && !isMainThread ? 'counter-of-the-slot' : options.counterUid)
    .sinkTo(jsonLineFileSink({ folder: 'out/entries' }))
    .uid(options.sinkUid)
})
