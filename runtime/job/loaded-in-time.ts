// A job file may wait at its top level for what never answers, and whoever loads it must come to an end.

import { within } from '../base/deadline.ts'
import type { Clock } from '../base/environment.ts'
import { jobError } from './errors.ts'

/** Whoever waits for it in turn, such as the operator for a preflight, gives it a minute. */
export const loadDeadlineMs = 45_000

/** What `loading` resolves with. Rejects with MR-J14 when it does not in time. */
export function loadedInTime<T>(clock: Clock, loading: Promise<T>): Promise<T> {
  return within(clock, loadDeadlineMs, loading, () =>
    jobError('MR-J14', `It is being loaded for ${loadDeadlineMs} ms.`),
  )
}
