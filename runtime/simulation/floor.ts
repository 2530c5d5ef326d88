// A kind of fault that is drawn and never meets anybody shows nothing, and nobody notices: over many seeds each must have happened.

import { countedAs } from './faults.ts'

/** From so many seeds on. Fewer may well miss one. */
export const seedsForEachKind = 150

/** Kinds of faults that happened in none of the seeds; none where these are too few to say. `faults`: of each seed, by kind. */
export function kindsMissing(faults: readonly Readonly<Record<string, number>>[]): string[] {
  if (faults.length < seedsForEachKind) return []
  const happened = new Set(faults.flatMap((counts) => Object.keys(counts).filter((kind) => counts[kind]! > 0)))
  return Object.entries(countedAs).flatMap(([kind, names]) => (names.some((name) => happened.has(name)) ? [] : [kind]))
}
