// What --args and --arg mean to a job. A text after --arg name= is taken as it stands; where the job's schema will not have a text
// there, as JSON: so `--arg limit=5` fits a number and `--arg airport=5` a string, without quotes for the shell.

import type { ZodType } from 'zod'
import { unknownArguments } from '../job/argument-names.ts'
import { commandError } from './errors.ts'

/** Throws MR-L11 for a name that the job's schema does not have. What does not fit it otherwise stays, for the job to say so. */
export function jobArguments(
  schema: ZodType | undefined,
  given: Readonly<Record<string, unknown>>,
  named: readonly (readonly [name: string, value: string])[],
): Record<string, unknown> {
  const texts = new Map(named)
  const args: Record<string, unknown> = { ...given, ...Object.fromEntries(texts) }
  const unknown = unknownArguments(schema, Object.keys(args))
  if (unknown !== undefined) throw commandError('MR-L11', unknown)
  const parsed = schema?.safeParse(args)
  if (parsed === undefined || parsed.success) return args
  for (const { path } of parsed.error.issues) {
    const name = String(path[0])
    const text = texts.get(name)
    if (text !== undefined) args[name] = jsonOr(text)
  }
  return args
}

/** What is no JSON stays a text, and the schema's error says that it does not fit. */
function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
