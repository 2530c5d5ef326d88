// Slots as threads of this process, each joined to each by a port.

import { MessageChannel, Worker } from 'node:worker_threads'
import type { Environment } from '../../base/environment.ts'
import type { SlotId } from '../../base/ids.ts'
import type { ControlLink, FromSlot, SlotProvider, ToSlot } from '../../control/contract.ts'
import { createDirectLink } from '../../control/direct-link.ts'
import type { LogSink } from './real-environment.ts'
import type { PeerMessage, SlotSetup } from './slot-setup.ts'

const entry = new URL(import.meta.url.endsWith('.ts') ? './slot-main.ts' : './slot-main.js', import.meta.url)

/** Bounds what short-lived records take of each thread's memory: Node 24 would let it grow to 192 MB. The flights job takes the same processor time with either (measured). */
const maxYoungGenerationSizeMb = 64

export interface ThreadSlotsOptions {
  /** All but what differs from slot to slot. */
  readonly setup: Omit<SlotSetup, 'slot' | 'control'>
  readonly environment: Environment
  readonly log: LogSink
}

interface RunningSlot {
  readonly worker: Worker
  readonly exited: Promise<void>
}

export class ThreadSlots implements SlotProvider {
  readonly #options: ThreadSlotsOptions
  readonly #running = new Map<SlotId, RunningSlot>()

  constructor(options: ThreadSlotsOptions) {
    this.#options = options
  }

  /** The threads that run now; tests terminate them behind the coordinator's back. */
  get workers(): ReadonlyMap<SlotId, Worker> {
    return new Map([...this.#running].map(([slot, { worker }]) => [slot, worker]))
  }

  start(slot: SlotId): ControlLink<ToSlot, FromSlot> {
    const { port1, port2 } = new MessageChannel()
    const setup: SlotSetup = { ...this.#options.setup, slot, control: port2 }
    const worker = new Worker(entry, {
      workerData: setup,
      transferList: [port2],
      resourceLimits: { maxYoungGenerationSizeMb },
    })
    const exited = new Promise<void>((resolve) => {
      worker.once('exit', () => {
        this.#running.delete(slot)
        this.#tellOthers(slot)
        // The thread's end of the port is gone with it; closing ours as well makes the loss known in any case.
        port1.close()
        resolve()
      })
    })
    worker.on(
      'message',
      (message: { level: 'debug' | 'info' | 'warn' | 'error'; message: string; fields?: Record<string, unknown> }) => {
        this.#options.log(message.level, message.message, message.fields)
      },
    )
    worker.on('error', (error) =>
      this.#options.log('error', 'a slot thread ended with an error', { slot, error: String(error) }),
    )
    this.#connect(slot, worker)
    this.#running.set(slot, { worker, exited })
    return createDirectLink<ToSlot, FromSlot>(port1)
  }

  async terminate(slot: SlotId): Promise<void> {
    const running = this.#running.get(slot)
    if (running === undefined) return
    await running.worker.terminate()
    await running.exited
  }

  #connect(slot: SlotId, worker: Worker): void {
    for (const [other, { worker: otherWorker }] of this.#running) {
      const { port1, port2 } = new MessageChannel()
      worker.postMessage({ type: 'peer', slot: other, port: port1 } satisfies PeerMessage, [port1])
      otherWorker.postMessage({ type: 'peer', slot, port: port2 } satisfies PeerMessage, [port2])
    }
  }

  #tellOthers(slot: SlotId): void {
    for (const { worker } of this.#running.values()) worker.postMessage({ type: 'gone', slot } satisfies PeerMessage)
  }
}
