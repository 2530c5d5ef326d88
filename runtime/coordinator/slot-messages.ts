// What slots say, and whom it concerns.

import { unreachable } from '../base/errors.ts'
import { taskKey } from '../base/ids.ts'
import type { FromSlot } from '../control/contract.ts'
import type { Parts } from './job-parts.ts'

export interface SlotMessageHooks {
  /** One more subtask runs, or has finished. */
  readonly onRunning: () => void
  readonly onProgress: () => void
}

export class SlotMessages {
  readonly #parts: Parts
  readonly #hooks: SlotMessageHooks

  constructor(parts: Parts, hooks: SlotMessageHooks) {
    this.#parts = parts
    this.#hooks = hooks
  }

  act(message: FromSlot): void {
    const parts = this.#parts
    switch (message.type) {
      case 'running': {
        // Before it ran it committed what the restore point holds for it (rule 22).
        const from = parts.restoredFromOf.get(taskKey(message.task))
        if (from !== undefined) parts.commits.committed(taskKey(message.task), from)
        parts.enumerators.readerRuns(message.task)
        return this.#hooks.onRunning()
      }
      case 'declined':
      case 'waitsForCheckpoint':
        return parts.checkpointing.handle(message)
      // A vertex that was wholly finished in the restore point runs nothing: its final state is the one that is stored, also while it
      // still waits for its end of data to be received. Else the next restore would take its source for one that was never read.
      case 'acknowledged': {
        const snapshot = parts.checkpointing.finalOf(taskKey(message.task)) ?? message.snapshot
        return parts.checkpointing.handle({ ...message, snapshot })
      }
      case 'finished': {
        const snapshot = parts.checkpointing.finalOf(taskKey(message.task)) ?? message.snapshot
        parts.commits.finished(taskKey(message.task))
        parts.checkpointing.handle({ ...message, snapshot })
        this.#hooks.onRunning()
        return this.#hooks.onProgress()
      }
      case 'requestSplit':
        return parts.enumerators.requestSplit(message.task)
      case 'committed':
        return parts.commits.committed(taskKey(message.task), message.id)
      case 'registered':
      case 'failed':
      case 'report':
        return undefined
      default:
        return unreachable(message)
    }
  }
}
