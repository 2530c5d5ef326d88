// The first thing a coordinator does: read HEAD, decide, and take the job over by raising the incarnation (rule 2).

import { within } from '../base/deadline.ts'
import type { Start } from '../base/ids.ts'
import { storageError } from '../storage/errors.ts'
import { beginStart, newJob, raiseIncarnation, restorePointOf } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { CHECKPOINTS_PREFIX, isAbsoluteKey } from '../storage/paths.ts'
import { decideStart } from '../storage/start-decision.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { coordinatorError } from './errors.ts'
import { checkRestorePoint, refuseDrained } from './restore-check.ts'
import { readDeadlineMs } from './restore.ts'
import type { CheckSources, CheckedRestorePoint } from './restore-check.ts'

export type BeginOutcome =
  | { readonly outcome: 'begun'; readonly head: Head }
  /** This start has ended, or a later one has begun: run nothing. */
  | { readonly outcome: 'ended'; readonly head: Head }
  /** Another coordinator raised the incarnation at the same moment. */
  | { readonly outcome: 'fenced'; readonly head: Head }

export interface BeginOptions extends CheckSources, Pick<JobCoordinatorOptions, 'job' | 'start'> {
  readonly keeper: HeadKeeper
}

/**
 * Throws MR-S16 for a store that holds checkpoints and no HEAD. For a restore point that was asked for: MR-S15 while HEAD has unconfirmed
 * commits, MR-S18, and what restore-check.ts says. HEAD is unchanged then.
 */
export async function beginJob(options: BeginOptions): Promise<BeginOutcome> {
  const { keeper, graph, job, start, restore } = options
  await refuseLostHead(keeper, options)
  const from = restore?.from
  // Only if a start begins there: one that goes on may have outlived the savepoint that it began from.
  const checked =
    from !== undefined && beginsAnew(await keeper.read(), start, from)
      ? await checkRestorePoint(options, from)
      : undefined
  const { maxParallelism } = graph
  const parallelism = Math.max(...graph.vertices.map((vertex) => vertex.parallelism))
  const answer = await keeper.begin((head) => {
    if (head !== undefined && head.job !== job)
      throw coordinatorError('MR-O17', `HEAD is of ${head.job}, this is ${job}.`)
    const decision = decideStart(head, { start, from: from?.path })
    switch (decision.kind) {
      case 'first':
        return newJob({ job, start: decision.start, parallelism, maxParallelism, ...restoredFrom(from, checked) })
      case 'resume':
        return raiseIncarnation(head!)
      case 'next': {
        if (from !== undefined) refuseAt(head!, from)
        const point = restorePointOf(head!)
        if (from === undefined && point.kind === 'manifest') refuseDrained(point.manifest, point.manifest, restore)
        return beginStart(head!, {
          start: decision.start,
          parallelism,
          maxParallelism,
          // What was permitted stays in HEAD as unconfirmed; the restore point is the same manifest (rule 22).
          restoredFrom: point,
          commitsPending: false,
          ...restoredFrom(from, checked),
        })
      }
      case 'ended':
      case 'stale':
        return undefined
      default:
        return decision satisfies never
    }
  })
  if (answer.outcome === 'won') return { outcome: 'begun', head: answer.head }
  if (answer.outcome === 'overtaken') return { outcome: 'fenced', head: answer.head }
  return { outcome: 'ended', head: answer.head! }
}

function beginsAnew(head: Head | undefined, start: Start | undefined, from: ManifestRef): boolean {
  const { kind } = decideStart(head, { start, from: from.path })
  return kind === 'first' || kind === 'next'
}

function restoredFrom(from: ManifestRef | undefined, checked: CheckedRestorePoint | undefined) {
  if (from === undefined) return {}
  // HEAD has changed since it was looked at: by another command at the same moment.
  if (checked === undefined) throw coordinatorError('MR-O25', `At ${from.path}.`)
  return { restoredFrom: { kind: 'manifest', manifest: from }, ...checked } as const
}

/** The swap that begins there must not lose sight of commits (rule 23), nor begin at what the job is about to delete. */
function refuseAt(head: Head, from: ManifestRef): void {
  if (head.unconfirmed !== undefined) throw storageError('MR-S15', `Those of ${head.unconfirmed.path}.`)
  if (from.kind === 'savepoint' || isAbsoluteKey(from.path)) return
  if (!head.retained.some(({ path }) => path === from.path))
    throw storageError('MR-S18', `${from.path} is not retained any more.`)
}

/**
 * A job that began from empty where it has checkpoints would repeat what they hold, under ids that were used before (rule 6). Read
 * again behind the list: another command's first start writes HEAD, and after that its first checkpoint.
 */
async function refuseLostHead(
  keeper: HeadKeeper,
  { store, environment }: Pick<BeginOptions, 'store' | 'environment'>,
): Promise<void> {
  if ((await keeper.read()) !== undefined) return
  const late = () => storageError('MR-S01', `Listing ${CHECKPOINTS_PREFIX}…: no answer within ${readDeadlineMs} ms.`)
  const [checkpoint] = await within(environment.clock, readDeadlineMs, store.list(CHECKPOINTS_PREFIX), late)
  if (checkpoint !== undefined && (await keeper.read()) === undefined)
    throw storageError('MR-S16', `The store holds ${checkpoint}.`)
}
