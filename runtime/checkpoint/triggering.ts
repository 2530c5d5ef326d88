// When the next snapshot starts (rules 3, 15, 16): one decision over one consistent reading of the facts. Flink once read the
// pending count fresh and the last end stale, and ignored the pause (scenarios.md B9).

import type { WaitingRequest } from './requests.ts'

export interface TriggerFacts {
  readonly request: WaitingRequest | undefined
  /** Set when only a checkpoint lets the job go on: the earliest moment of its (next) try. */
  readonly finalNotBeforeMs: number | undefined
  /** The next start that the interval asks for. */
  readonly periodicDueMs: number | undefined
  /** End, completed or aborted, of the previous snapshot of any kind. */
  readonly lastEndMs: number | undefined
  readonly minPauseMs: number
}

export type TriggerDecision =
  | { readonly start: 'request'; readonly request: WaitingRequest }
  | { readonly start: 'final' | 'periodic' }
  /** undefined: nothing will start before something happens. */
  | { readonly start: undefined; readonly waitUntilMs: number | undefined }

/** Asked only while all subtasks run and no snapshot is pending. Requests and final checkpoints bypass the pause. */
export function decideTrigger(facts: TriggerFacts, nowMs: number): TriggerDecision {
  const { request, finalNotBeforeMs, periodicDueMs, lastEndMs, minPauseMs } = facts
  if (request !== undefined) return { start: 'request', request }
  if (finalNotBeforeMs !== undefined && finalNotBeforeMs <= nowMs) return { start: 'final' }
  const pauseEndMs = lastEndMs === undefined ? -Infinity : lastEndMs + minPauseMs
  const periodicMs = periodicDueMs === undefined ? Infinity : Math.max(periodicDueMs, pauseEndMs)
  if (periodicMs <= nowMs) return { start: 'periodic' }
  const waitUntilMs = Math.min(periodicMs, finalNotBeforeMs ?? Infinity)
  return { start: undefined, waitUntilMs: waitUntilMs === Infinity ? undefined : waitUntilMs }
}

/** Starts keep to the grid of the interval; starts that were missed collapse into the one that happens now. */
export function nextPeriodicDue(dueMs: number, intervalMs: number, nowMs: number): number {
  if (dueMs > nowMs) return dueMs
  return dueMs + (Math.floor((nowMs - dueMs) / intervalMs) + 1) * intervalMs
}

const finalRetryFirstMs = 100
const finalRetryLastMs = 10_000

/** Back-off of a checkpoint without which the job cannot end: it is tried again until one completes, but not in a busy loop. */
export function finalRetryDelayMs(failures: number): number {
  return failures === 0 ? 0 : Math.min(finalRetryFirstMs * 2 ** Math.min(failures - 1, 20), finalRetryLastMs)
}
