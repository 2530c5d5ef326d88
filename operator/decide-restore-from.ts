// Where spec.restoreFrom points: a snapshot's folder, or with `latest` the newest Savepoint of the job's name, which outlives its jobs.

import type { Observed, StreamJobStatus } from './contract.ts'
import { validSpec } from './decide-facts.ts'

export type RestoreFrom =
  /** `path` undefined: where HEAD says, which is the latest there is. */
  | { readonly kind: 'found'; readonly path: string | undefined }
  /** `latest` of nothing: the job would begin from nothing unasked. */
  | { readonly kind: 'nothing' }

export function restoreFromOf(observed: Observed, status: StreamJobStatus): RestoreFrom {
  const from = validSpec(observed, status)?.restoreFrom
  if (from !== 'latest') return { kind: 'found', path: from }
  if (status.start > 0) return { kind: 'found', path: undefined }
  const completed = observed.savepoints.filter(
    ({ status: done, deleting }) => done?.state === 'completed' && done.path !== undefined && !deleting,
  )
  const newest = completed.toSorted((left, right) => (left.createdAt < right.createdAt ? 1 : -1))[0]
  return newest === undefined ? { kind: 'nothing' } : { kind: 'found', path: newest.status!.path }
}

export function restoreFromProblem(observed: Observed, status: StreamJobStatus): string | undefined {
  const isFirst = status.start === 0 && status.transition === undefined
  if (!isFirst || restoreFromOf(observed, status).kind === 'found') return undefined
  return 'spec.restoreFrom is latest, and there is no completed Savepoint of a job of this name. Name a snapshot, or take restoreFrom out to begin from nothing.'
}

export interface AskedRestore {
  readonly restoreNonce: number
  readonly restoreFrom?: string
  /** What the closed start leaves is either where the next one begins, or nothing to it. */
  readonly mode: 'last-state' | 'stateless'
  readonly modeOfSpec: false
}

/** What restoreNonce asks for and no start has begun at yet. */
export function askedRestore(observed: Observed, status: StreamJobStatus): AskedRestore | undefined {
  const restoreNonce = validSpec(observed, status)?.restoreNonce
  if (restoreNonce === undefined || restoreNonce === status.answered.restore) return undefined
  const from = restoreFromOf(observed, status)
  return from.kind === 'found' && from.path !== undefined
    ? { restoreNonce, restoreFrom: from.path, mode: 'stateless', modeOfSpec: false }
    : { restoreNonce, mode: 'last-state', modeOfSpec: false }
}
