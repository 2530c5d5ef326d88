// What the suites of stores and file systems share.

import type { ObjectKey } from './contract.ts'

export interface Claim<Place> {
  readonly claim: string
  readonly holds: (makePlace: () => Promise<Place>) => Promise<void>
}

/** Two handles of one store, as two processes have them. */
export interface StorePair<Store> {
  readonly one: Store
  readonly other: Store
}

export function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index)
}

export function bytesOf(text: string | ObjectKey): Uint8Array {
  return new TextEncoder().encode(text)
}
