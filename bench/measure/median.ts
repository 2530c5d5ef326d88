/** Of an even number of values the upper one of the two in the middle. At least one value. */
export function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[values.length >> 1]!
}
