// Slots as threads of this process, each joined to each by a port.

import { flushCompileCache } from 'node:module'
import { MessageChannel } from 'node:worker_threads'
import type { Worker } from 'node:worker_threads'
import { within } from '../../base/deadline.ts'
import type { Environment } from '../../base/environment.ts'
import type { SlotId } from '../../base/ids.ts'
import { THREAD_END_MS_MAX } from '../../control/contract.ts'
import type { ControlLink, FromSlot, SlotProvider, SlotStart, ToSlot } from '../../control/contract.ts'
import { createDirectLink } from '../../control/direct-link.ts'
import { localError } from '../errors.ts'
import type { LogSink } from './real-environment.ts'
import type { SlotSetup } from './slot-setup.ts'
import { SlotThread } from './slot-thread.ts'
import { SpareThreads } from './spare-threads.ts'

export interface ThreadSlotsOptions {
  /** All but what differs from slot to slot. */
  readonly setup: Omit<SlotSetup, 'slot' | 'control'>
  readonly environment: Environment
  readonly log: LogSink
  /** Of startEarlyThreads. */
  readonly early?: readonly SlotThread[] | undefined
  /** Ends this process, whatever its threads do; default: SIGKILL. */
  readonly kill?: () => void
}

export class ThreadSlots implements SlotProvider {
  readonly #options: ThreadSlotsOptions
  readonly #running = new Map<SlotId, SlotThread>()
  readonly #spares: SpareThreads<SlotThread>

  constructor(options: ThreadSlotsOptions) {
    this.#options = options
    const { environment, log, setup, early } = options
    for (const thread of early ?? []) thread.logTo(log)
    this.#spares = new SpareThreads({
      clock: environment.clock,
      slotCount: setup.slotCount,
      start: () => new SlotThread(log),
      early,
    })
  }

  /** The threads that run now; tests terminate them behind the coordinator's back. */
  get workers(): ReadonlyMap<SlotId, Worker> {
    return new Map([...this.#running].map(([slot, { worker }]) => [slot, worker]))
  }

  start(slot: SlotId, { parallelism }: SlotStart): ControlLink<ToSlot, FromSlot> {
    const thread = this.#spares.take()
    const { setup } = this.#options
    const control = thread.become({ ...setup, parallelism: parallelism ?? setup.parallelism, slot })
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

  /** Rejects with MR-L04 if the process outlives that. */
  async terminate(slot: SlotId): Promise<void> {
    const thread = this.#running.get(slot)
    if (thread === undefined) return
    const { environment, log, kill = killProcess } = this.#options
    const late = (): Error => {
      const error = localError('MR-L04', `Slot ${slot} was asked to end ${THREAD_END_MS_MAX / 1000} s ago.`)
      log('error', error.message, undefined)
      kill()
      return error
    }
    await within(environment.clock, THREAD_END_MS_MAX, thread.end(), late)
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

function killProcess(): void {
  process.kill(process.pid, 'SIGKILL')
}
