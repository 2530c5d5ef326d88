// A generator of made-up records, endless or counted, at a given rate.

import type { ZodType } from 'zod'
import { NO_TIMESTAMP } from '../record/element.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { connectorError } from './errors.ts'
import { numberedSource, type NumberedSource } from './numbered-source.ts'

export interface DataGeneratorOptions<T> {
  /** Makes record n. The same n must give the same record: after a failure numbers are asked for again. Numbers rise within a split and are shared out among splits. */
  readonly create: (n: number) => T
  /** Types the stream's codec; without it the slower self-describing one is used. Records are trusted, not validated. */
  readonly schema?: ZodType<T>
  /** Over all splits; default: as fast as records are taken. Counted on the monotonic clock. */
  readonly ratePerSecond?: number
  /** Records in all; default: endless. */
  readonly count?: number
  /** Default: the parallelism of the job's first start. */
  readonly splits?: number
}

/** Throws MR-N06 for options that cannot work. */
export function dataGenerator<T>(options: DataGeneratorOptions<T>): NumberedSource<T> {
  const { create, count } = options
  if (count !== undefined && (!Number.isSafeInteger(count) || count < 0))
    throw connectorError('MR-N06', `Data generator: count is ${count}; it must be an integer ≥ 0.`)
  return numberedSource({
    name: 'data generator',
    bounded: count !== undefined,
    output: typeInfoOf('generated record', options.schema),
    splits: options.splits,
    ratePerSecond: options.ratePerSecond,
    // Split i of k makes the numbers i, i + k, i + 2k …: those below `count`.
    countOf: ({ index, of }) => (count === undefined ? undefined : Math.max(0, Math.ceil((count - index) / of))),
    recordOf: ({ index, of }, n) => create(index + n * of),
    timestampOf: () => NO_TIMESTAMP,
  })
}
