// Writes the end of a start into HEAD when its coordinator cannot be reached (rule 5): from then on there are no new permits.

import type { Start } from '../base/ids.ts'
import { discardLeftovers } from '../coordinator/leftovers.ts'
import { cancel, close } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { findHead } from './admin-world.ts'
import type { AdminWorld } from './admin-world.ts'
import { adminError } from './errors.ts'

export interface CloseRequest {
  /** Another one in HEAD is refused; undefined: whichever is there. */
  readonly start: Start | undefined
  /** The job is over for good: `cancelled`, which is written over any other end. Else `suspended`, and an end that is set stays. */
  readonly deleted: boolean
  /** false: only say what would be done. */
  readonly apply: boolean
}

export type Closed =
  /** There positively is no HEAD: no start has begun. */
  | { readonly outcome: 'none' }
  /** It had ended before: `head.end`. */
  | { readonly outcome: 'nothing to do'; readonly head: Head }
  /** HEAD as it is, and as it would be. */
  | { readonly outcome: 'would do'; readonly head: Head; readonly next: Head }
  | { readonly outcome: 'done'; readonly head: Head }

/**
 * Throws MR-A01, and what findHead says. A coordinator that runs reads the end at its next change of HEAD, and cancels its tasks. Behind a job that
 * is deleted no start looks for what its last one has left, and its coordinator may never come back: that is taken away here, for ten seconds.
 */
export async function closeJob(world: AdminWorld, { start, deleted, apply }: CloseRequest): Promise<Closed> {
  const { keeper, head } = await findHead(world)
  if (head === undefined) return { outcome: 'none' }
  const closing = (now: Head): Head => {
    if (start !== undefined && now.start !== start)
      throw adminError('MR-A01', `HEAD of ${now.job} is at start ${now.start} (${now.end.kind}), not ${start}.`)
    if (!deleted) return close(now)
    return now.end.kind === 'cancelled' ? now : cancel(now, { deleted })
  }
  const next = closing(head)
  if (next !== head && !apply) return { outcome: 'would do', head, next }
  const closed = next === head ? head : await keeper.amend(closing)
  // Of one that was deleted before, too: it may have been killed before it came to this.
  if (deleted && apply) await discardLeftovers(leftoversOf(world), keeper, closed.start)
  return { outcome: next === head ? 'nothing to do' : 'done', head: closed }
}

function leftoversOf({ stores, environment }: AdminWorld): Parameters<typeof discardLeftovers>[0] {
  const { objects: store, savepoints, foreign } = stores
  return { store, savepoints, foreign, environment }
}
