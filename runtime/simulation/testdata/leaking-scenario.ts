// A variable outside the world makes a run depend on those before it: for the runner's test.

import type { ScenarioModule } from '../scenario.ts'

let runs = 0

export const scenario: ScenarioModule['scenario'] = async (world) => {
  world.note('runs before', runs++)
  return { failures: [], faults: { kill: 1 } }
}
