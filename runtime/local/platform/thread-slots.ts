// Slots as threads of this process, each joined to each by a port.

import { flushCompileCache } from 'node:module'
import { MessageChannel } from 'node:worker_threads'
import type { Worker } from 'node:worker_threads'
import type { Environment } from '../../base/environment.ts'
import type { SlotId } from '../../base/ids.ts'
import type { ControlLink, FromSlot, SlotProvider, ToSlot } from '../../control/contract.ts'
import { createDirectLink } from '../../control/direct-link.ts'
import type { LogSink } from './real-environment.ts'
import type { SlotSetup } from './slot-setup.ts'
import { SlotThread } from './slot-thread.ts'
import { SpareThreads } from './spare-threads.ts'

export interface ThreadSlotsOptions {
  /** All but what differs from slot to slot. */
  readonly setup: Omit<SlotSetup, 'slot' | 'control'>
  readonly environment: Environment
  readonly log: LogSink
}

export class ThreadSlots implements SlotProvider {
  readonly #options: ThreadSlotsOptions
  readonly #running = new Map<SlotId, SlotThread>()
  readonly #spares: SpareThreads<SlotThread>

  constructor(options: ThreadSlotsOptions) {
    this.#options = options
    const { environment, log, setup } = options
    this.#spares = new SpareThreads({
      clock: environment.clock,
      slotCount: setup.slotCount,
      start: () => new SlotThread(log),
    })
  }

  /** The threads that run now; tests terminate them behind the coordinator's back. */
  get workers(): ReadonlyMap<SlotId, Worker> {
    return new Map([...this.#running].map(([slot, { worker }]) => [slot, worker]))
  }

  start(slot: SlotId): ControlLink<ToSlot, FromSlot> {
    const thread = this.#spares.take()
    const control = thread.become({ ...this.#options.setup, slot })
    void thread.exited.then(() => {
      this.#running.delete(slot)
      for (const other of this.#running.values()) other.tell({ type: 'gone', slot })
      // The thread's end of the port is gone with it; closing ours as well makes the loss known in any case.
      control.close()
    })
    this.#connect(slot, thread)
    this.#running.set(slot, thread)
    // This thread's compiled code, while the new one loads: a process that is killed writes nothing down at its end.
    flushCompileCache()
    return createDirectLink<ToSlot, FromSlot>(control)
  }

  async terminate(slot: SlotId): Promise<void> {
    await this.#running.get(slot)?.end()
  }

  close(): Promise<void> {
    return this.#spares.close()
  }

  #connect(slot: SlotId, thread: SlotThread): void {
    for (const [otherSlot, other] of this.#running) {
      const { port1, port2 } = new MessageChannel()
      thread.tell({ type: 'peer', slot: otherSlot, port: port1 })
      other.tell({ type: 'peer', slot, port: port2 })
    }
  }
}
