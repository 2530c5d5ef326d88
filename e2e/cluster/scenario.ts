// What a file in e2e/scenarios exports, as `scenario`.

import type { Abilities, Cluster } from './contract.ts'

export interface Scenario {
  /** As a user would say it. The file has the same name with dashes. */
  readonly name: string
  /** Run every time; the others take turns. */
  readonly core: boolean
  /** About how long it takes; one out of the core that would not fit into the time that is left is left to another turn. Default: three minutes. */
  readonly usualMs?: number
  /** Without these the scenario cannot be run on a cluster. */
  readonly needs?: readonly (keyof Abilities)[]
  /** Default: ten minutes. */
  readonly deadlineMs?: number
  /** Rejects where something is not as it must be. */
  run(cluster: Cluster, context: ScenarioContext): Promise<void>
}

export interface ScenarioContext {
  /** Of runtime and operator; on every node. */
  readonly image: string
  /** Aborted at the deadline. */
  readonly signal: AbortSignal
  /** Printed at once, with the time since the scenario began. */
  readonly say: (text: string) => void
}
