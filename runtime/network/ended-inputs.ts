// Inputs whose end of data was taken and whose subtask has left. Their producers stay until they hear that the end arrived
// (rule 19); where that word was lost they repeat, and without an answer they would fail at their deadline.

import { sameAttempt, taskKey } from '../base/ids.ts'
import type { Attempt, TaskId, TaskKey } from '../base/ids.ts'
import { ENDED_CHANNELS_MAX } from './limits.ts'

interface Kept {
  readonly task: TaskKey
  readonly attempt: Attempt
  readonly forget: () => void
}

/** The inputs answer by themselves; this keeps them reachable, and forgets the oldest beyond a bound. */
export class EndedInputs {
  readonly #kept = new Set<Kept>()

  keep(owner: { readonly task: TaskId; readonly attempt: Attempt }, forget: () => void): void {
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
