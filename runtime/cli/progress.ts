// How far a running job is, from what its subtasks report.

import type { TaskKey, VertexId } from '../base/ids.ts'
import type { MetricName } from '../base/metrics.ts'
import type { JobGraph } from '../job/contract.ts'
import { MAX_WATERMARK, MIN_WATERMARK } from '../record/element.ts'

/** One subtask's last report. */
export interface SubtaskFigures {
  readonly key: TaskKey
  readonly vertex: VertexId
  readonly finished: boolean
  readonly metrics: Readonly<Record<string, number>>
}

export interface CompletedCheckpoint {
  readonly id: number
  readonly durationMs: number
}

export interface ProgressFigures {
  /** Read from the sources by this command, records of restarts again. */
  readonly records: number
  readonly recordsPerSecond: number
  /** Event time of the slowest sink, ms; undefined: none yet. */
  readonly watermark: number | undefined
  /** Of the subtask that waits for its consumers most, 0 to 1. */
  readonly backpressured: number
}

export class Progress {
  readonly #sources: ReadonlySet<VertexId>
  readonly #ends: ReadonlySet<VertexId>
  readonly #last = new Map<TaskKey, { readonly records: number; readonly backpressuredMs: number }>()
  #lastMs: number
  #records = 0

  constructor(graph: JobGraph, nowMs: number) {
    this.#sources = new Set(graph.vertices.filter(({ inputs }) => inputs.length === 0).map(({ id }) => id))
    this.#ends = new Set(graph.vertices.filter(({ outputs }) => outputs.length === 0).map(({ id }) => id))
    this.#lastMs = nowMs
  }

  /** Rates are over the time since the last call. */
  update(subtasks: readonly SubtaskFigures[], nowMs: number): ProgressFigures {
    const elapsedMs = Math.max(1, nowMs - this.#lastMs)
    this.#lastMs = nowMs
    let read = 0
    let backpressured = 0
    let watermark = MAX_WATERMARK
    let ends = 0
    for (const { key, vertex, finished, metrics } of subtasks) {
      const figure = (name: MetricName): number => metrics[name] ?? 0
      const now = {
        records: this.#sources.has(vertex) ? figure('records_in_total') : 0,
        backpressuredMs: figure('backpressured_ms_total'),
      }
      const last = this.#last.get(key) ?? { records: 0, backpressuredMs: 0 }
      this.#last.set(key, now)
      read += since(last.records, now.records)
      backpressured = Math.max(backpressured, since(last.backpressuredMs, now.backpressuredMs) / elapsedMs)
      if (!this.#ends.has(vertex)) continue
      ends++
      if (!finished) watermark = Math.min(watermark, metrics['current_watermark_ms'] ?? MIN_WATERMARK)
    }
    this.#records += read
    return {
      records: this.#records,
      recordsPerSecond: (read * 1_000) / elapsedMs,
      watermark: ends === 0 || watermark === MIN_WATERMARK ? undefined : watermark,
      backpressured: Math.min(1, backpressured),
    }
  }
}

/** A restarted subtask counts from nothing again. */
function since(last: number, now: number): number {
  return now < last ? now : now - last
}

/** The most telling first: a terminal of 80 columns shows all but the sum. */
export function progressLine(figures: ProgressFigures, checkpoint: CompletedCheckpoint | undefined): string {
  const { records, recordsPerSecond, watermark, backpressured } = figures
  return [
    `${grouped(Math.round(recordsPerSecond))}/s`,
    `event time ${formatWatermark(watermark)}`,
    checkpoint === undefined
      ? 'no checkpoint yet'
      : `checkpoint ${checkpoint.id} in ${formatDuration(checkpoint.durationMs)}`,
    `backpressure ${Math.round(backpressured * 100)} %`,
    recordsText(records),
  ].join(' | ')
}

export function grouped(value: number): string {
  return String(value).replaceAll(/\B(?=(\d{3})+$)/g, ',')
}

export function recordsText(records: number): string {
  return `${grouped(records)} ${records === 1 ? 'record' : 'records'}`
}

export function formatDuration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}

/** `undefined`: none yet. */
export function formatWatermark(watermark: number | undefined): string {
  if (watermark === undefined) return 'unknown'
  if (watermark >= MAX_WATERMARK) return 'at its end'
  const date = new Date(watermark)
  return Number.isNaN(date.getTime()) ? String(watermark) : date.toISOString().slice(0, 16).replace('T', ' ')
}
