// What a stream or a state holds: made from a zod schema, or without one.

import type { ZodType } from 'zod'
import { z } from 'zod'
import { batchCodec } from './batch-codec.ts'
import type { BatchCodec, Codec, TypeInfo } from './contract.ts'
import { recordError } from './errors.ts'
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

/**
 * A value from outside as the type's, with defaults filled in and unknown fields dropped; or what is wrong with it.
 * Without a schema every value passes. Throws MR-R08 for a schema with asynchronous checks.
 */
export function validate<T>(type: TypeInfo<T>, value: unknown): { readonly value: T } | { readonly problem: string } {
  if (type.schema === undefined) return { value: value as T }
  let result: z.ZodSafeParseResult<T>
  try {
    result = type.schema.safeParse(value)
  } catch (cause) {
    if (cause instanceof z.core.$ZodAsyncError) throw recordError('MR-R08', `It is the schema of ${type.name}.`, cause)
    throw cause
  }
  if (result.success) return { value: result.data }
  const problems = result.error.issues.map((issue) => {
    const path = issue.path.map(String).join('.')
    return path === '' ? issue.message : `field ${path}: ${issue.message}`
  })
  return { problem: problems.join('; ') }
}
