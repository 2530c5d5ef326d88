// The error table: each error a user can meet has a code, says where it arose, and what to do.
// Areas keep their own rows in runtime/<area>/errors.ts; docs/errors.md is checked against them by a test.

export type WhoActs = 'user' | 'external system' | 'millrace'

export interface ErrorRow {
  /** One sentence: what happened. */
  readonly meaning: string
  readonly who: WhoActs
  /** Whether the same call may succeed later without anybody changing anything. */
  readonly retry: boolean
  /** One sentence: what to do. */
  readonly remedy: string
}

export type ErrorCode = `MR-${string}`

/** An error with a row in the table. `message` says what and where, and then the remedy. */
export class MillraceError extends Error {
  readonly code: ErrorCode
  /** What and where, without the remedy: for who says himself what to do. */
  readonly description: string
  readonly remedy: string
  readonly retry: boolean

  constructor(code: ErrorCode, row: ErrorRow, detail: string, options?: { readonly cause?: unknown }) {
    const description = `${code} ${row.meaning} ${detail}`
    super(`${description} ${row.remedy}`, options)
    this.name = 'MillraceError'
    this.code = code
    this.description = description
    this.remedy = row.remedy
    this.retry = row.retry
  }
}

/** Makes an area's constructor of errors from its rows: `const fail = errorsOf(storageErrors)`; `throw fail('MR-S01', 'at chk-7/_metadata')`. */
export function errorsOf<Rows extends Readonly<Record<ErrorCode, ErrorRow>>>(rows: Rows) {
  return (code: keyof Rows & ErrorCode, detail: string, cause?: unknown): MillraceError =>
    new MillraceError(code, rows[code]!, detail, cause === undefined ? undefined : { cause })
}

/** A broken invariant: our fault; takes the thread or process down loudly. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError'
}

/** Whether time alone may mend it. An error without a row in the table, such as a client's broken connection, does not say: unknown is not no. */
export function mayPass(error: unknown): boolean {
  return !(error instanceof InvariantError) && (!(error instanceof MillraceError) || error.retry)
}

export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message)
}

/** The end of an exhaustive branch. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable: ${JSON.stringify(value)}`)
}
