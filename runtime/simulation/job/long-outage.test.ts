// Seeds that once failed: what an outage breaks must be heard by a coordinator that has nothing to say to anybody itself.

import { expect, it } from 'vitest'
import { SeededRandom } from '../random.ts'
import { scenario } from '../scenarios/job.ts'
import { runSeed } from '../seed.ts'
import { drawShape } from './draw-shape.ts'

it.each([440, 1421])(
  'a job that takes no checkpoints outlives an outage above every deadline (seed %i)',
  async (seed) => {
    expect(drawShape(new SeededRandom(seed).split('scenario'))).toMatchObject({
      trial: 'long outage',
      ending: 'bounded',
      checkpointIntervalMs: undefined,
    })
    const { failures } = await runSeed(scenario, seed, { planted: new Set<never>() })
    expect(failures).toEqual([])
  },
)
