// Whether the keyed state of a restore point can be read as the job declares it today: asked before anything runs, so that no record is
// processed by the rest of a job whose state will be refused. Each backend asks again when it restores (state/heap/unread.ts).

import type { MillraceError } from '../base/errors.ts'
import type { JobGraph } from '../job/contract.ts'
import type { StateDescriptor } from '../state/contract.ts'
import { whyOtherTimers, whyUnreadable } from '../state/description.ts'
import { stateError, unreadableState } from '../state/errors.ts'
import type { KeyedStateDescription } from './contract.ts'
import type { RecordedOperator } from './recorded-operators.ts'

/** MR-T02 naming operator, state and what differs, or MR-T03 for a damaged description; each of them. State that nobody declares fits. */
export function* unreadableStates(
  graph: JobGraph,
  recorded: ReadonlyMap<string, RecordedOperator>,
): Generator<MillraceError, void> {
  for (const { uid, states = [], timerMeaning } of graph.vertices.flatMap((vertex) => vertex.chain)) {
    const operator = recorded.get(uid)
    if (operator === undefined) continue
    for (const today of states) {
      for (const stored of storedUnder(today, operator)) {
        const refusal = refusalOf(uid, stored, today)
        if (refusal !== undefined) yield refusal
      }
    }
    for (const then of timersStoredIn(operator)) {
      const why = whyOtherTimers(then, timerMeaning)
      if (why !== undefined) yield unreadableState({ uid, name: 'timers', why })
    }
  }
}

function refusalOf(uid: string, stored: KeyedStateDescription, today: StateDescriptor): MillraceError | undefined {
  const { name } = today
  try {
    const why = whyUnreadable(stored, today)
    return why === undefined ? undefined : unreadableState({ uid, name, why })
  } catch (cause) {
    return stateError('MR-T03', `Operator '${uid}', state '${name}': its description.`, cause)
  }
}

/** Each form once in which the subtasks stored it: hundreds of them stored it in the same one. */
function storedUnder({ name }: StateDescriptor, { perSubtask }: RecordedOperator): readonly KeyedStateDescription[] {
  const forms = new Map<string, KeyedStateDescription>()
  for (const snapshot of perSubtask) {
    for (const state of snapshot?.keyed?.states ?? []) {
      if (state.name !== name || state.kind === 'timers') continue
      const { key, value, mapKey } = state.codecs
      const form = [state.kind, key, value, mapKey].map((part) => (typeof part === 'object' ? idOf(part) : part))
      forms.set(JSON.stringify(form), state)
    }
  }
  return [...forms.values()]
}

/** What timers stand for that are held, each once. Of those that an earlier version wrote only the backend sees whether there are any. */
function timersStoredIn({ perSubtask }: RecordedOperator): ReadonlySet<string> {
  const meanings = perSubtask.flatMap((snapshot) => snapshot?.keyed?.states ?? []).map((state) => state.timerMeaning)
  return new Set(meanings.filter((meaning) => meaning !== undefined))
}

function idOf({ kind, version, fingerprint }: KeyedStateDescription['codecs']['key']): readonly unknown[] {
  return [kind, version, fingerprint]
}
