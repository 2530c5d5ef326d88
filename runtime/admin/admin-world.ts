// What the admin commands work on: HEAD and the store of one job, with nobody in between. Whoever else is at work on them meets the same
// rules: each change is a compare-and-swap, and can be made again.

import { within } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import type { JobId } from '../base/ids.ts'
import type { RestoreRequest } from '../coordinator/coordinator-contract.ts'
import { coordinatorError } from '../coordinator/errors.ts'
import { readUnlessLost } from '../coordinator/lost-head.ts'
import { readDeadlineMs } from '../coordinator/restore.ts'
import type { ManifestSources } from '../coordinator/restore.ts'
import type { OpenedStores, OwnedSavepointStore } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import type { Head } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'

export interface AdminWorld {
  /** undefined: whichever job HEAD is of. */
  readonly job: JobId | undefined
  readonly stores: Pick<OpenedStores, 'objects' | 'savepoints' | 'head' | 'foreign' | 'locate' | 'removeLeftovers'>
  readonly environment: Environment
}

export interface FoundHead {
  readonly keeper: HeadKeeper
  /** undefined only if there positively is none, and no checkpoint or savepoint either. */
  readonly head: Head | undefined
}

/**
 * Throws MR-O17 for another job's HEAD, MR-S16 for a store that holds snapshots and no HEAD, MR-S12 when the store does not answer
 * within a minute, MR-S10 and MR-S11 for a HEAD that cannot be read. `goesOn`: whoever asks has seen it before, and where there is none it
 * throws MR-S19.
 */
export async function findHead(
  { job, stores, environment }: AdminWorld,
  { goesOn }: Pick<RestoreRequest, 'goesOn'> = {},
): Promise<FoundHead> {
  const keeper = await HeadKeeper.open(stores.head, environment)
  const head = await readUnlessLost(keeper, {
    store: stores.objects,
    savepoints: stores.savepoints,
    environment,
    goesOn,
  })
  if (head !== undefined && job !== undefined && head.job !== job)
    throw coordinatorError('MR-O17', `HEAD is of ${head.job}, this is ${job}.`)
  return { keeper, head }
}

/** Whether the place for savepoints is the job's; throws MR-S40 for another's, MR-S01 when there is no answer in time. */
export function isClaimed(place: OwnedSavepointStore, { clock }: Pick<Environment, 'clock'>): Promise<boolean> {
  const late = () => storageError('MR-S01', `Whose the place for savepoints is: no answer within ${readDeadlineMs} ms.`)
  return within(clock, readDeadlineMs, place.isClaimed(), late)
}

export function sourcesOf({ stores, environment }: AdminWorld): ManifestSources {
  return { store: stores.objects, foreign: stores.foreign, environment }
}
