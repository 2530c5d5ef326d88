// All figures of a job in Prometheus' text form, made anew for each scrape from what is known: no registry lives on, none is global.
// Counters of subtasks begin again from nothing with each attempt, as counters do when a process restarts.

import type { Counter, Gauge, Registry } from 'prom-client'
import type { MetricName } from '../base/metrics.ts'
import { MAX_WATERMARK, MIN_WATERMARK } from '../record/element.ts'
import type { ControlledTask } from './controlled-job.ts'
import type { ServedJob } from './served-job.ts'

/** Version 0.0.4 of the text form. */
export const metricsType = 'text/plain; version=0.0.4; charset=utf-8'

type Labels = Readonly<Record<string, string | number>>
interface Sample {
  readonly labels: Labels
  readonly value: number | undefined
}

interface Figure {
  readonly name: string
  readonly help: string
  readonly labels: readonly string[]
  readonly samples: readonly Sample[]
}

const perSubtask = ['vertex', 'subtask'] as const

/** What each subtask reports: name of ours, name for Prometheus without its prefix, help, and how many of ours make one of theirs. */
const subtaskFigures: readonly (readonly [MetricName, string, string, number])[] = [
  ['records_in_total', 'records_in_total', 'Records read', 1],
  ['records_out_total', 'records_out_total', 'Records emitted', 1],
  ['bytes_in_total', 'bytes_in_total', 'Bytes received from other slots', 1],
  ['bytes_out_total', 'bytes_out_total', 'Bytes sent to other slots', 1],
  ['busy_ms_total', 'busy_seconds_total', 'Time at work', 1_000],
  ['idle_ms_total', 'idle_seconds_total', 'Time without anything to read', 1_000],
  ['backpressured_ms_total', 'backpressured_seconds_total', 'Time in which consumers took nothing', 1_000],
  ['late_records_total', 'late_records_total', 'Records that came too late', 1],
  [
    'malformed_records_total',
    'malformed_records_total',
    'Input that could not be read as a record, and was left out',
    1,
  ],
  ['records_dropped_total', 'records_dropped_total', 'Records for a side output that nobody reads', 1],
  ['commits_total', 'commits_total', 'Transactions committed', 1],
  ['commit_retries_total', 'commit_retries_total', 'Commits tried again', 1],
  ['frames_resent_total', 'frames_resent_total', 'Frames that were sent again', 1],
  ['state_entries', 'state_entries', 'Entries of keyed state', 1],
  ['checkpoint_sync_ms', 'checkpoint_sync_seconds', 'Last snapshot: the part that stops the subtask', 1_000],
  ['checkpoint_async_ms', 'checkpoint_async_seconds', 'Last snapshot: writing', 1_000],
  ['checkpoint_alignment_ms', 'checkpoint_alignment_seconds', 'Last snapshot: waiting for barriers', 1_000],
  ['checkpoint_bytes', 'checkpoint_bytes', 'Last snapshot: its size', 1],
]

export async function metricsText(served: ServedJob): Promise<string> {
  // Loading it takes time, and most jobs are never scraped.
  const { Counter: CounterOf, Gauge: GaugeOf, Registry: RegistryOf } = await import('prom-client')
  const registry: Registry = new RegistryOf()
  for (const { name, help, labels, samples } of figuresOf(served)) {
    const options = { name: `millrace_${name}`, help, labelNames: [...labels], registers: [registry] }
    const known = samples.filter(({ value }) => Number.isFinite(value))
    if (name.endsWith('_total')) {
      const counter: Counter = new CounterOf(options)
      for (const { labels: given, value } of known) counter.inc({ ...given }, Math.max(0, value!))
    } else {
      const gauge: Gauge = new GaugeOf(options)
      // Without labels it would stand at 0 where nothing is known.
      if (known.length === 0) registry.removeSingleMetric(options.name)
      for (const { labels: given, value } of known) gauge.set({ ...given }, value!)
    }
  }
  return registry.metrics()
}

function figuresOf(served: ServedJob): readonly Figure[] {
  const tasks = [...(served.job.execution?.tasks.values() ?? [])]
  return [...jobFigures(served), ...checkpointFigures(served), ...taskFigures(tasks, served), ...userFigures(tasks)]
}

function jobFigures({ job, graph, history }: ServedJob): readonly Figure[] {
  const { execution, workers } = job
  const statuses = [...(execution?.tasks.values() ?? [])].map(({ status }) => status)
  const { start, incarnation, outcome } = history
  const isRunning = execution?.allRunning === true && history.hasRun && outcome === undefined
  return [
    {
      name: 'job_info',
      help: 'Which job, start and coordinator this is',
      labels: ['name', 'start', 'incarnation'],
      samples: [{ labels: { name: graph.name, start: start ?? '', incarnation: incarnation ?? '' }, value: 1 }],
    },
    single('is_running', 'Whether all subtasks run', isRunning ? 1 : 0),
    single('restarts_total', 'Restarts under this coordinator', history.restartsHere),
    {
      name: 'subtasks',
      help: 'Subtasks by their status',
      labels: ['status'],
      samples: (['deploying', 'running', 'finished'] as const).map((status) => ({
        labels: { status },
        value: execution && statuses.filter((other) => other === status).length,
      })),
    },
    single('slots_needed', 'Slots that the graph needs', workers?.slotsNeeded),
    single('slots_offered', 'Slots that registered workers offer', workers?.slotsOffered),
  ]
}

