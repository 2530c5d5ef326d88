// What every measuring bench may be told.

export interface MeasureOptions {
  /** Before the steady window begins. */
  readonly warmSeconds: number
  readonly measureSeconds: number
  /** Only cases whose name contains it. */
  readonly only: string
  readonly keys: number
  /** Folder that holds `flink/`; undefined: ours alone. */
  readonly peers: string | undefined
}
