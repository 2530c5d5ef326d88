// What is wrong with a document: what a schema finds, as sentences that name the field and what it must be.

import type { z } from 'zod'

export interface Problem {
  /** Of the field: names, and places in lists. */
  readonly path: readonly (string | number)[]
  /** A sentence without its end that begins with the path: `spec.parallelism is 0; it must be at least 1`. */
  readonly message: string
}

export type Read<Kind> =
  | { readonly kind: 'fits'; readonly object: Kind }
  | { readonly kind: 'does not fit'; readonly problems: readonly Problem[] }

/** The document as the schema gives it, with defaults, or each thing that is wrong with it. */
export function readDocument<Schema extends z.ZodType>(schema: Schema, document: unknown): Read<z.output<Schema>> {
  const parsed = schema.safeParse(document, { error: sentenceOf, reportInput: true })
  return parsed.success
    ? { kind: 'fits', object: parsed.data }
    : { kind: 'does not fit', problems: parsed.error.issues.flatMap(problemsOfIssue) }
}

/** `spec.list[0].name` */
export function pathText(path: readonly (string | number)[]): string {
  return path.map((part, index) => (typeof part === 'number' ? `[${part}]` : index === 0 ? part : `.${part}`)).join('')
}

function problemsOfIssue(issue: z.core.$ZodIssue): Problem[] {
  const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))
  if (issue.code === 'unrecognized_keys')
    return issue.keys.map((key) => {
      const unknown = [...path, key]
      return { path: unknown, message: `${pathText(unknown)}: there is no such field` }
    })
  const said = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message
  return [{ path, message: `${pathText(path) || 'The document'} ${said}` }]
}

/** For fields whose schema says nothing of its own. */
function sentenceOf(issue: z.core.$ZodRawIssue): string {
  const input = issue.code === 'invalid_union' ? atDiscriminator(issue) : issue.input
  const found = input === undefined ? 'is missing' : `is ${JSON.stringify(input)}`
  const wanted = wantedBy(issue)
  return wanted === undefined ? found : `${found}; it must be ${wanted}`
}

/** Of a union by its type field the path of the issue is that field's, the input the whole object. */
function atDiscriminator({ input, discriminator }: z.core.$ZodRawIssue): unknown {
  if (typeof discriminator !== 'string' || typeof input !== 'object' || input === null) return input
  return (input as Readonly<Record<string, unknown>>)[discriminator]
}

function wantedBy(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return typeNames[issue.expected] ?? `a ${issue.expected}`
    case 'invalid_value':
      return oneOf(issue.values)
    case 'invalid_union':
      return oneOf((issue as { readonly options?: readonly unknown[] }).options ?? [])
    case 'too_small':
      return issue.origin === 'string' ? 'a text that is not empty' : `at least ${issue.minimum}`
    case 'too_big':
      return issue.origin === 'string' ? `at most ${issue.maximum} characters long` : `at most ${issue.maximum}`
    default:
      return undefined
  }
}

const typeNames: Readonly<Record<string, string>> = {
  int: 'a whole number',
  string: 'a text',
  boolean: 'true or false',
  object: 'an object',
  record: 'an object',
}

function oneOf(values: readonly unknown[]): string {
  return values
    .map(String)
    .join(', ')
    .replace(/, ([^,]*)$/, ' or $1')
}
