// Metric names in one table; groups are handed to whoever counts.

const metricNames = [
  'records_in_total',
  'records_out_total',
  'bytes_in_total',
  'bytes_out_total',
  'busy_ms_total',
  'idle_ms_total',
  'backpressured_ms_total',
  'current_watermark_ms',
  'late_records_total',
  'malformed_records_total',
  'state_entries',
  'checkpoint_sync_ms',
  'checkpoint_async_ms',
  'checkpoint_alignment_ms',
  'checkpoint_bytes',
  'restore_bytes',
  'restored_bytes_total',
  'frames_resent_total',
  'commits_total',
  'commit_retries_total',
  'records_dropped_total',
] as const

export type MetricName = (typeof metricNames)[number]

export interface MetricGroup {
  /** Adds to a counter; names ending in `_total`. */
  add(name: MetricName, amount: number): void
  /** Sets a gauge. */
  set(name: MetricName, value: number): void
  /** A figure outside the table (the job's own), asked for when metrics are reported. What is not finite is left out. */
  observe(name: string, read: () => number): void
}

export class Metrics implements MetricGroup {
  readonly values = new Map<MetricName, number>()
  readonly #observed = new Map<string, () => number>()
  add(name: MetricName, amount: number): void {
    this.values.set(name, (this.values.get(name) ?? 0) + amount)
  }
  set(name: MetricName, value: number): void {
    this.values.set(name, value)
  }
  observe(name: string, read: () => number): void {
    this.#observed.set(name, read)
  }
  /** Everything as it is now, for a report. */
  figures(): Record<string, number> {
    const figures: Record<string, number> = Object.fromEntries(this.values)
    for (const [name, read] of this.#observed) {
      const value = read()
      if (Number.isFinite(value)) figures[name] = value
    }
    return figures
  }
}
