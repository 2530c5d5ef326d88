// What a coordinator may do with the HEAD that it reads first (rule 2).

import { start } from '../base/ids.ts'
import type { Start } from '../base/ids.ts'
import type { ObjectKey } from './contract.ts'
import { drainedStopOf } from './head.ts'
import type { Head, RestorePoint } from './head-contract.ts'

export type StartDecision =
  /** There is no HEAD: create it (newJob). */
  | { readonly kind: 'first'; readonly start: Start }
  /** The same start goes on: raise the incarnation, restore from HEAD's restore point. */
  | { readonly kind: 'resume' }
  /** A new start begins (beginStart), by default from HEAD's restore point. */
  | { readonly kind: 'next'; readonly start: Start }
  /** This start has ended: run nothing, do not raise; finish the commits that HEAD permits, report. */
  | { readonly kind: 'ended' }
  /** A later start has begun, and has taken over what HEAD permitted: run and commit nothing, report. */
  | { readonly kind: 'stale' }

export interface WantedStart {
  /** undefined: the local rule. */
  readonly start: Start | undefined
  /** Begin at this manifest (`--from`); undefined: where HEAD says. */
  readonly from?: ObjectKey | undefined
}

/**
 * `wanted.start` undefined: the local rule (28), where whoever gives the same command again means "go on": resume while nothing ended,
 * the next start after `suspended` or `stopped`; a finished, drained, failed or cancelled job is over (local-identity.ts begins a new one).
 * `from` makes a new start, except that the command which began there is given again: its start goes on, or what it has committed since
 * would be written twice.
 */
export function decideStart(
  head: Pick<Head, 'start' | 'end' | 'restoredFrom'> | undefined,
  wanted: WantedStart,
): StartDecision {
  if (head === undefined) return { kind: 'first', start: wanted.start ?? start(1) }
  const wantedStart = wanted.start ?? impliedStart(head, wanted.from)
  if (wantedStart < head.start) return { kind: 'stale' }
  if (wantedStart > head.start) return { kind: 'next', start: wantedStart }
  return head.end.kind === 'none' ? { kind: 'resume' } : { kind: 'ended' }
}

function impliedStart(head: Pick<Head, 'start' | 'end' | 'restoredFrom'>, from: ObjectKey | undefined): Start {
  const { kind } = head.end
  const goesOn = kind === 'suspended' || (kind === 'stopped' && drainedStopOf(head.end) === undefined)
  const begins = kind === 'none' && from !== undefined && !beganAt(head.restoredFrom, from)
  return goesOn || begins ? start(head.start + 1) : head.start
}

function beganAt(point: RestorePoint, from: ObjectKey): boolean {
  return point.kind === 'manifest' && point.manifest.path === from
}
