// One thread for a slot of a local job.

import type { MessagePort } from 'node:worker_threads'
import type { SlotId } from '../../base/ids.ts'
import type { LogSink } from './real-environment.ts'
import { RuntimeThread } from './runtime-thread.ts'
import type { PeerMessage, SlotSetup } from './slot-setup.ts'

const entry = new URL(import.meta.url.endsWith('.ts') ? './slot-entry.ts' : './slot-entry.js', import.meta.url)

export class SlotThread extends RuntimeThread<SlotSetup | PeerMessage> {
  #slot: SlotId | undefined

  constructor(log?: LogSink) {
    super(entry, log)
    this.worker.on('error', (error) =>
      this.log?.('error', 'a slot thread ended with an error', { slot: this.#slot, error: String(error) }),
    )
  }

  logTo(log: LogSink): void {
    this.log = log
  }

  /** Makes it the slot; the answer is the other end of its control port. */
  become(setup: Omit<SlotSetup, 'control'>): MessagePort {
    this.#slot = setup.slot
    return this.connect((control) => ({ ...setup, control }))
  }

  tell(message: PeerMessage): void {
    this.say(message, message.type === 'peer' ? message.port : undefined)
  }
}
