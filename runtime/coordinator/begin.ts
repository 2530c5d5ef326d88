// The first thing a coordinator does: read HEAD, decide, and take the job over by raising the incarnation (rule 2).

import type { Start } from '../base/ids.ts'
import { storageError } from '../storage/errors.ts'
import { beginStart, newJob, raiseIncarnation, restorePointOf } from '../storage/head.ts'
import type { Head, ManifestRef, RestorePoint } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { isAbsoluteKey } from '../storage/paths.ts'
import { decideStart } from '../storage/start-decision.ts'
import type { StartDecision } from '../storage/start-decision.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { coordinatorError } from './errors.ts'
import { lostHead, readUnlessLost } from './lost-head.ts'
import { checkRestorePoint, refuseDrained } from './restore-check.ts'
import type { CheckSources, CheckedRestorePoint } from './restore-check.ts'

export type BeginOutcome =
  /** `resumed`: this start was begun before, and what ran then may run on. */
  | { readonly outcome: 'begun'; readonly head: Head; readonly resumed: boolean }
  /** This start has ended: run nothing. */
  | { readonly outcome: 'ended'; readonly head: Head }
  /** A later start has begun: run nothing, and leave to it what HEAD permits and retains. */
  | { readonly outcome: 'stale'; readonly head: Head }
  /** Another coordinator raised the incarnation at the same moment. */
  | { readonly outcome: 'fenced'; readonly head: Head }

export interface BeginOptions extends CheckSources, Pick<JobCoordinatorOptions, 'job' | 'start' | 'savepoints'> {
  readonly keeper: HeadKeeper
}

/**
 * Throws MR-S16 for a store without HEAD that holds snapshots, MR-S19 for one of a job that goes on. For a restore point that was asked for: MR-S15 while HEAD has unconfirmed
 * commits, MR-S18, and what restore-check.ts says. HEAD is unchanged then.
 */
export async function beginJob(options: BeginOptions): Promise<BeginOutcome> {
  const { keeper, graph, job, start, restore } = options
  const found = await readUnlessLost(keeper, { ...options, goesOn: options.restore?.goesOn })
  const from = restore?.from
  // Only if a start begins there: one that goes on may have outlived the savepoint that it began from.
  const checked =
    from !== undefined && beginsAnew(found, start, from) ? await checkRestorePoint(options, from) : undefined
  const { maxParallelism } = graph
  const parallelism = Math.max(...graph.vertices.map((vertex) => vertex.parallelism))
  let decision: StartDecision | undefined
  const answer = await keeper.begin((head) => {
    if (head !== undefined && head.job !== job)
      throw coordinatorError('MR-O17', `HEAD is of ${head.job}, this is ${job}.`)
    decision = decideStart(head, { start, from: from?.path })
    switch (decision.kind) {
      case 'first':
        if (restore?.goesOn === true) throw lostHead()
        return newJob({ job, start: decision.start, parallelism, maxParallelism, ...restoredFrom(from, checked) })
      case 'resume':
        return raiseIncarnation(head!)
      case 'next': {
        if (from !== undefined) refuseAt(head!, from)
        if (restore?.empty === true)
          return beginStart(head!, { start: decision.start, parallelism, maxParallelism, ...fromEmpty(head!) })
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
  if (answer.outcome === 'won') return { outcome: 'begun', head: answer.head, resumed: decision?.kind === 'resume' }
  if (answer.outcome === 'overtaken') return { outcome: 'fenced', head: answer.head }
  return { outcome: decision?.kind === 'stale' ? 'stale' : 'ended', head: answer.head! }
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

/** Rule 23: what HEAD permits is committed first, by the code that wrote it. */
function fromEmpty({ unconfirmed }: Head): { readonly restoredFrom: RestorePoint; readonly commitsPending: false } {
  if (unconfirmed !== undefined) throw storageError('MR-S15', `Those of ${unconfirmed.path}.`)
  return { restoredFrom: { kind: 'empty' }, commitsPending: false }
}

/** The swap that begins there must not lose sight of commits (rule 23), nor begin at what the job is about to delete. */
function refuseAt(head: Head, from: ManifestRef): void {
  if (head.unconfirmed !== undefined) throw storageError('MR-S15', `Those of ${head.unconfirmed.path}.`)
  if (from.kind === 'savepoint' || isAbsoluteKey(from.path)) return
  if (!head.retained.some(({ path }) => path === from.path))
    throw storageError('MR-S18', `${from.path} is not retained any more.`)
}
