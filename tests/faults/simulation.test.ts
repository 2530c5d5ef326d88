// Faults planted in the protocol: a simulation that does not catch them would prove nothing.

import { describe, expect, it } from 'vitest'
import { plantedFaults } from '../../runtime/base/planted.ts'
import type { PlantedFault } from '../../runtime/base/planted.ts'
import { numbersTo, runJobSeeds } from '../support/job-seeds.ts'

/** A planted fault must be caught within so many seeds. */
const seedsToCatch = 200

/** Which have caught it last, of these or of more: tried first, since most runs end there. Any other may do it as well. */
const tellingSeeds: Readonly<Record<PlantedFault, readonly number[]>> = {
  'no-fence': [1],
  'alignment-skipped': [5],
  'commit-before-swap': [8],
  'frame-not-resent': [6],
  'ids-reused': [1],
  'finished-producer-counted-early': [59],
  'idle-by-backpressure': [224],
  'neighbour-key-group': [1],
  'async-element-lost': [3],
  'savepoint-subsumes': [37],
  'timer-lost-between-two': [37],
  'watermark-restored-too-high': [13],
  'stop-barrier-leaks': [26],
  'item-dealt-twice': [30],
  'reconcile-skipped': [27],
  'given-up-adopted': [78],
  'final-state-forgotten': [65],
  'complete-repeated-too-high': [10],
  'rescale-keeps-old-size': [18],
  'bound-readers-ignored': [102],
  'stale-coordinator-terminates': [19],
  'restore-point-listed': [43],
  'begun-before-all-restored': [11],
  'savepoint-swept': [21],
  'savepoint-unwritten': [22],
}

describe('the simulation catches, within 200 seeds,', () => {
  it.each(plantedFaults)('the planted fault %s', async (fault) => {
    const first = tellingSeeds[fault]
    const seeds = [...first, ...numbersTo(seedsToCatch).filter((seed) => !first.includes(seed))].slice(0, seedsToCatch)
    const reports = await runJobSeeds({ seeds, planted: [fault], untilFirstFailure: true })
    expect(reports.filter(({ failures }) => failures.length > 0).length).toBeGreaterThan(0)
  })
})
