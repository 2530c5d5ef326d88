// Watermark strategies: how event time is told from records, and how far it has come.

import { MIN_WATERMARK } from '../record/element.ts'
import { connectorError } from './errors.ts'
import type { WatermarkGenerator, WatermarkStrategy } from './contract.ts'

/** A strategy whose idleness can be set: `monotonic(…).withIdleness(5_000)`. */
export interface ChainableWatermarkStrategy<T> extends WatermarkStrategy<T> {
  /** A split that had the chance to emit and did not for `ms` milliseconds no longer holds the watermark back. */
  withIdleness(ms: number): ChainableWatermarkStrategy<T>
}

/** Event times never fall within a split. `timestampOf` undefined: the source's own timestamps. */
export function monotonic<T>(
  timestampOf?: (value: T, sourceTimestamp: number) => number,
): ChainableWatermarkStrategy<T> {
  return chainable({ createGenerator: () => new LargestMinus(1), ...(timestampOf && { timestampOf }) })
}

/** Event times fall behind the largest seen in their split by at most `maxOutOfOrdernessMs`; what falls further is late. */
export function boundedOutOfOrderness<T>(
  timestampOf: ((value: T, sourceTimestamp: number) => number) | undefined,
  maxOutOfOrdernessMs: number,
): ChainableWatermarkStrategy<T> {
  if (!Number.isSafeInteger(maxOutOfOrdernessMs) || maxOutOfOrdernessMs < 0)
    throw connectorError('MR-N06', `maxOutOfOrdernessMs is ${maxOutOfOrdernessMs}; it must be an integer ≥ 0.`)
  return chainable({
    createGenerator: () => new LargestMinus(maxOutOfOrdernessMs + 1),
    ...(timestampOf && { timestampOf }),
  })
}

/** No watermarks until the input ends. */
export function noWatermarks<T>(
  timestampOf?: (value: T, sourceTimestamp: number) => number,
): ChainableWatermarkStrategy<T> {
  return chainable({ createGenerator: undefined, ...(timestampOf && { timestampOf }) })
}

function chainable<T>(strategy: WatermarkStrategy<T>): ChainableWatermarkStrategy<T> {
  return {
    ...strategy,
    withIdleness(ms) {
      if (!Number.isFinite(ms) || ms <= 0) throw connectorError('MR-N06', `withIdleness(${ms}): it must be above 0 ms.`)
      return chainable({ ...strategy, idleAfterMs: ms })
    },
  }
}

/** A watermark w says that no record ≤ w is still to come; another record of the largest timestamp may be, hence at least one less. */
class LargestMinus implements WatermarkGenerator {
  readonly #behindMs: number
  #largest = MIN_WATERMARK

  constructor(behindMs: number) {
    this.#behindMs = behindMs
  }

  onRecord(timestamp: number): void {
    if (timestamp > this.#largest) this.#largest = timestamp
  }

  current(): number {
    const watermark = this.#largest - this.#behindMs
    return watermark < MIN_WATERMARK ? MIN_WATERMARK : watermark
  }
}
