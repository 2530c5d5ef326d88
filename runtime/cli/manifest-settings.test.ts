import { describe, expect, it } from 'vitest'
import { defaultConfig } from '../job/settings.ts'
import { unusedFields } from './manifest-settings.ts'

describe('a manifest', () => {
  it('that says nothing of checkpoints and restarts gets, from the job’s config, what shared/kubernetes.md gives as defaults', () => {
    expect(defaultConfig()).toMatchObject({
      checkpointIntervalMs: 10_000,
      checkpointMode: 'exactly-once',
      checkpointTimeoutMs: 600_000,
      minPauseMs: 0,
      tolerableFailures: Number.POSITIVE_INFINITY,
      retained: 3,
      onCancellation: 'retain',
      restartStrategy: { type: 'exponential-delay' },
      failoverStrategy: 'region',
      maxParallelism: 128,
    })
  })

  it('has no field that is silently ignored: one that nobody knows yet counts as not used', () => {
    expect(unusedFields({ parallelism: 1, fieldToCome: 1, worker: { slots: 1, fieldToCome: 2 } })).toEqual([
      'fieldToCome',
      'worker.slots',
      'worker.fieldToCome',
    ])
  })
})
