// All input channels of a subtask, read fairly: a channel that has something gets its turn after the others.

import type { InputChannel } from '../network/contract.ts'
import type { ChannelItem } from '../record/element.ts'

export class InputGate {
  readonly channels: readonly InputChannel[]
  #last = -1

  constructor(channels: readonly InputChannel[], onAvailable: () => void) {
    this.channels = channels
    for (const channel of channels) channel.onAvailable(onAvailable)
  }

  /** The index of the channel that the last item came from. */
  get lastChannel(): number {
    return this.#last
  }

  next(): ChannelItem | undefined {
    const count = this.channels.length
    for (let step = 1; step <= count; step++) {
      const index = (this.#last + step) % count
      const item = this.channels[index]!.next()
      if (item !== undefined) {
        this.#last = index
        return item
      }
    }
    return undefined
  }

  open(): void {
    for (const channel of this.channels) channel.open()
  }

  unblockAll(): void {
    for (const channel of this.channels) channel.unblock()
  }
}
