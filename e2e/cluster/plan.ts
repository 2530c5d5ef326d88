// Which scenarios are run, in which order.

import { createHash } from 'node:crypto'
import type { Abilities } from './contract.ts'
import type { E2eOptions } from './options.ts'
import type { Scenario } from './scenario.ts'

export interface Plan {
  /** Always run. */
  readonly fixed: readonly Scenario[]
  /** Run in this order while time is left. */
  readonly turns: readonly Scenario[]
  /** Asked for, but not possible on this cluster. */
  readonly impossible: readonly Scenario[]
}

const usualMsDefault = 180_000

/** The first of them that is likely to end in time. */
export function nextTurn(turns: readonly Scenario[], leftMs: number): Scenario | undefined {
  return turns.find(({ usualMs = usualMsDefault }) => usualMs <= leftMs)
}

/** Throws when a name is nobody's. */
export function planOf(
  scenarios: readonly Scenario[],
  options: Pick<E2eOptions, 'names' | 'all'> & { readonly turn: string; readonly can: Abilities },
): Plan {
  const { names, all, turn, can } = options
  const wordsOf = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-')
  const unknown = names.find((name) => !scenarios.some((scenario) => wordsOf(scenario.name) === wordsOf(name)))
  if (unknown !== undefined) throw new Error(`there is no scenario "${unknown}"; --list prints them`)
  const asked = scenarios.filter((scenario) => names.some((name) => wordsOf(name) === wordsOf(scenario.name)))
  const wanted = asked.length > 0 ? asked : scenarios
  const possible = wanted.filter(({ needs = [] }) => needs.every((need) => can[need]))
  const isFixed = ({ core }: Scenario): boolean => all || asked.length > 0 || core
  const place = ({ name }: Scenario): string => createHash('sha256').update(`${turn} ${name}`).digest('hex')
  return {
    fixed: possible.filter(isFixed),
    turns: possible
      .filter((scenario) => !isFixed(scenario))
      .toSorted((one, other) => (place(one) < place(other) ? -1 : 1)),
    impossible: wanted.filter((scenario) => !possible.includes(scenario) && isFixed(scenario)),
  }
}