function checkpointFigures({ job, history }: ServedJob): readonly Figure[] {
  const counters = job.checkpoints?.counters
  const last = history.remembered.completed.findLast(({ manifest }) => manifest.kind === 'checkpoint')
  const seconds = (ms: number | undefined): number | undefined => ms && ms / 1_000
  const snapshots = 'checkpoints and savepoints under this coordinator'
  return [
    single('checkpoints_triggered_total', `Triggered ${snapshots}`, counters?.triggered),
    single('checkpoints_completed_total', `Completed ${snapshots}`, counters?.completed),
    single('checkpoints_failed_total', `Failed ${snapshots}`, counters?.failed),
    single('checkpoints_failed_in_a_row', 'Failed since the last completed one', counters?.consecutiveFailures),
    single('checkpoints_pending', 'Pending ones', job.checkpoints && Number(job.checkpoints.pending !== undefined)),
    single('last_checkpoint_id', 'Of the newest completed checkpoint', last?.manifest.id),
    single('last_checkpoint_bytes', 'Its size', last?.manifest.bytes),
    single('last_checkpoint_duration_seconds', 'From its trigger to its completion', seconds(last?.durationMs)),
    single(
      'last_checkpoint_completed_timestamp_seconds',
      'When it completed, since the epoch',
      seconds(last?.manifest.completedAtMs),
    ),
  ]
}

function taskFigures(tasks: readonly ControlledTask[], { clock }: ServedJob): readonly Figure[] {
  const of = (value: (metrics: Readonly<Record<string, number>>) => number | undefined): Sample[] =>
    tasks.map(({ task, report }) => ({
      labels: { vertex: task.vertex, subtask: task.subtask },
      value: report && value(report.metrics),
    }))
  const watermark = (metrics: Readonly<Record<string, number>>): number | undefined => {
    const ms = metrics['current_watermark_ms' satisfies MetricName]
    // Before the first and at the end there is no time to be behind.
    return ms === MIN_WATERMARK || ms === MAX_WATERMARK ? undefined : ms
  }
  return [
    ...subtaskFigures.map(([own, name, help, divisor]) => ({
      name,
      help,
      labels: perSubtask,
      samples: of((metrics) => {
        const value = metrics[own] ?? (own.endsWith('_total') ? 0 : undefined)
        return value === undefined ? undefined : value / divisor
      }),
    })),
    {
      name: 'watermark_timestamp_seconds',
      help: 'Event time that the subtask has reached',
      labels: perSubtask,
      samples: of((metrics) => {
        const ms = watermark(metrics)
        return ms === undefined ? undefined : ms / 1_000
      }),
    },
    {
      name: 'watermark_lag_seconds',
      help: 'How far event time is behind the clock of the coordinator',
      labels: perSubtask,
      samples: of((metrics) => {
        const ms = watermark(metrics)
        return ms === undefined ? undefined : (clock.wallMs() - ms) / 1_000
      }),
    },
  ]
}

/** The job's own: `user/<uid>/<kind>/<name>`, and of a histogram `/<part>`. */
function userFigures(tasks: readonly ControlledTask[]): readonly Figure[] {
  const counters: Sample[] = []
  const gauges: Sample[] = []
  const histograms: Sample[] = []
  for (const { task, report } of tasks) {
    for (const [key, value] of Object.entries(report?.metrics ?? {})) {
      const [, uid, kind, name, part] =
        /^user\/(.+)\/(counter|gauge|histogram)\/([a-z0-9_]+)(?:\/([a-z0-9]+))?$/.exec(key) ?? []
      if (uid === undefined || name === undefined) continue
      const labels = { vertex: task.vertex, subtask: task.subtask, uid, name }
      if (kind === 'counter') counters.push({ labels, value })
      else if (kind === 'gauge') gauges.push({ labels, value })
      else if (part !== undefined) histograms.push({ labels: { ...labels, part }, value })
    }
  }
  const labels = [...perSubtask, 'uid', 'name']
  return [
    { name: 'user_counter_total', help: 'Counters of the job', labels, samples: counters },
    { name: 'user_gauge', help: 'Gauges of the job', labels, samples: gauges },
    {
      name: 'user_histogram',
      help: 'Parts of histograms of the job',
      labels: [...labels, 'part'],
      samples: histograms,
    },
  ]
}

function single(name: string, help: string, value: number | undefined): Figure {
  return { name, help, labels: [], samples: [{ labels: {}, value }] }
}
