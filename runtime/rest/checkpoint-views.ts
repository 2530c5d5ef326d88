// What REST answers of checkpoints and savepoints. Pure.

import type { CheckpointId } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import { savepointOfEnd } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
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
  return {
    ...storedCheckpoints({ head, remembered: history.remembered, locate }),
    counters: job.checkpoints?.counters ?? null,
    intervalMs: graph.settings.checkpointIntervalMs ?? null,
    pending: pendingView(figures),
  }
}

/** What the store tells of a job, whether it runs or not. */
export interface StoredFigures {
  readonly head: Head
  /** undefined: no history is stored. */
  readonly remembered: Remembered | undefined
  readonly locate: Locate
}

export function storedCheckpoints({ head, remembered, locate }: StoredFigures): CheckpointsResource {
  return {
    counters: null,
    intervalMs: null,
    pending: null,
    retained: head.retained.map((manifest) => manifestView(manifest, locate)),
    completed: (remembered?.completed ?? []).map((entry) => completedView(entry, locate)),
    failed: [...(remembered?.failed ?? [])],
  }
}

/** undefined: HEAD does not name it, and it is not among the last ones. */
export function checkpointView(id: CheckpointId, figures: CheckpointFigures): CheckpointResource | undefined {
  const { head, history, locate } = figures
  const pending = pendingView(figures)
  if (pending?.id === id) return { state: 'pending', ...pending }
  return rememberedCheckpoint(id, { head, remembered: history.remembered, locate })
}

/** As `checkpointView`, of a job whether it runs or not. */
export function rememberedCheckpoint(
  id: CheckpointId,
  { head, remembered, locate }: StoredFigures,
): CheckpointResource | undefined {
  const retained = head.retained.some((manifest) => manifest.id === id)
  const completed = remembered?.completed.findLast(({ manifest }) => manifest.id === id)
  if (completed !== undefined) return { state: 'completed', retained, ...completedView(completed, locate) }
  const named = namedIn(head).find((manifest) => manifest.id === id)
  if (named !== undefined)
    return { state: 'completed', retained, ...manifestView(named, locate), durationMs: null, subtasks: null }
  const failed = remembered?.failed.findLast((entry) => entry.id === id)
  return failed && { state: 'failed', ...failed }
}

/** The job's own: what a start was restored from may be another job's, with its ids. */
function namedIn({ retained, end, savepointResults }: Head): readonly ManifestRef[] {
  const results = savepointResults.map(({ manifest }) => manifest)
  return [...retained, savepointOfEnd(end), ...results].filter((manifest) => manifest !== undefined)
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
