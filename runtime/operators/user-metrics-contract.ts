// A job's own metrics, as its functions see them: `context.metrics`. They belong to one operator of one subtask's attempt, and begin
// again from nothing with each attempt: they are figures to watch, no results.

export interface Counter {
  /** Since the attempt began. */
  readonly count: number
  /** `by`: 1 unless given; a counter never falls. */
  increment(by?: number): void
}

export interface Histogram {
  /** Values that are not finite are left out. */
  record(value: number): void
}

/**
 * Names are a-z, 0-9 and _, begin with a letter and have at most 100 characters. The same name and kind again is the same metric;
 * another kind, or another name, throws MR-J72.
 */
export interface UserMetrics {
  counter(name: string): Counter
  /** Asked when metrics are reported. One that throws is not asked again; what is no finite number is left out. */
  gauge(name: string, read: () => number): void
  /** Count, sum, smallest and largest, and the quantiles 0.5, 0.95 and 0.99 to within 2 %, over all values since the attempt began. */
  histogram(name: string): Histogram
}
