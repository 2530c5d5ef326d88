// A manifest read by uid: operators keep their state when they move between chains.

import type { OperatorSnapshot } from './contract.ts'
import type { EnumeratorSnapshot, Manifest } from './manifest.ts'

export interface RecordedOperator {
  readonly uid: string
  /** By the subtasks of then. */
  readonly perSubtask: readonly (OperatorSnapshot | null)[]
  readonly enumerator: EnumeratorSnapshot | undefined
  readonly maxParallelism: number
  /** Every subtask of its vertex had finished. */
  readonly whollyFinished: boolean
}

/** All operators, also those that hold nothing. */
export function recordedOperators(manifest: Manifest): ReadonlyMap<string, RecordedOperator> {
  const operators = new Map<string, RecordedOperator>()
  for (const vertex of manifest.vertices) {
    const whollyFinished = vertex.finished.every((finished) => finished)
    for (const uid of vertex.uids) {
      operators.set(uid, {
        uid,
        perSubtask: Object.hasOwn(vertex.operators, uid) ? vertex.operators[uid]! : vertex.finished.map(() => null),
        enumerator: Object.hasOwn(manifest.enumerators, uid) ? manifest.enumerators[uid] : undefined,
        maxParallelism: vertex.maxParallelism,
        whollyFinished,
      })
    }
  }
  return operators
}

/** As messages call it. */
export const ENUMERATOR = 'its split enumerator'

/** Names of the states that an operator holds, for messages; empty: it holds nothing. Transactions are not among them. */
export function stateNamesOf(operator: RecordedOperator): string[] {
  const names = new Set<string>()
  for (const snapshot of operator.perSubtask) {
    for (const { name } of snapshot?.keyed?.states ?? []) names.add(name)
    for (const name of Object.keys(snapshot?.operatorState ?? {})) names.add(name)
  }
  if (operator.enumerator !== undefined) names.add(ENUMERATOR)
  return [...names]
}

export function hasKeyedState(operator: RecordedOperator): boolean {
  return operator.perSubtask.some((snapshot) => snapshot?.keyed !== undefined)
}

/** Empty also for an operator that is not recorded. */
export function keyedStateNamesOf(operator: RecordedOperator | undefined): string[] {
  const states = operator?.perSubtask.flatMap((snapshot) => snapshot?.keyed?.states ?? []) ?? []
  return [...new Set(states.map(({ name }) => name))]
}

export function transactionsOf(operator: RecordedOperator): string[] {
  return operator.perSubtask.flatMap((snapshot) => snapshot?.committables ?? []).map(({ transaction }) => transaction)
}
