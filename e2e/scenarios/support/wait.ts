// Waiting for something that kubectl, REST or the ledger tells. Each look may be a process, so there is a pause between two.

import { until } from '../../../tests/servers/support/server-process.ts'

const pauseMs = 500
export const usualDeadlineMs = 120_000

/**
 * Resolves with the first that `look` finds. Errors on the way count as not yet; rejects after the deadline with `what`, the last error, and what was
 * `seen`.
 */
export async function found<Value>(
  what: string,
  look: () => Promise<Value | undefined>,
  deadlineMs = usualDeadlineMs,
  seen: () => string | undefined = () => undefined,
): Promise<Value> {
  let value: Value | undefined
  let last: unknown
  const isThere = async (): Promise<boolean> => {
    try {
      value = await look()
    } catch (error) {
      last = error
    }
    if (value !== undefined) return true
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
    return false
  }
  try {
    await until(what, isThere, deadlineMs)
  } catch (error) {
    throw new Error(`${(error as Error).message}\nseen: ${seen() ?? 'nothing'}\nlast error: ${String(last)}`, {
      cause: error,
    })
  }
  return value!
}

/** Resolves once `isTrue`; else as `found`. */
export async function wait(
  what: string,
  isTrue: () => Promise<boolean>,
  deadlineMs?: number,
  seen?: () => string | undefined,
): Promise<void> {
  await found(what, async () => ((await isTrue()) ? true : undefined), deadlineMs, seen)
}
