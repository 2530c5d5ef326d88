// Each seed breaks in another way: for the runner's test.

import type { ScenarioModule } from '../scenario.ts'

export const scenario: ScenarioModule['scenario'] = async (world) => {
  if (world.seed === 1) for (;;) world.random.bits()
  if (world.seed === 2) process.exit(7)
  if (world.seed === 3) throw new Error('on purpose')
  let kills = 0
  if (world.seed === 4) {
    kills = 1
    try {
      Date.now()
    } catch {
      // Swallowed, as code under test might.
    }
  }
  return { failures: [], faults: { kills } }
}
