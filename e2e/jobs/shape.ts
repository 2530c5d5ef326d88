// What the jobs of the scenarios have in common.

import { valueState, z } from 'millrace'
import type { JobEnvironment, OperatorStream } from 'millrace'
import { checkMagic, httpLedgerSink, plainHttpLedgerSink, sequence, sequenceRecordSchema } from 'millrace/connectors'

export const ledgerArgs = z.object({
  /** Of the ledger server. */
  url: z.string(),
  book: z.string().default('main'),
  splits: z.int().min(1).default(4),
  /** Records of each split; default: endless. */
  perSplit: z.int().min(0).optional(),
  /** Over all splits; default: as fast as they are taken. */
  ratePerSecond: z.number().positive().optional(),
  keys: z.int().min(1).default(1_000),
  sink: z.enum(['two-phase', 'plain']).default('two-phase'),
  checkpointMs: z.int().min(1).optional(),
})
export type LedgerArgs = z.infer<typeof ledgerArgs>

const countedRecord = sequenceRecordSchema.extend({ key: z.string(), count: z.int() })
export type CountedRecord = z.infer<typeof countedRecord>

export function numbersOf({ splits, perSplit, ratePerSecond }: LedgerArgs) {
  return sequence({ splits, perSplit, ...(ratePerSecond === undefined ? {} : { ratePerSecond }) })
}

export function sinkOf({ url, sink }: LedgerArgs, book: string) {
  return sink === 'plain' ? plainHttpLedgerSink({ url, book }) : httpLedgerSink({ url, book })
}

export interface CountOptions {
  /** Before the uid of each operator. */
  readonly prefix: string
  /** A slot-sharing group of its own. */
  readonly group?: string
  readonly open?: () => void
  /** Before each record is counted; may throw. */
  readonly each?: () => void
}

/** source → magic number checked → counter per key. */
export function counted(
  env: JobEnvironment,
  args: LedgerArgs,
  { prefix, group, open, each }: CountOptions,
): OperatorStream<CountedRecord> {
  const numbers = env.source(numbersOf(args), { uid: `${prefix}numbers` })
  return (group === undefined ? numbers : numbers.slotSharingGroup(group))
    .map(
      (record) => {
        checkMagic(record)
        return record
      },
      { schema: sequenceRecordSchema },
    )
    .uid(`${prefix}checked`)
    .keyBy(({ split, n }) => `key ${(n * 7_919 + split * 3) % args.keys}`)
    .process(
      {
        state: { count: valueState('count', z.int()) },
        open: () => open?.(),
        process(record, { key, state, emit }) {
          each?.()
          const count = (state.count.get() ?? 0) + 1
          state.count.update(count)
          emit({ ...record, key, count })
        },
      },
      { schema: countedRecord },
    )
    .uid(`${prefix}counter`)
}
