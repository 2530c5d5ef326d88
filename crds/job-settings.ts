// What a StreamJob's spec says about how the job runs, by the names that the job's own config has for it (env.config).

import type { StreamJob } from './stream-job.ts'

type Spec = StreamJob['spec']

type Said<Settings> = { readonly [Name in keyof Settings]?: Exclude<Settings[Name], undefined> }

/** Only what the spec says: the rest is the job's own. Durations in ms; `unlimited` stays the word, so that it can be written as JSON. */
export function settingsOfSpec({ checkpointing, restartStrategy, failoverStrategy }: Spec) {
  const { interval, mode, timeout, minPause, tolerableFailures, retained, onCancellation } = checkpointing
  const said = {
    checkpointIntervalMs: interval,
    checkpointMode: mode,
    checkpointTimeoutMs: timeout,
    minPauseMs: minPause,
    tolerableFailures,
    retained,
    onCancellation,
    restartStrategy: restartStrategy && restartSettings(restartStrategy),
    failoverStrategy,
  }
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) as Said<typeof said>
}

function restartSettings(strategy: NonNullable<Spec['restartStrategy']>) {
  const { type } = strategy
  switch (type) {
    case 'none':
      return { type }
    case 'fixed-delay':
      return { type, attempts: strategy.attempts, delayMs: strategy.delay }
    case 'failure-rate': {
      const { failuresPerInterval, interval, delay } = strategy
      return { type, failuresPerInterval, intervalMs: interval, delayMs: delay }
    }
    case 'exponential-delay': {
      const { initialDelay, maxDelay, multiplier, resetAfter, jitter } = strategy
      return { type, initialDelayMs: initialDelay, maxDelayMs: maxDelay, multiplier, resetAfterMs: resetAfter, jitter }
    }
    default:
      return strategy satisfies never
  }
}
