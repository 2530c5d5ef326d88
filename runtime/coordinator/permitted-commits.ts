// Rules 2 and 5: an ended start runs nothing; it finishes the commits that HEAD permits, as nobody may be there to do it later. Only while
// HEAD is at that start: what a later one permits may lie in a system that this revision's sinks do not write to, and would count as committed.

import { InvariantError } from '../base/errors.ts'
import type { Start } from '../base/ids.ts'
import { drainedStopOf, finish } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { Commits, askingForCommit } from './commits.ts'
import type { JobCoordinatorOptions, JobOutcome } from './coordinator-contract.ts'
import { discardAfterCancel } from './discard-cancelled.ts'
import { readPermittedCommits } from './restore.ts'
import type { ManifestSources } from './restore.ts'

export type CommitSources = ManifestSources & Pick<JobCoordinatorOptions, 'graph' | 'job' | 'files'>

/** And then what waits for them: the checkpoints of a cancelled job may go. Rejects with MR-O28 when they could not be committed: they stay in HEAD. */
export async function finishCommits(options: JobCoordinatorOptions, keeper: HeadKeeper, head: Head): Promise<void> {
  try {
    await commitAllPermitted(options, keeper, head)
  } catch (error) {
    throw askingForCommit('MR-O28', error)
  }
  await discardAfterCancel(options, keeper, head.start)
}

/** A job that was drained has finished then. */
export async function commitAllPermitted(options: CommitSources, keeper: HeadKeeper, head: Head): Promise<void> {
  if (head.unconfirmed !== undefined) await commitPermitted(options, keeper, head.unconfirmed)
  if (drainedStopOf(head.end) !== undefined) await keeper.amend(finishDrained)
}

async function commitPermitted(options: CommitSources, keeper: HeadKeeper, permitted: ManifestRef): Promise<void> {
  const { graph, job, environment, files } = options
  const unused = () => undefined
  const commits = new Commits({
    graph,
    job,
    environment,
    files,
    keeper,
    onAllConfirmed: unused,
    onOvertaken: unused,
    onBroken: unused,
  })
  await commits.commitWithoutWriters(await readPermittedCommits(options, permitted))
  await commits.confirmAmending(permitted)
}

/** Of the newest HEAD: a later start may have begun meanwhile. */
function finishDrained(head: Head): Head {
  return head.unconfirmed === undefined && drainedStopOf(head.end) !== undefined ? finish(head) : head
}

/**
 * The end is written and stays, whatever becomes of the commits: they stand in HEAD, and are tried by whoever is started for it again.
 * Rejects for a broken invariant alone.
 */
export async function finishCommitsAfter(
  options: JobCoordinatorOptions,
  keeper: HeadKeeper,
  { start, outcome }: { readonly start: Start; readonly outcome: JobOutcome },
): Promise<void> {
  if (outcome.kind === 'finished' || outcome.kind === 'fenced') return
  try {
    const head = await keeper.readBegun()
    if (head.start === start) await finishCommits(options, keeper, head)
  } catch (error) {
    if (error instanceof InvariantError) throw error
    options.environment.log('error', 'permitted commits are left in HEAD', {
      end: outcome.kind,
      error: String(error),
    })
  }
}
