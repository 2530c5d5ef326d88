// What a job says about a stream's or accumulator's type: a zod schema, or that it describes itself.

import type { ZodType } from 'zod'
import type { TypeInfo } from '../record/contract.ts'
import { typeInfoOf } from '../record/type-info.ts'

declare const held: unique symbol

/** Says the type of a stream without a schema: its records go over edges in the self-describing, slower codec. */
export interface SelfDescribing<T> {
  readonly selfDescribing: true
  readonly [held]?: T
}

export type StreamSchema<T> = ZodType<T> | SelfDescribing<T>

/** For places where the type cannot be inferred: `keyed.process(fn, { schema: selfDescribing<Alarm>() })`. */
export function selfDescribing<T>(): SelfDescribing<T> {
  return { selfDescribing: true }
}

export function typeOfSchema<T>(name: string, schema: StreamSchema<T> | undefined): TypeInfo<T> {
  return schema === undefined || 'selfDescribing' in schema ? typeInfoOf<T>(name) : typeInfoOf<T>(name, schema)
}
