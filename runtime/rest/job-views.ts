// From what is known of a job to what REST answers. Pure.

import { formatAttempt } from '../base/ids.ts'
import type { MetricName } from '../base/metrics.ts'
import type { WorkersView } from '../distributed/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import { MAX_WATERMARK, MIN_WATERMARK } from '../record/element.ts'
import type { Head, HeadEnd, ManifestRef, RestorePoint } from '../storage/head-contract.ts'
import { restorePointOf } from '../storage/head.ts'
import type { ControlledExecution, ControlledJob, ControlledTask } from './controlled-job.ts'
import type { JobHistory } from './job-history.ts'
import type { WorkersResource } from './operating-resources.ts'
import type { GraphResource, HeadSummary, JobResource, ManifestResource, SubtaskResource } from './resources.ts'

/** Where a snapshot's folder lies, absolute. */
export type Locate = (manifest: ManifestRef) => string

export function manifestView(manifest: ManifestRef, locate: Locate): ManifestResource {
  const { id, kind, start, completedAtMs, bytes, drained } = manifest
  return { id, kind, path: locate(manifest), start, completedAtMs, bytes, drained: drained === true }
}

export function headView(head: Head, locate: Locate): HeadSummary {
  const { job, start, incarnation, maxParallelism, restarts, unconfirmed } = head
  return {
    id: job,
    start,
    incarnation,
    // A rescale of this start wins over what it began with.
    parallelism: head.rescaledTo ?? head.parallelism,
    maxParallelism,
    restarts,
    restorePoint: pointView(restorePointOf(head), locate),
    end: endView(head.end, locate),
    unconfirmed: unconfirmed === undefined ? null : manifestView(unconfirmed, locate),
  }
}

export function jobView(options: {
  readonly head: Head
  readonly job: ControlledJob
  readonly history: JobHistory
  readonly instance: string
  readonly locate: Locate
}): JobResource {
  const { head, job, history, instance, locate } = options
  const state = stateOf(options)
  return {
    ...headView(head, locate),
    instance,
    state,
    sinceMs: history.sinceMs ?? null,
    ...slotsView(job.workers, {
      atItsSize: isAtItsSize(options),
      over: state === 'ending' || state === 'ended',
    }),
    restore: restoreView(job.execution),
    lastFailure: history.lastFailure,
  }
}

/** false: HEAD says another size than the graph has that is known here. */
function isAtItsSize({ head, job }: { readonly head: Head; readonly job: ControlledJob }): boolean {
  return head.rescaledTo === job.rescaledTo
}

function slotsView(
  workers: WorkersView | undefined,
  { atItsSize, over }: { readonly atItsSize: boolean; readonly over: boolean },
): Pick<JobResource, 'waitsFor' | 'slotsNeeded' | 'slotsOffered'> {
  if (workers === undefined) return { waitsFor: null, slotsNeeded: null, slotsOffered: null }
  const { slotsNeeded, slotsOffered } = workers
  // What the graph before the rescale needs says nothing of the parallelism that stands beside it.
  if (!atItsSize) return { waitsFor: null, slotsNeeded: null, slotsOffered }
  return { waitsFor: !over && slotsOffered < slotsNeeded ? 'slots' : null, slotsNeeded, slotsOffered }
}

/** Of the subtasks that are not running yet, what they have read; of those that are, all. */
function restoreView(execution: ControlledExecution | undefined): JobResource['restore'] {
  if (execution === undefined || execution.allRunning) return null
  const tasks = [...execution.tasks.values()]
  return {
    bytesRead: sumOf(tasks, 'restored_bytes_total'),
    bytes: sumOf(tasks, 'restore_bytes'),
    subtasksRestored: tasks.filter(({ status }) => status !== 'deploying').length,
    subtasks: tasks.length,
  }
}

/** null: somebody has not told yet. */
function sumOf(tasks: readonly ControlledTask[], name: MetricName): number | null {
  let sum = 0
  for (const { report } of tasks) {
    if (report === undefined) return null
    sum += report.metrics[name] ?? 0
  }
  return sum
}

