// What an act that failed says to the user: refused, failed again and again, or nothing, since it passes by itself.

import { MillraceError } from '../runtime/base/errors.ts'
import type { Action } from './contract.ts'
import { KubeError } from './kubernetes/contract.ts'
import { asSentence } from './status-text.ts'

export interface Failed {
  readonly actions: readonly Action[]
  readonly error: unknown
}

/** By the API server's own word, or since the name is somebody else's, or the keys for NATS are not there: the user has something to mend. */
export function refusalOf(error: unknown): string | undefined {
  if (error instanceof MillraceError) return ['MR-P05', 'MR-P06'].includes(error.code) ? error.message : undefined
  if (!(error instanceof KubeError) || isPassing(error) || error.status >= 500) return undefined
  return `${asSentence(error.message)} Mend what it names.`
}

/**
 * What is said of it once it has failed again. A webhook that is down answers as a fault of the API server, and a broken connection does not
 * answer; one of our own errors says what to do; anything else is our fault.
 */
export function failureOf({ actions, error }: Failed): string | undefined {
  // Of a coordinator that does not answer there is a condition.
  const isOfCoordinator = actions.some(({ type }) => type === 'request')
  if (isOfCoordinator || isPassing(error)) return undefined
  const word = `${asSentence(error instanceof Error ? error.message : String(error))} It has failed again and again`
  if (error instanceof MillraceError) return `${word}.`
  return error instanceof KubeError || isOfConnection(error)
    ? `${word}: look at the API server, and at the webhooks that it asks.`
    : `${word}, by a fault of the operator: its log says more. Please report it.`
}

/** Node names them by a code, as it does what is wrong with a certificate, or they are the end of a deadline; misuse of its API is a TypeError or RangeError. */
function isOfConnection(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof TypeError || error instanceof RangeError) return false
  const { name, code } = error as { readonly name: string; readonly code?: unknown }
  return typeof code === 'string' || name === 'TimeoutError' || name === 'AbortError'
}

/** The one of before where they differ in ports and times alone: each change is a write. */
export function sameWord(before: string | undefined, now: string): string {
  return before !== undefined && withoutNumbers(before) === withoutNumbers(now) ? before : now
}

function withoutNumbers(text: string): string {
  return text.replaceAll(/\d+/g, '')
}

/** Somebody was faster, the API server is busy, or another operator leads. */
function isPassing(error: unknown): boolean {
  if (error instanceof MillraceError) return error.code === 'MR-P04'
  return error instanceof KubeError && (error.conflict || error.notFound || error.status === 429)
}
