// What was asked for under which id, so that a repeated request is the same request and an id is not used for two things. For those
// that HEAD does not remember: what they do can be done twice, but need not be.

import type { RequestId } from '../base/ids.ts'
import { restError } from './errors.ts'

export const requestsRememberedMax = 200

export class AskedRequests {
  readonly #purposes = new Map<RequestId, string>()

  /** Whether it was asked for before. Throws MR-H05 when that was something else; `purpose`: `stop the job`. */
  isKnown(request: RequestId, purpose: string): boolean {
    const before = this.#purposes.get(request)
    if (before !== undefined && before !== purpose) throw restError('MR-H05', `${request} was to ${before}.`)
    return before !== undefined
  }

  /** It was taken. */
  add(request: RequestId, purpose: string): void {
    this.#purposes.delete(request)
    this.#purposes.set(request, purpose)
    if (this.#purposes.size <= requestsRememberedMax) return
    for (const oldest of this.#purposes.keys()) return void this.#purposes.delete(oldest)
  }
}
