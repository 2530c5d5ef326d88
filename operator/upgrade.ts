// How HEAD is closed before anything is taken away (rule 2, protocol.md 5), for every mode in every state of a job: O13's table. What is not
// known blocks; no stateful mode ever becomes stateless by itself.

import type { CloseMode, CoordinatorFact, Observed, StreamJobStatus } from './contract.ts'
import { isHeadRefused, ownCoordinator, validSpec } from './decide-facts.ts'
import { timeMs } from './status-time.ts'

export interface ToClose {
  readonly mode: CloseMode
  /** undefined: nobody answers for the start. */
  readonly coordinator:
    | Pick<CoordinatorFact, 'state' | 'end' | 'completedInStart' | 'checkpointing' | 'restorePoint'>
    | undefined
  /** The revision that is closed has once completed a checkpoint, or run without them. */
  readonly isStable: boolean
  /** How long nobody has answered, at least. */
  readonly silentMs: number
  /** It has been tried for as long as the progress deadline. */
  readonly isOverdue: boolean
  /** restoreNonce asks for it: the mode is not that of the spec. */
  readonly isRestore: boolean
}

export type CloseChoice =
  /** It has ended: its restore point is what there is. */
  | { readonly how: 'read' }
  /** Ask the coordinator: `stop` takes a savepoint, `close` suspends. */
  | { readonly how: 'stop' | 'close' | 'cancel' }
  /** Nobody answers: an admin pod closes HEAD. */
  | { readonly how: 'admin' }
  | { readonly how: 'wait'; readonly why: string }
  /** It goes on by itself when that changes; the remedy says what the user can do. */
  | { readonly how: 'block'; readonly reason: string; readonly message: string }

/** A coordinator that was just killed is back within it. */
export const silenceMs = 10_000

export function chooseClose({ mode, coordinator, isStable, silentMs, isOverdue, isRestore }: ToClose): CloseChoice {
  if (coordinator === undefined) {
    // Of a version that completed nothing there is nothing that a savepoint would save: HEAD's restore point is the one of before.
    if (mode === 'savepoint' && isStable) return unreachable
    if (silentMs < silenceMs) return { how: 'wait', why: 'the coordinator does not answer yet' }
    return { how: 'admin' }
  }
  if (coordinator.end !== 'none') return { how: 'read' }
  switch (mode) {
    case 'savepoint':
      if (isStable || coordinator.completedInStart) return { how: 'stop' }
      // What never completed anything may never complete a savepoint either.
      return coordinator.state === 'running' && !isOverdue ? { how: 'stop' } : { how: 'close' }
    case 'last-state':
      if (!losesItsState(coordinator, isStable)) return { how: 'close' }
      return isRestore ? nothingLatest : nothingToRestore
    case 'stateless':
      return { how: 'close' }
    case 'delete':
      return { how: 'cancel' }
    default:
      return mode satisfies never
  }
}

/**
 * Without checkpoints what the job has gathered since its start would be gone, which nobody asked for. Where it is not known whether it takes
 * any, one that is stable has run for long enough to have completed one.
 */
function losesItsState(
  { checkpointing, completedInStart }: NonNullable<ToClose['coordinator']>,
  isStable: boolean,
): boolean {
  return !completedInStart && (checkpointing === 'off' || (checkpointing === undefined && isStable))
}

const unreachable: CloseChoice = {
  how: 'block',
  reason: 'CoordinatorUnreachable',
  message:
    'A savepoint needs the coordinator, and it does not answer. Nothing was taken away; it is taken as soon as it answers. To go on from the last checkpoint instead, set spec.upgradeMode to last-state.',
}

const nothingToRestore: CloseChoice = {
  how: 'block',
  reason: 'NothingToRestore',
  message:
    'The job has completed no checkpoint since its start and none may come, so last-state would lose all state since then. Set spec.upgradeMode to savepoint to take it along, or to stateless to give it up.',
}

/** Of a restart at `latest`. */
const nothingLatest: CloseChoice = {
  how: 'block',
  reason: 'NothingToRestore',
  message:
    'The job has completed no checkpoint since its start and none may come, so to begin at the latest would lose all state since then. Nothing was taken away. Name a snapshot in spec.restoreFrom and raise spec.restoreNonce, or take restoreNonce back to leave it to spec.upgradeMode.',
}

/** How HEAD would be closed now; conditions show what blocks. */
export function closeChoice(observed: Observed, status: StreamJobStatus): CloseChoice {
  const transition = status.transition!
  const own = ownCoordinator(observed, status)
  const completed = own?.completedInStart === true
  const silentMs = observed.nowMs - timeMs(transition.stepAt)
  const deadlineMs = validSpec(observed, status)?.rollback.progressDeadline ?? Number.POSITIVE_INFINITY
  return chooseClose({
    // Of a job that has failed or finished there is nothing newer than what HEAD shows.
    mode: transition.mode === 'savepoint' && status.ended !== undefined ? 'last-state' : transition.mode,
    coordinator: own,
    isStable: completed || transition.from === undefined || transition.from === status.stableRevision,
    silentMs,
    isOverdue: silentMs > deadlineMs,
    isRestore: transition.restoreNonce !== undefined,
  })
}

/** HEAD was closed by a pod, and shows that a job which was stable has no snapshot: it took none. */
export function lostState(observed: Observed, status: StreamJobStatus): boolean {
  const { transition, restorePoint, stableRevision, begin } = status
  const { mode, from, to, restoreFrom } = transition!
  if (mode === 'stateless' || to === undefined || restoreFrom !== undefined) return false
  // Nor is it HEAD's: a start that was rolled back left that, and what is gone back to is known.
  if (isHeadRefused(status)) return false
  if (observed.spec.fits && observed.spec.spec.upgradeMode === 'stateless') return false
  return (
    restorePoint?.kind === 'empty' &&
    restorePoint.start > 0 &&
    from === stableRevision &&
    from !== undefined &&
    begin?.empty !== true
  )
}
