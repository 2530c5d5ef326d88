// What the job of two streams and its judge agree on.

export const splits = 2
/** Between two records of a split, ms of event time. */
export const stepMs = 1_000
export const windowMs = 20_000
/** A right record is joined with left ones that are at most so far from it. */
export const nearMs = 2_000
export const rulesCount = 40
const keys = 7

export interface Numbered {
  readonly split: number
  readonly n: number
}

export function leftKey({ split, n }: Numbered): string {
  return `key ${(n * 3 + split) % keys}`
}

export function rightKey({ split, n }: Numbered): string {
  return `key ${(n + split * 2) % keys}`
}

/** No two of a side have the same, so that none can stand in for another. */
export function numberOf({ split, n }: Numbered): number {
  return n * splits + split
}
