// Looking for a store, at what lies in one, and opening it: before anything runs nobody else would notice that it stands still.

import { within } from '../base/deadline.ts'
import type { Clock } from '../base/environment.ts'
import { storageError } from './errors.ts'

/** One look with all its calls; twice what a call of S3 may take with its tries. A folder on a mount that is dead never answers. */
export const FIRST_LOOK_DEADLINE_MS = 120_000

/** Settles as `look` does, or throws MR-S01 after the deadline. What it answers later is nobody's. */
export function inFirstLook<T>(clock: Clock, doing: string, look: Promise<T>): Promise<T> {
  const late = () => storageError('MR-S01', `${doing}: no answer within ${FIRST_LOOK_DEADLINE_MS} ms.`)
  return within(clock, FIRST_LOOK_DEADLINE_MS, look, late)
}
