// Unknown is not false: which errors are no answer to what was asked.

import { MillraceError } from '../base/errors.ts'
import type { ErrorCode } from '../base/errors.ts'

/** What stands between us and the store, or between a sink and its system, also where time alone does not mend it. */
const unanswered: ReadonlySet<ErrorCode> = new Set([
  'MR-J60',
  'MR-S08',
  'MR-S30',
  'MR-S32',
  'MR-S33',
  'MR-S35',
  'MR-S36',
  'MR-S38',
])

/** Whether nothing is known, since nobody answered; else the answer is no. */
export function isUnanswered(error: unknown): boolean {
  return !(error instanceof MillraceError) || error.retry || unanswered.has(error.code)
}
