// One end of the measured channel in a thread of its own: a task that does nothing but emit, or count.

import { workerData } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import { overrideLimits } from './channels-limits.ts'
import type { Limits } from './channels-limits.ts'

export interface EndRequest {
  readonly side: 'producer' | 'consumer'
  /** The other thread's port, or the server's address. */
  readonly transport: { readonly port: MessagePort } | { readonly url: string }
  readonly limits: Limits
  /** Records counted so far, in its first element. */
  readonly counted: BigInt64Array
}

const request = workerData as EndRequest
overrideLimits(request.limits)
const { runEnd } = await import('./channels-end.ts')
await runEnd(request)
