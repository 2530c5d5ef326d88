// Names of arguments that a job does not have.

import { ZodObject } from 'zod'
import type { ZodType } from 'zod'

/** An object's schema drops names that it does not have: a misspelt one would silently give way to its default. undefined: all are known. */
export function unknownArguments(schema: ZodType | undefined, names: readonly string[]): string | undefined {
  // A schema with a catchall says itself what it takes.
  if (!(schema instanceof ZodObject) || schema.def.catchall !== undefined) return undefined
  const known = Object.keys(schema.shape)
  const unknown = names.filter((name) => !known.includes(name))
  return unknown.length === 0 ? undefined : `The job has no argument ${unknown.join(', ')}; it has ${known.join(', ')}.`
}
