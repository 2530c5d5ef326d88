// What a job that is over has left in its store beside what HEAD names: dropped checkpoints that were still to be deleted, and what was written for
// checkpoints that never completed. A start that begins finds those of the starts before it (cleanup.ts); behind this one there may be none.
//
// Listed first, and told apart by a swap of HEAD that is won after it: what is listed was then written by this start, or by one before it, and
// nothing of it completes any more (rule 4). Not of savepoints: a manifest that is still on its way would make one of what is left of its folder,
// which nobody could restore. `millrace admin sweep` takes those, with nothing on its way.

import { within } from '../base/deadline.ts'
import { InvariantError } from '../base/errors.ts'
import type { Start } from '../base/ids.ts'
import type { ObjectKey } from '../storage/contract.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { CHECKPOINTS_PREFIX, checkpointOfKey, manifestKey } from '../storage/paths.ts'
import { namedBy } from './cleanup.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { discardDropped, objectsNeededBy } from './discard-dropped.ts'
import { deleteCheckpoints, listed } from './store-calls.ts'

type Options = Pick<JobCoordinatorOptions, 'store' | 'savepoints' | 'foreign' | 'environment'>

/** Whoever waits for the job's end waits for this, a deletion with a deadline among them; it costs space only. */
const discardingMs = 10_000

/**
 * Its tasks are gone. Does nothing for an end that another start may follow of itself; gives up after ten seconds. Rejects for a broken invariant
 * alone.
 */
export async function discardLeftovers(options: Options, keeper: HeadKeeper, start: Start): Promise<void> {
  const { clock, log } = options.environment
  try {
    const late = (): Error => new Error(`not done within ${discardingMs} ms`)
    await within(clock, discardingMs, discardAll(options, keeper, start), late)
  } catch (error) {
    if (error instanceof InvariantError) throw error
    log('warn', 'files of checkpoints that never completed may be left; millrace admin sweep takes them away', {
      error: String(error),
    })
  }
}

async function discardAll(options: Options, keeper: HeadKeeper, start: Start): Promise<void> {
  const { store, environment } = options
  const first = await keeper.readBegun()
  const isOver = (head: Head): boolean =>
    head.start === start &&
    head.incarnation === first.incarnation &&
    ['finished', 'failed', 'cancelled'].includes(head.end.kind)
  if (!isOver(first)) return
  const left = incomplete(await listed(store, CHECKPOINTS_PREFIX, environment), first)
  if (first.discarding.length === 0 && left.length === 0) return
  const head = await keeper.amend((newest) => newest)
  if (!isOver(head)) return
  const stillUsed = await objectsNeededBy(options, namedBy(head))
  if (head.discarding.length > 0)
    await discardDropped({ head, keeper, store, environment, stillUsed, of: 'a dropped checkpoint' })
  await deleteCheckpoints(
    store,
    left.filter((key) => !stillUsed.has(key)),
    environment,
  )
}

/** Of checkpoints that HEAD does not name. */
function incomplete(keys: readonly ObjectKey[], head: Head): readonly ObjectKey[] {
  const named = new Set([...namedBy(head), ...head.discarding].map(({ path }) => path as string))
  return keys.filter((key) => {
    const id = checkpointOfKey(key)
    return id !== undefined && !named.has(manifestKey(id, 'checkpoint'))
  })
}
