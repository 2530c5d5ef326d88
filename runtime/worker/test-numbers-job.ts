// A job for tests of slots: one chained subtask that reads a numbered source of five records.

import type { Sink } from '../connectors/contract.ts'
import { sequence } from '../connectors/sequence.ts'
import type { SequenceRecord } from '../connectors/sequence.ts'
import { monotonic } from '../connectors/watermarks.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import { defineJob } from '../job/define-job.ts'

/** `read`: the numbers that its sink was given, each told to `onRecord` too. */
export function numbersJob(onRecord: (n: number) => void = () => undefined): {
  readonly graph: JobGraph
  readonly read: readonly number[]
} {
  const read: number[] = []
  const sink: Sink<SequenceRecord> = {
    name: 'read',
    createWriter: () => ({
      open: async () => undefined,
      write: ({ n }) => {
        read.push(n)
        onRecord(n)
      },
      prepareCommit: async () => [],
      close: () => undefined,
    }),
  }
  const job = defineJob((env) => {
    env
      .source(sequence({ splits: 1, perSplit: 5 }), { uid: 'numbers', watermarks: monotonic() })
      .sinkTo(sink)
      .uid('read')
  })
  return { graph: buildGraph(job, { name: 'slot', parallelism: 1 }), read }
}
