// What REST answers of checkpoints and savepoints. Pure.

import type { CheckpointId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Head } from '../storage/head-contract.ts'
import type { ControlledJob } from './controlled-job.ts'
import type { JobHistory, Remembered, SnapshotFigures } from './job-history.ts'
import { manifestView } from './job-views.ts'
import type { Locate } from './job-views.ts'
import type { CheckpointResource, CheckpointsResource, CompletedResource } from './resources.ts'

export interface CheckpointFigures {
  readonly head: Head
  readonly job: ControlledJob
  /** As it was built; a rescale keeps its settings. */
  readonly graph: JobGraph
  readonly history: JobHistory
  /** Of the clock by which snapshots are triggered. */
  readonly nowMs: number
  readonly locate: Locate
}

export function checkpointsView(figures: CheckpointFigures): CheckpointsResource {
  const { head, job, graph, history, locate } = figures
  const { completed, failed } = history.remembered
  return {
    counters: job.checkpoints?.counters ?? null,
    intervalMs: graph.settings.checkpointIntervalMs ?? null,
    pending: pendingView(figures),
    retained: head.retained.map((manifest) => manifestView(manifest, locate)),
    completed: completed.map((entry) => completedView(entry, locate)),
    failed: [...failed],
  }
}

/** undefined: HEAD does not retain it, and it is not among the last ones. */
export function checkpointView(id: CheckpointId, figures: CheckpointFigures): CheckpointResource | undefined {
  const { head, history, locate } = figures
  const pending = pendingView(figures)
  if (pending?.id === id) return { state: 'pending', ...pending }
  return rememberedCheckpoint(id, { head, remembered: history.remembered, locate })
}

/** As `checkpointView`, of a job whether it runs or not. */
export function rememberedCheckpoint(
  id: CheckpointId,
  {
    head,
    remembered,
    locate,
  }: { readonly head: Head; readonly remembered: Remembered | undefined; readonly locate: Locate },
): CheckpointResource | undefined {
  const retained = head.retained.find((manifest) => manifest.id === id)
  const completed = remembered?.completed.findLast(({ manifest }) => manifest.id === id)
  if (completed !== undefined)
    return { state: 'completed', retained: retained !== undefined, ...completedView(completed, locate) }
  if (retained !== undefined)
    return { state: 'completed', retained: true, ...manifestView(retained, locate), durationMs: null, subtasks: null }
  const failed = remembered?.failed.findLast((entry) => entry.id === id)
  return failed && { state: 'failed', ...failed }
}

function pendingView({ job, nowMs }: CheckpointFigures): CheckpointsResource['pending'] {
  const pending = job.checkpoints?.pending
  if (pending === undefined) return null
  const { id, kind, phase, triggeredAtMs, missing } = pending
  return { id, kind, phase, forMs: Math.max(0, nowMs - triggeredAtMs), missing: [...missing] }
}

function completedView({ manifest, durationMs, subtasks }: SnapshotFigures, locate: Locate): CompletedResource {
  return { ...manifestView(manifest, locate), durationMs, subtasks }
}
