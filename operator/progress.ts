// Whether a start that is not stable yet comes further. Each measure grows, and only what is beyond the furthest of before counts: code that
// crashes at its first record restores, runs and restarts again and again, and comes nowhere by it.

/** As a coordinator tells it; each number is greater the further it is. */
export type Measures = readonly number[]

/**
 * Some restarts begin the way anew, as a large restore that a lost worker has interrupted has to; a job that restarts for ever has no such
 * excuse. A coordinator that was lost may count from zero.
 */
const freshRestartsMax = 3

/** What is to be written down as the furthest now; undefined: it is no further than `before`, which is such a text, or another operator's. */
export function furtherThan(
  before: string,
  { restarts, measures }: { readonly restarts: number; readonly measures: Measures },
): string | undefined {
  const [way = Number.NaN, ...furthest] = before.split(' ').map((word) => (word === '' ? Number.NaN : Number(word)))
  const fresh = Math.min(restarts, freshRestartsMax)
  const isComparable = fresh <= way && furthest.every(Number.isFinite)
  // A coordinator that does not answer yet, or any more, tells less.
  const length = Math.max(furthest.length, measures.length)
  const best = Array.from({ length }, (_, index) =>
    isComparable
      ? Math.max(furthest[index] ?? Number.NEGATIVE_INFINITY, measures[index] ?? Number.NEGATIVE_INFINITY)
      : (measures[index] ?? none),
  )
  const isFurther = !isComparable || best.some((value, index) => value > (furthest[index] ?? Number.NEGATIVE_INFINITY))
  return isFurther ? [isComparable ? way : fresh, ...best].join(' ') : undefined
}

/** Before anything that a measure counts. */
export const none = -1_000_000_000
