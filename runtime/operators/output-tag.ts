// Names a side output and the type of its records.

import type { TypeInfo } from '../record/contract.ts'
import { typeOfSchema } from './stream-schema.ts'
import type { StreamSchema } from './stream-schema.ts'

export interface OutputTag<T> {
  readonly name: string
  readonly type: TypeInfo<T>
}

/** Without a schema the side output's records describe themselves. */
export function outputTag<T>(name: string, schema?: StreamSchema<T>): OutputTag<T> {
  return { name, type: typeOfSchema(`side output ${name}`, schema) }
}
