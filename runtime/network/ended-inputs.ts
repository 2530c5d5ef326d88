// Inputs whose end of data was taken and whose subtask has left. Their producers stay until they hear that the end arrived
// (rule 19); where that word was lost they repeat, and without an answer they would fail at their deadline.

import { sameAttempt, taskKey } from '../base/ids.ts'
import type { Attempt, TaskId, TaskKey } from '../base/ids.ts'
import type { FrameTransport, PeerAddress } from './contract.ts'
import { encodeFrame } from './frame.ts'
import type { CreditMessage, FrameRoute } from './frame.ts'
import type { FrameRouter } from './frame-router.ts'
import { ENDED_CHANNELS_MAX } from './limits.ts'

export interface EndedInput {
  readonly subject: string
  readonly route: FrameRoute
  readonly owner: { readonly task: TaskId; readonly attempt: Attempt }
  /** The producer. */
  readonly to: PeerAddress
  readonly farewell: CreditMessage
}

interface Kept {
  readonly task: TaskKey
  readonly attempt: Attempt
  readonly forget: () => void
}

export class EndedInputs {
  readonly #router: FrameRouter
  readonly #transport: FrameTransport
  readonly #kept = new Set<Kept>()

  constructor(router: FrameRouter, transport: FrameTransport) {
    this.#router = router
    this.#transport = transport
  }

  keep({ subject, route, owner, to, farewell }: EndedInput): void {
    const forget = this.#router.route(subject, route, (message) => {
      if (message.kind !== 'credit') this.#transport.send(to, encodeFrame(route, farewell))
    })
    this.#kept.add({ task: taskKey(owner.task), attempt: owner.attempt, forget })
    for (const oldest of this.#kept) {
      if (this.#kept.size <= ENDED_CHANNELS_MAX) break
      this.#forget(oldest)
    }
  }

  /** A new attempt of a subtask means that its producers of old are gone too. */
  forgetOtherAttempts(task: TaskId, attempt: Attempt): void {
    const key = taskKey(task)
    for (const kept of this.#kept) if (kept.task === key && !sameAttempt(kept.attempt, attempt)) this.#forget(kept)
  }

  clear(): void {
    for (const kept of this.#kept) this.#forget(kept)
  }

  #forget(kept: Kept): void {
    this.#kept.delete(kept)
    kept.forget()
  }
}
