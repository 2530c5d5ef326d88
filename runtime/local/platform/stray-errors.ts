// What nobody in a slot's thread catches.

import { InvariantError, MillraceError } from '../../base/errors.ts'
import type { Slot } from '../../worker/slot.ts'
import { localError } from '../errors.ts'

/** A promise that nobody awaits leaves the thread in a state that nobody knows: it goes, with every subtask in it (MR-L02). */
export function failOnStrayErrors(slot: Pick<Slot, 'fail'>): void {
  process.on('unhandledRejection', (reason) =>
    slot.fail(strayError('A promise that nobody awaits was rejected', reason)),
  )
  process.on('uncaughtException', (error) => slot.fail(strayError('A timer or event handler threw', error)))
}

function strayError(what: string, cause: unknown): Error {
  // Our own errors say enough, and a broken invariant stays one.
  if (cause instanceof MillraceError || cause instanceof InvariantError) return cause
  return localError(
    'MR-L02',
    `${what}: ${cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)}.`,
    cause,
  )
}
