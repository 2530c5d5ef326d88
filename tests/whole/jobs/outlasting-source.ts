// A source that outlasts whatever a test does to its job, on any machine: it is paced, and its last records do not come before the test asks.

import { existsSync } from 'node:fs'
import { sequence } from 'millrace/connectors'
import type { NumberedSource, SequenceRecord } from 'millrace/connectors'
import { fullSpeedFile } from './ledger-shape.ts'

type Reader = ReturnType<NumberedSource<SequenceRecord>['createReader']>
type Context = Parameters<NumberedSource<SequenceRecord>['createReader']>[0]

export interface OutlastingOptions {
  /** The full-speed file lies beside it. */
  readonly output: string
  readonly splits: number
  readonly perSplit: number
  /** Over all splits, until the full-speed file is there. */
  readonly ratePerSecond: number
}

const lookMs = 20

export function outlastingSequence({
  output,
  splits,
  perSplit,
  ratePerSecond,
}: OutlastingOptions): NumberedSource<SequenceRecord> {
  const source = sequence({ splits, perSplit })
  const file = fullSpeedFile(output)
  const pace = { isOver: () => existsSync(file), splits, perSplit, ratePerSecond }
  return { ...source, createReader: (context) => paced(source.createReader(context), context, pace) }
}

interface Pace {
  readonly isOver: () => boolean
  readonly splits: number
  readonly perSplit: number
  readonly ratePerSecond: number
}

function paced(reader: Reader, context: Context, pace: Pace): Reader {
  const { clock } = context.environment
  let isOver = false
  let lookAtMs = 0
  let dueMs = clock.nowMs()
  let isClosed = false
  let isWaiting = false
  const wakeIn = (delayMs: number): void => {
    if (isWaiting) return
    isWaiting = true
    clock.timer(delayMs, () => {
      isWaiting = false
      if (!isClosed) context.wake()
    })
  }
  /** How long the next record has to wait, ms; at most until the next look. */
  const waitMs = (): number => {
    const nowMs = clock.nowMs()
    if (nowMs >= lookAtMs) {
      isOver = pace.isOver()
      lookAtMs = nowMs + lookMs
    }
    if (isOver) return 0
    // A checkpoint id is nothing that this snapshot depends on.
    const owned = reader.snapshot(0 as Parameters<Reader['snapshot']>[0])
    if (owned.some(({ next }) => next >= pace.perSplit - 1)) return lookMs
    if (dueMs > nowMs) return Math.min(dueMs - nowMs, lookMs)
    const intervalMs = (1_000 * pace.splits) / (pace.ratePerSecond * Math.max(1, owned.length))
    // A pause of the process is made up for in part only, so that a busy machine does not end the job either.
    dueMs = Math.max(dueMs + intervalMs, nowMs - lookMs)
    return 0
  }
  return {
    start: () => reader.start(),
    addSplits: (splits) => reader.addSplits(splits),
    noMoreSplits: () => reader.noMoreSplits(),
    poll(output) {
      const delayMs = waitMs()
      if (delayMs === 0) return reader.poll(output)
      wakeIn(delayMs)
      return 'nothing'
    },
    snapshot: (checkpoint) => reader.snapshot(checkpoint),
    ownedSplits: () => reader.ownedSplits(),
    hasPending: (split) => reader.hasPending(split),
    close() {
      isClosed = true
      return reader.close()
    },
  }
}
