// How values are spread, in bounded room: counted in buckets whose bounds grow by a constant factor, so that a quantile is known to
// within a constant relative error (the mapping of DDSketch: Masson, Rim, Lee, VLDB 2019). At most 2,765 buckets, those met alone.

/** Of a quantile. */
const relativeError = 0.02
const growth = (1 + relativeError) / (1 - relativeError)
/** Nearer to 0 is 0. */
const smallest = 1e-9
/** Beyond it all are in one bucket. */
const largestBucket = Math.ceil(Math.log(1e15 / smallest) / Math.log(growth))
const bucketsPerUnitOfLog = 1 / Math.log(growth)

export class HistogramSketch {
  count = 0
  sum = 0
  /** NaN without any value. */
  min = Number.NaN
  max = Number.NaN
  /** By bucket: 0 for zero, negative for negative values; bucket order is value order. */
  readonly #buckets = new Map<number, number>()

  record(value: number): void {
    if (!Number.isFinite(value)) return
    this.count++
    this.sum += value
    if (!(value >= this.min)) this.min = value
    if (!(value <= this.max)) this.max = value
    const bucket = bucketOf(value)
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + 1)
  }

  /** The value that a share `quantile` (0 to 1) of all values does not exceed; NaN without any value. */
  quantile(quantile: number): number {
    const rank = Math.max(1, Math.ceil(quantile * this.count))
    let seen = 0
    for (const bucket of [...this.#buckets.keys()].toSorted((left, right) => left - right)) {
      seen += this.#buckets.get(bucket)!
      if (seen >= rank) return Math.min(this.max, Math.max(this.min, middleOf(bucket)))
    }
    return Number.NaN
  }
}

function bucketOf(value: number): number {
  const size = Math.abs(value)
  if (size < smallest) return 0
  const bucket = Math.min(largestBucket, 1 + Math.ceil(Math.log(size / smallest) * bucketsPerUnitOfLog))
  return value < 0 ? -bucket : bucket
}

/** Within the relative error of both bounds. */
function middleOf(bucket: number): number {
  if (bucket === 0) return 0
  const upper = smallest * growth ** (Math.abs(bucket) - 1)
  return (Math.sign(bucket) * 2 * upper) / (1 + growth)
}