function stateOf({
  head,
  job,
  history,
}: {
  readonly head: Head
  readonly job: ControlledJob
  readonly history: JobHistory
}): JobResource['state'] {
  if (history.outcome !== undefined) return 'ended'
  if (head.end.kind !== 'none') return 'ending'
  if (!history.hasRun) return 'starting'
  return isAtItsSize({ head, job }) && job.execution?.allRunning === true ? 'running' : 'restarting'
}

export function graphView({ name, hash, vertices, edges }: JobGraph): GraphResource {
  return {
    name,
    hash,
    vertices: vertices.map((vertex) => ({
      id: vertex.id,
      name: vertex.name,
      parallelism: vertex.parallelism,
      maxParallelism: vertex.maxParallelism,
      slotSharingGroup: vertex.slotSharingGroup,
      operators: vertex.chain.map(({ uid, name: operator, uidGiven }) => ({ uid, name: operator, uidGiven })),
    })),
    edges: edges.map(({ id, source, target, input, partitioning }) => ({ id, source, target, input, partitioning })),
  }
}

export function subtasksView({ execution, workers }: ControlledJob): SubtaskResource[] {
  if (execution === undefined) return []
  const workerOf = new Map(
    workers?.workers.flatMap(({ name, running }) => running.map((slot) => [slot, name] as const)),
  )
  return [...execution.tasks.values()].map((task) =>
    subtaskView(task, workers === undefined ? null : (workerOf.get(execution.slotOf(task.task)) ?? null)),
  )
}

/** Metrics that have a field of their own. */
const named = new Set<string>([
  'records_in_total',
  'records_out_total',
  'bytes_in_total',
  'bytes_out_total',
  'busy_ms_total',
  'idle_ms_total',
  'backpressured_ms_total',
  'current_watermark_ms',
  'state_entries',
] satisfies MetricName[])

function subtaskView({ task, attempt, status, report }: ControlledTask, worker: string | null): SubtaskResource {
  const metrics = report?.metrics
  // A counter begins at nothing; a gauge that was never set is unknown.
  const counter = (name: MetricName): number | null => (metrics === undefined ? null : (metrics[name] ?? 0))
  const gauge = (name: MetricName): number | null => metrics?.[name] ?? null
  return {
    vertex: task.vertex,
    subtask: task.subtask,
    attempt: formatAttempt(attempt),
    status,
    worker,
    recordsIn: counter('records_in_total'),
    recordsOut: counter('records_out_total'),
    bytesIn: counter('bytes_in_total'),
    bytesOut: counter('bytes_out_total'),
    busyMs: counter('busy_ms_total'),
    idleMs: counter('idle_ms_total'),
    backpressuredMs: counter('backpressured_ms_total'),
    watermark: watermarkView(gauge('current_watermark_ms')),
    stateEntries: gauge('state_entries'),
    metrics: Object.fromEntries(
      Object.entries(metrics ?? {}).filter(([name, value]) => !named.has(name) && Number.isFinite(value)),
    ),
  }
}

function watermarkView(watermark: number | null): SubtaskResource['watermark'] {
  if (watermark === null || watermark === MIN_WATERMARK) return null
  return watermark === MAX_WATERMARK ? 'end' : watermark
}

export function workersView(workers: WorkersView | undefined): WorkersResource {
  return {
    slotsNeeded: workers?.slotsNeeded ?? null,
    slotsOffered: workers?.slotsOffered ?? null,
    workers:
      workers?.workers.map(({ name, address, slots, running, state, sinceMs }) => ({
        name,
        address,
        slots,
        running: [...running],
        state,
        sinceMs,
      })) ?? null,
  }
}

function pointView(point: RestorePoint, locate: Locate): HeadSummary['restorePoint'] {
  return point.kind === 'empty'
    ? { kind: 'empty' }
    : { kind: 'manifest', manifest: manifestView(point.manifest, locate) }
}

export function endView(end: HeadEnd, locate: Locate): HeadSummary['end'] {
  switch (end.kind) {
    case 'stopped':
      return { kind: 'stopped', savepoint: manifestView(end.savepoint, locate) }
    case 'finished':
      return { kind: 'finished', drained: end.drained === undefined ? null : manifestView(end.drained, locate) }
    case 'failed':
      return { kind: 'failed', reason: end.reason }
    default:
      return { kind: end.kind }
  }
}
