// What a stream or a state holds: made from a zod schema, or without one.

import type { ZodType } from 'zod'
import { batchCodec } from './batch-codec.ts'
import type { BatchCodec, Codec, TypeInfo } from './contract.ts'
import { rowCodec } from './row-codec.ts'
import { layoutOfSchema } from './schema-layout.ts'
import { untypedBatchCodec, untypedCodec } from './untyped.ts'

/** Throws MR-R02, naming the field, for a schema without a binary form. Without a schema: the self-describing codec. */
export function typeInfoOf<T>(name: string, schema?: ZodType<T>): TypeInfo<T> {
  if (schema === undefined) {
    return { name, row: untypedCodec as Codec<T>, batch: untypedBatchCodec as BatchCodec<T> }
  }
  const schemaLayout = layoutOfSchema(schema)
  return { name, row: rowCodec<T>(schemaLayout), batch: batchCodec<T>(schemaLayout.layout), schema }
}
