// HEAD for questions by REST: read anew, and as it was last known where the store does not answer in time.

import { within } from '../base/deadline.ts'
import type { Clock } from '../base/environment.ts'
import type { Head } from '../storage/head-contract.ts'
import { restError } from '../rest/errors.ts'

/** How long a question waits for HEAD. */
export const headDeadlineMs = 2_000

/**
 * Status must not wait for a store that is away: what HEAD said last is told then, and HEAD itself decides whatever is asked for. Throws MR-H12
 * when nothing is known yet.
 */
export function lastKnown(read: () => Promise<Head>, clock: Clock): () => Promise<Head> {
  let known: Head | undefined
  // One at a time: with a store that is slow each question would leave a read behind, in front of those that the job cannot go on without.
  let reading: Promise<Head> | undefined
  return async () => {
    reading ??= read()
      .then((head) => (known = head))
      .finally(() => (reading = undefined))
    try {
      return await within(clock, headDeadlineMs, reading, () => restError('MR-H12', `${headDeadlineMs} ms.`))
    } catch (error) {
      if (known === undefined) throw error
      return known
    }
  }
}
