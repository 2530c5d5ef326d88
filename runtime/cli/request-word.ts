// --request: the name of a request, so that asking again is not asking for another one.

import { randomUUID } from 'node:crypto'
import { requestName } from '../rest/resources.ts'
import { commandError } from './errors.ts'

export const requestHelp = `  --request ID       name of this request; given again with the same one, the command waits for the same answer`

export const requestOption = { request: { type: 'string' } } as const

/** For a command that was given none. */
export function newRequest(): string {
  return randomUUID()
}

/** Throws MR-L11. */
export function checkedRequest(request: string | undefined): string | undefined {
  if (request === undefined || requestName.safeParse(request).success) return request
  throw commandError('MR-L11', `--request is ${JSON.stringify(request)}; it must be 1 to 64 letters, digits and ._=-.`)
}
