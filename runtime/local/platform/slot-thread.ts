// One thread for a slot. It loads the runtime, says so, and waits: what it is to be comes as a message, once.

import { MessageChannel, Worker } from 'node:worker_threads'
import type { MessagePort } from 'node:worker_threads'
import type { SlotId } from '../../base/ids.ts'
import type { LogSink } from './real-environment.ts'
import type { FromThread, PeerMessage, SlotSetup } from './slot-setup.ts'

const entry = new URL(import.meta.url.endsWith('.ts') ? './slot-main.ts' : './slot-main.js', import.meta.url)

/** Bounds what short-lived records take of each thread's memory: Node 24 would let it grow to 192 MB. The flights job takes the same processor time with either (measured). */
const maxYoungGenerationSizeMb = 64

export class SlotThread {
  readonly worker: Worker
  /** The runtime is loaded. Never settles for a thread that ends before. */
  readonly ready: Promise<void>
  /** Whatever ended it. */
  readonly exited: Promise<void>
  #slot: SlotId | undefined

  constructor(log: LogSink) {
    this.worker = new Worker(entry, { resourceLimits: { maxYoungGenerationSizeMb } })
    // Until it is a slot, nothing waits for it.
    this.worker.unref()
    this.exited = new Promise((resolve) => void this.worker.once('exit', () => resolve()))
    this.ready = new Promise((resolve) => {
      this.worker.on('message', (message: FromThread) => {
        if (message.type === 'ready') return resolve()
        return log(message.level, message.message, message.fields)
      })
    })
    this.worker.on('error', (error) =>
      log('error', 'a slot thread ended with an error', { slot: this.#slot, error: String(error) }),
    )
  }

  /** Makes it the slot; the answer is the other end of its control port. */
  become(setup: Omit<SlotSetup, 'control'>): MessagePort {
    this.#slot = setup.slot
    const { port1, port2 } = new MessageChannel()
    this.worker.ref()
    this.worker.postMessage({ ...setup, control: port2 } satisfies SlotSetup, [port2])
    return port1
  }

  tell(message: PeerMessage): void {
    this.worker.postMessage(message, message.type === 'peer' ? [message.port] : [])
  }

  async end(): Promise<void> {
    await this.worker.terminate()
    await this.exited
  }
}
