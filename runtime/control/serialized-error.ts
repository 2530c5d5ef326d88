// An error on its way to the coordinator: plain data, with what decides about a restart.

import type { SerializedError } from './contract.ts'

/**
 * Unknown is not false: an error that does not say so may be mended by a restart. `place`, such as `map → sink, subtask 1`, is added
 * to errors of records on their way (MR-R, MR-W), which arise where a frame is made and know of no operator.
 */
export function serializeError(error: unknown, place?: string): SerializedError {
  if (!(error instanceof Error))
    return { name: 'Error', message: String(error), stack: undefined, code: undefined, retry: true }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const retry = 'retry' in error && typeof error.retry === 'boolean' ? error.retry : true
  const needsPlace = place !== undefined && code !== undefined && /^MR-[RW]/.test(code)
  const message = needsPlace ? `${error.message} It came from ${place}.` : error.message
  return { name: error.name, message, stack: error.stack, code, retry }
}
