// `onCancellation: 'delete'`: the checkpoints of a cancelled job are taken away once everything permitted is committed.

import { InvariantError } from '../base/errors.ts'
import type { Start } from '../base/ids.ts'
import { discardCancelled } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { discardDropped, objectsNeededBy } from './discard-dropped.ts'

/** Does nothing for any other end. Rejects for a broken invariant alone: failing here costs space only. */
export async function discardAfterCancel(
  options: Pick<JobCoordinatorOptions, 'graph' | 'store' | 'environment'>,
  keeper: HeadKeeper,
  start: Start,
): Promise<void> {
  const { graph, environment } = options
  if (graph.settings.onCancellation !== 'delete') return
  try {
    await discardAllOfCancelled(options, keeper, start)
  } catch (error) {
    if (error instanceof InvariantError) throw error
    environment.log('warn', 'the checkpoints of the cancelled job were not all deleted; the next command tries again', {
      error: String(error),
    })
  }
}

/**
 * Two swaps with the deletion between them, as for any dropped checkpoint (rule 7): a crash anywhere leaves in HEAD what remains to be
 * done, and whoever runs the ended job again does it. What could not be deleted stays in `discarding`. Does nothing for any other end, nor
 * for a start behind `start`: what that one retains is its own settings' to keep or to delete.
 */
export async function discardAllOfCancelled(
  options: Pick<JobCoordinatorOptions, 'store' | 'environment'>,
  keeper: HeadKeeper,
  start: Start,
): Promise<void> {
  const { store, environment } = options
  if (!hasSome(await keeper.readBegun(), start)) return
  const head = await keeper.amend((newest) => (newest.start === start ? discardCancelled(newest) : newest))
  if (!hasSome(head, start)) return
  const stillUsed = await objectsNeededBy(
    options,
    head.pins.map(({ manifest }) => manifest),
  )
  await discardDropped({ head, keeper, store, environment, stillUsed, of: 'a checkpoint of a cancelled job' })
}

function hasSome(head: Head, start: Start): boolean {
  const { end, unconfirmed, retained, discarding } = head
  if (head.start !== start || end.kind !== 'cancelled') return false
  return unconfirmed === undefined && retained.length + discarding.length > 0
}
