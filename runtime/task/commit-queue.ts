// Carries out permits to commit, one after another. A permit for n covers all before it, so waiting ones collapse into one.

import type { CheckpointId } from '../base/ids.ts'
import type { OperatorChain } from './operator-chain.ts'

export interface CommitQueueOptions {
  readonly chain: OperatorChain
  readonly committed: (id: CheckpointId) => void
  readonly fail: (error: unknown) => void
}

export class CommitQueue {
  readonly #options: CommitQueueOptions
  #wanted: CheckpointId | undefined
  #running = false

  constructor(options: CommitQueueOptions) {
    this.#options = options
  }

  permit(id: CheckpointId): void {
    if (this.#wanted === undefined || id > this.#wanted) this.#wanted = id
    if (!this.#running) void this.#run()
  }

  async #run(): Promise<void> {
    this.#running = true
    try {
      while (this.#wanted !== undefined) {
        const id = this.#wanted
        this.#wanted = undefined
        for (const { operator } of this.#options.chain.operators()) await operator.complete?.(id)
        this.#options.committed(id)
      }
    } catch (error) {
      this.#options.fail(error)
    } finally {
      this.#running = false
    }
  }
}
