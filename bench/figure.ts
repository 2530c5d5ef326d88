// What a benchmark prints: one JSON line per figure.

import type { MeasureOptions } from './measure/options.ts'

export interface Figure {
  readonly bench: string
  readonly case: string
  readonly metric: string
  readonly value: number
  readonly unit: string
  /** What the figure is compared with, measured in the same run. */
  readonly peer?: string
  readonly peerValue?: number
  /** How many times better than the peer: above 1 is good, whatever the unit. */
  readonly ratio?: number
  /** Of a time: when what was reached on the way, from where it is counted, in the figure's unit. */
  readonly timeline?: Readonly<Record<string, number>>
}

/** A file in bench/ exports `run`. */
export interface Bench {
  run(emit: (figure: Figure) => void, options: MeasureOptions): Promise<void>
}
