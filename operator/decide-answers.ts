// The three kinds of decisions, and the events that go with them.

import type { Action, Decision, EventAction, Observed, StreamJobStatus } from './contract.ts'
import { refreshed } from './status-refresh.ts'

/** Conditions and figures are brought up to date with every write. */
export function record(
  observed: Observed,
  status: StreamJobStatus,
  why: string,
  events: readonly EventAction[] = [],
): Decision {
  return { kind: 'record', status: refreshed(observed, status), why, events }
}

export function act(why: string, ...actions: readonly Action[]): Decision {
  return { kind: 'act', actions, why }
}

export function wait(why: string, forMs?: number): Decision {
  return { kind: 'wait', forMs, why }
}

export function normal(reason: string, message: string): EventAction {
  return { type: 'event', kind: 'Normal', reason, message }
}

export function warning(reason: string, message: string): EventAction {
  return { type: 'event', kind: 'Warning', reason, message }
}
