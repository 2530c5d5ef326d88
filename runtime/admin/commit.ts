// Finishes the commits that HEAD permits, with the job's own code and without its writers (rule 23), and confirms them in HEAD.

import { InvariantError } from '../base/errors.ts'
import type { Start } from '../base/ids.ts'
import { checkpointError } from '../checkpoint/errors.ts'
import { committersOf } from '../coordinator/commits.ts'
import { commitAllPermitted } from '../coordinator/permitted-commits.ts'
import type { CommitSources } from '../coordinator/permitted-commits.ts'
import { readPermittedCommits } from '../coordinator/restore.ts'
import type { JobGraph } from '../job/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { drainedStopOf } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { isAbsoluteKey } from '../storage/paths.ts'
import { findHead, sourcesOf } from './admin-world.ts'
import type { AdminWorld } from './admin-world.ts'
import { adminError } from './errors.ts'

export interface CommitRequest {
  /** That `graph` is of: what a later one permitted is refused, as other code may mean other transactions. undefined: not known. */
  readonly start: Start | undefined
  /** Of the revision that wrote the transactions. Its settings say how long to try, and what becomes of one that is forgotten. */
  readonly graph: JobGraph
  readonly files: FileSystem
  /** false: only say what would be done. */
  readonly apply: boolean
}

export interface SinkTransactions {
  readonly uid: string
  readonly transactions: readonly string[]
}

export type Committed =
  /** There positively is no HEAD: nothing was ever permitted. */
  | { readonly outcome: 'none' }
  | { readonly outcome: 'nothing to do'; readonly head: Head }
  /** `sinks`: what HEAD permits. */
  | { readonly outcome: 'would do' | 'done'; readonly head: Head; readonly sinks: readonly SinkTransactions[] }

/**
 * A job that was stopped with drain has finished then. Throws MR-A09 for the code of an earlier start, MR-C12 for a sink that the job
 * does not have, MR-J65 around MR-N12 for a transaction that the external system has forgotten, MR-J60 at the deadline: what is permitted stays in HEAD, and commits can be made again.
 */
export async function commitOfJob(
  world: AdminWorld,
  { start, graph, files, apply }: CommitRequest,
): Promise<Committed> {
  const { keeper, head } = await findHead(world)
  if (head === undefined) return { outcome: 'none' }
  const { unconfirmed } = head
  if (unconfirmed === undefined && drainedStopOf(head.end) === undefined) return { outcome: 'nothing to do', head }
  const permittedBy = startOfPermit(head)
  if (start !== undefined && permittedBy > start)
    throw adminError('MR-A09', `HEAD of ${head.job} permits by start ${permittedBy}; the config is of start ${start}.`)
  const options: CommitSources = { ...sourcesOf(world), graph, files, job: head.job }
  const permitted = unconfirmed === undefined ? [] : [...(await readPermittedCommits(options, unconfirmed))]
  const committers = committersOf(options)
  const missing = permitted.find(([uid]) => !committers.has(uid))
  if (missing !== undefined) throw checkpointError('MR-C12', `uid ${missing[0]}, in ${unconfirmed?.path}.`)
  const sinks = permitted.map(([uid, committables]) => ({
    uid,
    transactions: committables.map(({ transaction }) => transaction),
  }))
  if (!apply) return { outcome: 'would do', head, sinks }
  try {
    await commitAllPermitted(options, keeper, head)
  } catch (error) {
    // Somebody else has committed them meanwhile, and confirmed it: by now the external system may have forgotten them.
    const now = error instanceof InvariantError ? head : await keeper.readBegun()
    if (now.unconfirmed?.path === unconfirmed?.path) throw error
  }
  return { outcome: 'done', head: await keeper.readBegun(), sinks }
}

/** Somebody else's manifest (an absolute path) counts the starts of that job: here it is permitted by the one that began with it. */
function startOfPermit({ unconfirmed, start }: Head): Start {
  return unconfirmed === undefined || isAbsoluteKey(unconfirmed.path) ? start : unconfirmed.start
}
