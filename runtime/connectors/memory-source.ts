// Values that are there when the job is built.

import type { ZodType } from 'zod'
import { NO_TIMESTAMP } from '../record/element.ts'
import { typeInfoOf } from '../record/type-info.ts'
import { connectorError } from './errors.ts'
import { numberedSource, type NumberedSource } from './numbered-source.ts'
import { validatorOf } from './record-schema.ts'

export interface FromCollectionOptions<T> {
  /** Validates the values at once (MR-N04) and types the stream; without it the slower self-describing codec is used. */
  readonly schema?: ZodType<T>
  /** Event time of each value, ms; as many as values. */
  readonly timestamps?: readonly number[]
  /** Value i goes to split i mod splits; default 1, which keeps the order. */
  readonly splits?: number
}

/** A bounded source of the given values. The job must be built with the same values after a restart. */
export function fromCollection<T>(values: readonly T[], options: FromCollectionOptions<T> = {}): NumberedSource<T> {
  const { timestamps, schema } = options
  if (timestamps !== undefined && timestamps.length !== values.length)
    throw connectorError('MR-N06', `Collection: ${timestamps.length} timestamps for ${values.length} values.`)
  const checked = schema === undefined ? values : validated(values, schema)
  return numberedSource({
    name: 'collection',
    bounded: true,
    output: typeInfoOf('collection value', schema),
    splits: options.splits ?? 1,
    countOf: ({ index, of }) => Math.max(0, Math.ceil((checked.length - index) / of)),
    recordOf: ({ index, of }, n) => checked[index + n * of]!,
    timestampOf: ({ index, of }, n) => timestamps?.[index + n * of] ?? NO_TIMESTAMP,
  })
}

function validated<T>(values: readonly T[], schema: ZodType<T>): readonly T[] {
  const validator = validatorOf(schema)
  return values.map((value, index) => {
    const accepted = validator.accept(value)
    if (accepted === undefined) throw connectorError('MR-N04', `Collection, value ${index}: ${validator.problem}.`)
    return accepted
  })
}
