// The ledger's numbered source: every record says which split and which number it is, so that a check can tell
// lost, doubled and reordered ones, and carries a magic number, so that a shifted byte is caught at the next operator.

import { z } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import { connectorError } from './errors.ts'
import { numberedSource, type NumberedSource } from './numbered-source.ts'

/** 'MRLG'. */
export const LEDGER_MAGIC = 0x4d52_4c47

export interface SequenceRecord {
  readonly split: number
  /** From 0, without gaps, within its split. */
  readonly n: number
  readonly magic: number
}

export const sequenceRecordSchema = z.object({ split: z.int(), n: z.int(), magic: z.int() })

export interface SequenceOptions {
  readonly splits: number
  /** Records of each split; default: endless. */
  readonly perSplit?: number | undefined
  /** Event time of record n is n times this, in every split; default 1,000 ms. */
  readonly stepMs?: number
  /** Over all splits; default: as fast as records are taken. */
  readonly ratePerSecond?: number
}

/** Throws MR-N06 for options that cannot work. */
export function sequence(options: SequenceOptions): NumberedSource<SequenceRecord> {
  const { perSplit, stepMs = 1_000 } = options
  if (!Number.isSafeInteger(stepMs) || stepMs < 0)
    throw connectorError('MR-N06', `Sequence: stepMs is ${stepMs}; it must be an integer ≥ 0.`)
  return numberedSource({
    name: 'sequence',
    bounded: perSplit !== undefined,
    output: typeInfoOf('sequence record', sequenceRecordSchema),
    splits: options.splits,
    ratePerSecond: options.ratePerSecond,
    countOf: () => perSplit,
    recordOf: ({ index }, n) => ({ split: index, n, magic: LEDGER_MAGIC }),
    timestampOf: (_, n) => n * stepMs,
  })
}

/** Throws MR-N18 unless the record carries the magic number; for operators between source and ledger. */
export function checkMagic(record: { readonly magic: number }): void {
  if (record.magic !== LEDGER_MAGIC) throw connectorError('MR-N18', `It reads ${JSON.stringify(record)}.`)
}
