// A job for the mini cluster's own tests: splits (operator state), counts and timers by key, and two sinks with transactions.

import { collectionSink } from '../connectors/collection.ts'
import { ledgerSink } from '../connectors/ledger.ts'
import { checkLedger } from '../connectors/ledger-check.ts'
import type { LedgerReport } from '../connectors/ledger-check.ts'
import { MemoryLedger } from '../connectors/memory-ledger.ts'
import { sequence } from '../connectors/sequence.ts'
import type { SequenceRecord } from '../connectors/sequence.ts'
import { monotonic } from '../connectors/watermarks.ts'
import { defineJob } from '../job/define-job.ts'
import type { Job } from '../job/define-job.ts'
import { outputTag } from '../operators/output-tag.ts'
import { selfDescribing } from '../operators/stream-schema.ts'
import { z } from 'zod'
import { valueState } from '../state/descriptors.ts'

export const splits = 3
export const perSplit = 60
const stepMs = 1_000
const keys = 11

const keyOf = (split: number, n: number): string => `key ${(split * 7 + n) % keys}`

/** What outlives every cluster that runs the job. */
export interface CountingJob {
  readonly job: Job
  readonly ledger: MemoryLedger
  /** The collection of fired timers. */
  readonly timers: string
  judge(): LedgerReport
}

const fired = outputTag('timers', z.string())

let jobs = 0

/** `onRecord` may throw, in any attempt. */
export function countingJob(
  onRecord: (record: SequenceRecord) => void = () => undefined,
  sink: typeof ledgerSink = ledgerSink,
): CountingJob {
  const ledger = new MemoryLedger()
  const timers = `timers of counting job ${++jobs}`
  const job = defineJob((env) => {
    env.config.checkpointIntervalMs = 100
    env.config.restartStrategy = { type: 'fixed-delay', attempts: 5, delayMs: 10 }
    const numbers = env.source(sequence({ splits, perSplit, stepMs, ratePerSecond: 200 }), {
      uid: 'numbers',
      watermarks: monotonic(),
    })
    const counted = numbers
      .keyBy(({ split, n }) => keyOf(split, n))
      .process(
        {
          state: { count: valueState('count', z.int()) },
          process(record, { key, state: { count }, timers: keyTimers, timestamp = 0, emit }) {
            onRecord(record)
            count.update((count.get() ?? 0) + 1)
            keyTimers.register('event', timestamp + 10 * stepMs)
            emit({ ...record, key, count: count.get()! })
          },
          onTimer({ timestampMs }, { key, emitTo }) {
            emitTo(fired, `${key} at ${timestampMs}`)
          },
        },
        { schema: selfDescribing<{ split: number; n: number; magic: number; key: string; count: number }>() },
      )
      .uid('counts')
    counted.sinkTo(sink(ledger)).uid('ledger')
    counted.sideOutput(fired).sinkTo(collectionSink(timers)).uid('timers')
  })
  return {
    job,
    ledger,
    timers,
    judge: () => checkLedger(ledger.entries, { splits, perSplit, keyOf }),
  }
}

/** Every timer that a run fires, sorted: one a key and moment. */
export function expectedTimers(): string[] {
  const expected = new Set<string>()
  for (let split = 0; split < splits; split++)
    for (let n = 0; n < perSplit; n++) expected.add(`${keyOf(split, n)} at ${n * stepMs + 10 * stepMs}`)
  return [...expected].toSorted()
}
