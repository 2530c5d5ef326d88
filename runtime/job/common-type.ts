import { typeOfSchema } from '../operators/stream-schema.ts'
import type { TypeInfo } from '../record/contract.ts'
import type { StreamInput } from './stream-node.ts'

/** Of a stream that only passes records on. The parts of a union may differ; then the records describe themselves. */
export function commonType(inputs: readonly StreamInput[]): TypeInfo<unknown> {
  const first = inputs[0]!.type
  const { fingerprint } = first.row.description
  const same = inputs.every((input) => input.type.row.description.fingerprint === fingerprint)
  return same ? first : typeOfSchema<unknown>('union', undefined)
}
