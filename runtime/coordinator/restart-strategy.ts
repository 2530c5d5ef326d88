// How often, and after how long, a failed job is restarted. Pure machines: each failure gets an answer.

import type { Random } from '../base/environment.ts'
import type { RestartStrategySettings } from '../job/contract.ts'

/** `fail`: why no further restart is allowed, as a sentence that the cause follows. */
export type RestartDecision = { readonly restartInMs: number } | { readonly fail: string }

export interface RestartStrategy {
  onFailure(nowMs: number): RestartDecision
  /** Told before a failure: since when all subtasks had run; undefined: they did not, since the failure before. */
  onRunning(sinceMs: number | undefined, nowMs: number): void
}

/**
 * `random` is for jitter. `restartsBefore`: what HEAD has counted for this start, so that a coordinator's own restart does not forget
 * them (fixed-delay).
 */
export function createRestartStrategy(
  settings: RestartStrategySettings,
  random: Pick<Random, 'next'>,
  restartsBefore = 0,
): RestartStrategy {
  switch (settings.type) {
    case 'none':
      return never
    case 'fixed-delay':
      return fixedDelay(settings, restartsBefore)
    case 'failure-rate':
      return failureRate(settings)
    case 'exponential-delay':
      return exponentialDelay(settings, random)
    default:
      return settings satisfies never
  }
}

type SettingsOf<Type extends RestartStrategySettings['type']> = Extract<RestartStrategySettings, { type: Type }>

const ignoreRunning = (): void => undefined

const never: RestartStrategy = {
  onFailure: () => ({ fail: 'The restart strategy is none' }),
  onRunning: ignoreRunning,
}

function fixedDelay({ attempts, delayMs }: SettingsOf<'fixed-delay'>, restartsBefore: number): RestartStrategy {
  let restarts = restartsBefore
  return {
    onFailure() {
      if (restarts >= attempts)
        return { fail: `It was restarted ${restarts} times, ${attempts} are allowed (fixed-delay)` }
      restarts++
      return { restartInMs: delayMs }
    },
    onRunning: ignoreRunning,
  }
}

/** Fails at the failure that is one more than allowed within the interval. */
function failureRate({ failuresPerInterval, intervalMs, delayMs }: SettingsOf<'failure-rate'>): RestartStrategy {
  /** Moments of the failures within the last interval; at most one more than allowed. */
  let failures: number[] = []
  return {
    onFailure(nowMs) {
      failures = [...failures.filter((momentMs) => nowMs - momentMs < intervalMs), nowMs]
      if (failures.length <= failuresPerInterval) return { restartInMs: delayMs }
      return {
        fail: `It failed ${failures.length} times within ${intervalMs} ms, ${failuresPerInterval} are allowed (failure-rate)`,
      }
    },
    onRunning: ignoreRunning,
  }
}

/** The delay grows with each failure and is the initial one again after the job was stable for `resetAfterMs`. Never gives up. */
function exponentialDelay(settings: SettingsOf<'exponential-delay'>, random: Pick<Random, 'next'>): RestartStrategy {
  const { initialDelayMs, maxDelayMs, multiplier, resetAfterMs, jitter } = settings
  let nextDelayMs = initialDelayMs
  return {
    onFailure() {
      const delayMs = nextDelayMs
      nextDelayMs = Math.min(delayMs * multiplier, maxDelayMs)
      // Evenly in delay ± jitter, so that many jobs that failed together do not come back together.
      const spread = delayMs * jitter * (2 * random.next() - 1)
      return { restartInMs: Math.round(Math.min(Math.max(delayMs + spread, 0), maxDelayMs)) }
    },
    onRunning(sinceMs, nowMs) {
      if (sinceMs !== undefined && nowMs - sinceMs >= resetAfterMs) nextDelayMs = initialDelayMs
    },
  }
}
