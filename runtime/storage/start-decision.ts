// What a coordinator may do with the HEAD that it reads first (rule 2).

import { start } from '../base/ids.ts'
import type { Start } from '../base/ids.ts'
import type { Head } from './head-contract.ts'

export type StartDecision =
  /** There is no HEAD: create it (newJob). */
  | { readonly kind: 'first'; readonly start: Start }
  /** The same start goes on: raise the incarnation, restore from HEAD's restore point. */
  | { readonly kind: 'resume' }
  /** A new start begins (beginStart), by default from HEAD's restore point. */
  | { readonly kind: 'next'; readonly start: Start }
  /** This start has ended: run nothing, do not raise; finish the commits that HEAD permits, report. */
  | { readonly kind: 'ended' }
  /** A later start has begun: likewise. */
  | { readonly kind: 'stale' }

/**
 * `wanted.start` undefined: the local rule (28), where whoever gives the same command again means "go on": resume while nothing ended,
 * the next start after `suspended` or `stopped`; a finished, failed or cancelled job is over (local-identity.ts begins a new one).
 */
export function decideStart(
  head: Pick<Head, 'start' | 'end'> | undefined,
  wanted: { readonly start: Start | undefined },
): StartDecision {
  if (head === undefined) return { kind: 'first', start: wanted.start ?? start(1) }
  const wantedStart = wanted.start ?? impliedStart(head)
  if (wantedStart < head.start) return { kind: 'stale' }
  if (wantedStart > head.start) return { kind: 'next', start: wantedStart }
  return head.end.kind === 'none' ? { kind: 'resume' } : { kind: 'ended' }
}

function impliedStart(head: Pick<Head, 'start' | 'end'>): Start {
  const goesOn = head.end.kind === 'suspended' || head.end.kind === 'stopped'
  return goesOn ? start(head.start + 1) : head.start
}
