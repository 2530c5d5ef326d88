import { describe, expect, it } from 'vitest'
import type { RestartStrategySettings } from '../job/contract.ts'
import { createRestartStrategy } from './restart-strategy.ts'

/** A failure at each moment, after the job ran for `ranMs`; gives the delays, or `fails`. */
function play(
  settings: RestartStrategySettings,
  failures: readonly (readonly [nowMs: number, ranMs?: number])[],
  { random = 0.5, restartsBefore = 0 } = {},
): (number | 'fails')[] {
  const strategy = createRestartStrategy(settings, { next: () => random }, restartsBefore)
  return failures.map(([nowMs, ranMs]) => {
    strategy.onRunning(ranMs === undefined ? undefined : nowMs - ranMs, nowMs)
    const decision = strategy.onFailure(nowMs)
    return 'fail' in decision ? 'fails' : decision.restartInMs
  })
}

const exponential = {
  type: 'exponential-delay',
  initialDelayMs: 100,
  maxDelayMs: 1000,
  multiplier: 2,
  resetAfterMs: 5000,
  jitter: 0,
} as const

describe('restart strategies', () => {
  it('none: fails at the first failure', () => {
    expect(play({ type: 'none' }, [[0]])).toEqual(['fails'])
  })

  it('fixed-delay: restarts so many times in all, however far apart', () => {
    expect(play({ type: 'fixed-delay', attempts: 2, delayMs: 500 }, [[0], [1e6], [1e9]])).toEqual([500, 500, 'fails'])
  })

  it('fixed-delay: counts the restarts before the coordinator itself was restarted', () => {
    expect(play({ type: 'fixed-delay', attempts: 2, delayMs: 500 }, [[0], [1]], { restartsBefore: 1 })).toEqual([
      500,
      'fails',
    ])
  })

  it('failure-rate: fails at one failure more than allowed within the interval', () => {
    const settings = { type: 'failure-rate', failuresPerInterval: 2, intervalMs: 1000, delayMs: 50 } as const
    expect(play(settings, [[0], [400], [999]])).toEqual([50, 50, 'fails'])
    expect(play(settings, [[0], [400], [1000], [1400], [2399]])).toEqual([50, 50, 50, 50, 50])
    expect(play(settings, [[0], [400], [1000], [1399]])).toEqual([50, 50, 50, 'fails'])
  })

  it('exponential-delay: grows to its largest delay and never gives up', () => {
    expect(play(exponential, [[0], [1], [2], [3], [4], [5]])).toEqual([100, 200, 400, 800, 1000, 1000])
  })

  it('exponential-delay: begins anew only after the job was stable for long enough', () => {
    expect(play(exponential, [[0], [10_000, 4999], [20_000, 5000], [30_000]])).toEqual([100, 200, 100, 200])
  })

  it('exponential-delay: time spent waiting or failing again does not count as stable', () => {
    expect(play(exponential, [[0], [100_000], [200_000]])).toEqual([100, 200, 400])
  })

  it('exponential-delay: jitter spreads evenly around the delay, and never above the largest', () => {
    const settings = { ...exponential, jitter: 0.1 }
    expect(play(settings, [[0], [1]], { random: 0 })).toEqual([90, 180])
    expect(play(settings, [[0], [1], [2], [3], [4]], { random: 0.999_999 })).toEqual([110, 220, 440, 880, 1000])
  })

  it('says why it gives up', () => {
    const strategy = createRestartStrategy({ type: 'fixed-delay', attempts: 0, delayMs: 1 }, { next: () => 0 })
    expect(strategy.onFailure(0)).toEqual({ fail: 'It was restarted 0 times, 0 are allowed (fixed-delay)' })
  })
})
