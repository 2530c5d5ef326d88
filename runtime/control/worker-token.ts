// Comparing a secret.

import { createHash, timingSafeEqual } from 'node:crypto'

/** In a time that says nothing of where they differ, nor of how long they are. */
export function sameToken(left: string, right: string): boolean {
  return timingSafeEqual(digest(left), digest(right))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
