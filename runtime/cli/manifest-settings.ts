// What a StreamJob's spec means to a job on this machine, and which of its fields mean nothing here.

import type { StreamJob } from '../../crds/stream-job.ts'
import type { JobSettings, RestartStrategySettings } from '../job/contract.ts'

type Spec = StreamJob['spec']

/** Only what the manifest says: the rest is the job's own. */
export function settingsOfManifest({ checkpointing, restartStrategy, failoverStrategy }: Spec): Partial<JobSettings> {
  const { interval, mode, timeout, minPause, tolerableFailures, retained, onCancellation } = checkpointing
  const said: { readonly [Name in keyof JobSettings]?: JobSettings[Name] | undefined } = {
    checkpointIntervalMs: interval,
    checkpointMode: mode,
    checkpointTimeoutMs: timeout,
    minPauseMs: minPause,
    tolerableFailures: tolerableFailures === 'unlimited' ? Number.POSITIVE_INFINITY : tolerableFailures,
    retained,
    onCancellation,
    restartStrategy: restartStrategy === undefined ? undefined : restartSettings(restartStrategy),
    failoverStrategy,
  }
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) as Partial<JobSettings>
}

function restartSettings(strategy: NonNullable<Spec['restartStrategy']>): RestartStrategySettings {
  switch (strategy.type) {
    case 'none':
      return { type: 'none' }
    case 'fixed-delay':
      return { type: 'fixed-delay', attempts: strategy.attempts, delayMs: strategy.delay }
    case 'failure-rate': {
      const { failuresPerInterval, interval, delay } = strategy
      return { type: 'failure-rate', failuresPerInterval, intervalMs: interval, delayMs: delay }
    }
    case 'exponential-delay': {
      const { initialDelay, maxDelay, multiplier, resetAfter, jitter } = strategy
      return {
        type: 'exponential-delay',
        initialDelayMs: initialDelay,
        maxDelayMs: maxDelay,
        multiplier,
        resetAfterMs: resetAfter,
        jitter,
      }
    }
    default:
      return strategy satisfies never
  }
}

/** Whatever is not here is said not to be used: a field that is added to the schema is never silently ignored. */
const usedHere: ReadonlySet<string> = new Set([
  'state',
  'program.module',
  'program.args',
  'parallelism',
  'maxParallelism',
  'restoreFrom',
  // The only value that there is, and what local mode does.
  'restoreMode',
  'allowNonRestoredState',
  'checkpointing',
  // Likewise.
  'stateBackend',
  'restartStrategy',
  'failoverStrategy',
])

/** These are told field by field. */
const groups: ReadonlySet<string> = new Set(['program', 'coordinator', 'worker'])

/** `spec` as it is written: the fields that say something to a cluster alone, in their order. */
export function unusedFields(spec: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(spec)
    .flatMap(([name, value]) =>
      groups.has(name) && typeof value === 'object' && value !== null
        ? Object.keys(value).map((inner) => `${name}.${inner}`)
        : [name],
    )
    .filter((field) => !usedHere.has(field))
}
