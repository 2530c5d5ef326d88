// An error on its way to the coordinator: plain data, with what decides about a restart.

import type { SerializedError } from './contract.ts'

/** Unknown is not false: an error that does not say so may be mended by a restart. */
export function serializeError(error: unknown): SerializedError {
  if (!(error instanceof Error))
    return { name: 'Error', message: String(error), stack: undefined, code: undefined, retry: true }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const retry = 'retry' in error && typeof error.retry === 'boolean' ? error.retry : true
  return { name: error.name, message: error.message, stack: error.stack, code, retry }
}
