// Checkpoint ids from blocks that HEAD has reserved before any of them is used (rule 6).

import { checkpointId } from '../base/ids.ts'
import type { CheckpointId } from '../base/ids.ts'
import type { CheckpointIds } from '../checkpoint/core-contract.ts'
import { coordinatorError } from './errors.ts'

/** Ids to a block: one swap of HEAD for so many checkpoints. */
export const idBlockSize = 1000
/** The next block is reserved when fewer than this are left. */
const idsLeftMin = 500

export class ReservedIds implements CheckpointIds {
  readonly #blocks: { next: number; readonly to: number }[] = []

  add(block: { readonly from: number; readonly to: number }): void {
    this.#blocks.push({ next: block.from, to: block.to })
  }

  get needsBlock(): boolean {
    return this.#blocks.reduce((left, block) => left + block.to - block.next + 1, 0) < idsLeftMin
  }

  next(): CheckpointId {
    const block = this.#blocks[0]
    if (block === undefined) throw coordinatorError('MR-O15', `Blocks of ${idBlockSize} are reserved ahead.`)
    const id = checkpointId(block.next++)
    if (block.next > block.to) this.#blocks.shift()
    return id
  }
}
