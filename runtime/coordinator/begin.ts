// The first thing a coordinator does: read HEAD, decide, and take the job over by raising the incarnation (rule 2).

import type { JobId, Start } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import type { ObjectStore } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { beginStart, newJob, raiseIncarnation, restorePointOf } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { CHECKPOINTS_PREFIX } from '../storage/paths.ts'
import { decideStart } from '../storage/start-decision.ts'
import { coordinatorError } from './errors.ts'

export type BeginOutcome =
  | { readonly outcome: 'begun'; readonly head: Head }
  /** This start has ended, or a later one has begun: run nothing. */
  | { readonly outcome: 'ended'; readonly head: Head }
  /** Another coordinator raised the incarnation at the same moment. */
  | { readonly outcome: 'fenced'; readonly head: Head }

export interface BeginOptions {
  readonly keeper: HeadKeeper
  readonly store: ObjectStore
  readonly graph: JobGraph
  readonly job: JobId
  readonly start: Start | undefined
}

/** Throws MR-S16 for a store that holds checkpoints and no HEAD. */
export async function beginJob({ keeper, store, graph, job, start }: BeginOptions): Promise<BeginOutcome> {
  await refuseLostHead(keeper, store)
  const { maxParallelism } = graph
  const parallelism = Math.max(...graph.vertices.map((vertex) => vertex.parallelism))
  const answer = await keeper.begin((head) => {
    if (head !== undefined && head.job !== job)
      throw coordinatorError('MR-O17', `HEAD is of ${head.job}, this is ${job}.`)
    const decision = decideStart(head, { start })
    switch (decision.kind) {
      case 'first':
        return newJob({ job, start: decision.start, parallelism, maxParallelism })
      case 'resume':
        return raiseIncarnation(head!)
      case 'next':
        return beginStart(head!, {
          start: decision.start,
          restoredFrom: restorePointOf(head!),
          // What was permitted stays in HEAD as unconfirmed; the restore point is the same manifest (rule 22).
          commitsPending: false,
          parallelism,
          maxParallelism,
        })
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

/**
 * A job that began from empty where it has checkpoints would repeat what they hold, under ids that were used before (rule 6). Read
 * again behind the list: another command's first start writes HEAD, and after that its first checkpoint.
 */
async function refuseLostHead(keeper: HeadKeeper, store: ObjectStore): Promise<void> {
  if ((await keeper.read()) !== undefined) return
  const [checkpoint] = await store.list(CHECKPOINTS_PREFIX)
  if (checkpoint !== undefined && (await keeper.read()) === undefined)
    throw storageError('MR-S16', `The store holds ${checkpoint}.`)
}
