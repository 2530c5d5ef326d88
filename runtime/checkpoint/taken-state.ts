// What of a recorded operator today's operator under its uid takes besides keyed state: what it does not would be lost without a word.

import type { VertexId } from '../base/ids.ts'
import type { ChainedOperator, JobGraph } from '../job/contract.ts'
import type { OperatorStateSnapshot } from './contract.ts'
import { ENUMERATOR, stateNamesOf, transactionsOf } from './recorded-operators.ts'
import type { RecordedOperator } from './recorded-operators.ts'

/** Which operator has a uid today, and where it runs. */
export interface Taker {
  readonly operator: ChainedOperator
  readonly vertex: VertexId
}

export function takersOf(graph: JobGraph): ReadonlyMap<string, Taker> {
  return new Map(
    graph.vertices.flatMap(({ id, chain }) =>
      chain.map((operator) => [operator.uid, { operator, vertex: id }] as const),
    ),
  )
}

export function takes({ operatorState = [] }: ChainedOperator, name: string, stored: OperatorStateSnapshot): boolean {
  return operatorState === 'all broadcast' ? stored.redistribution === 'broadcast' : operatorState.includes(name)
}

export function takesEnumerator({ factory }: ChainedOperator): boolean {
  return factory.kind === 'source'
}

/** Names of what is stored and not taken, for messages. Keyed state has a check of its own; a list without items is no loss. */
export function stateNotTaken(recorded: RecordedOperator, operator: ChainedOperator | undefined): string[] {
  if (operator === undefined) return stateNamesOf(recorded)
  const names = new Set<string>()
  for (const snapshot of recorded.perSubtask) {
    for (const [name, state] of Object.entries(snapshot?.operatorState ?? {}))
      if (state.count > 0 && !takes(operator, name, state)) names.add(name)
  }
  if (recorded.enumerator !== undefined && !takesEnumerator(operator)) names.add(ENUMERATOR)
  return [...names]
}

export function transactionsNotTaken(recorded: RecordedOperator, operator: ChainedOperator | undefined): string[] {
  const commits = operator?.factory.kind === 'operator' && operator.factory.twoPhase
  return commits ? [] : transactionsOf(recorded)
}
