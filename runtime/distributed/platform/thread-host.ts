// A worker's slots as threads of its process. The links of all of them go over the process's one control connection.

import { flushCompileCache } from 'node:module'
import type { MessagePort } from 'node:worker_threads'
import type { Environment } from '../../base/environment.ts'
import type { Incarnation, SlotId } from '../../base/ids.ts'
import type { SlotStart } from '../../control/contract.ts'
import type { FailpointPlan } from '../../local/failpoint-plan.ts'
import { SpareThreads } from '../../local/platform/spare-threads.ts'
import { controlSubjects } from '../../network/subjects.ts'
import type { NatsLink, ProcessConfig } from '../contract.ts'
import type { SlotHost } from '../worker-shell.ts'
import { joinPorts } from './packet-port.ts'
import { SlotThread } from './slot-thread.ts'

export interface ThreadHostOptions {
  readonly config: ProcessConfig
  readonly worker: string
  readonly slotCount: number
  readonly environment: Environment
  readonly failpoints: FailpointPlan
  readonly control: Pick<NatsLink, 'datagrams'>
}

interface HostedSlot {
  readonly thread: SlotThread
  /** This end of its present link's port; undefined: its coordinator is gone. */
  port: MessagePort | undefined
  /** It is to end; else its end is news. */
  asked: boolean
}

export class ThreadHost implements SlotHost {
  readonly #options: ThreadHostOptions
  readonly #slots = new Map<SlotId, HostedSlot>()
  readonly #spares: SpareThreads<SlotThread>
  #onEnded: (slot: SlotId, reason: string) => void = () => undefined
  #onLinkLost: (slot: SlotId, reason: string) => void = () => undefined

  constructor(options: ThreadHostOptions) {
    this.#options = options
    const { environment, slotCount } = options
    this.#spares = new SpareThreads({
      clock: environment.clock,
      slotCount,
      start: () => new SlotThread((level, message, fields) => environment.log(level, message, fields)),
    })
  }

  start(slot: SlotId, start: SlotStart): void {
    const { config, worker, failpoints } = this.#options
    const thread = this.#spares.take()
    const port = thread.become({ slot, start, worker, config, failpoints })
    this.#slots.set(slot, { thread, port, asked: false })
    this.#join(port, slot, start.incarnation)
    void thread.exited.then(() => this.#exited(slot))
    // This thread's compiled code, while the new one loads: a process that is killed writes nothing down at its end.
    flushCompileCache()
  }

  attach(slot: SlotId, incarnation: Incarnation): void {
    const hosted = this.#slots.get(slot)
    if (hosted === undefined) return
    hosted.port = hosted.thread.attach(incarnation)
    this.#join(hosted.port, slot, incarnation)
  }

  detach(slot: SlotId, reason: string): void {
    const hosted = this.#slots.get(slot)
    if (hosted === undefined) return
    hosted.thread.detach(reason)
    // The thread may be in the middle of a long turn: nothing reaches it, or leaves it, from now on.
    hosted.port?.close()
    hosted.port = undefined
  }

  terminate(slot: SlotId): void {
    const hosted = this.#slots.get(slot)
    if (hosted === undefined) return
    hosted.asked = true
    hosted.thread
      .end()
      .catch((error: unknown) =>
        this.#options.environment.log('error', 'a thread does not end', { slot, error: String(error) }),
      )
  }

  onEnded(callback: (slot: SlotId, reason: string) => void): void {
    this.#onEnded = callback
  }

  onLinkLost(callback: (slot: SlotId, reason: string) => void): void {
    this.#onLinkLost = callback
  }

  async close(): Promise<void> {
    await Promise.all([this.#spares.close(), ...[...this.#slots.values()].map(({ thread }) => thread.end())])
  }

  #join(port: MessagePort, slot: SlotId, incarnation: Incarnation): void {
    const subjects = controlSubjects(this.#options.config.job.id, slot, incarnation)
    const far = this.#options.control.datagrams({ own: subjects.slot, peer: subjects.coordinator })
    const lost = (reason: string): void => {
      const hosted = this.#slots.get(slot)
      if (hosted?.port === port && !hosted.asked) this.#onLinkLost(slot, reason)
    }
    joinPorts(port, far, (error) => lost(`it has to say what cannot be sent: ${messageOf(error)}`))
    port.on('close', () => lost('its control link was lost, and its log says why'))
  }

  #exited(slot: SlotId): void {
    const hosted = this.#slots.get(slot)
    if (hosted === undefined) return
    this.#slots.delete(slot)
    hosted.port?.close()
    const { error } = hosted.thread
    const reason = hosted.asked ? 'it was asked to end' : `its thread ended${error === undefined ? '' : `: ${error}`}`
    if (!hosted.asked) this.#options.environment.log('error', 'a slot thread ended by itself', { slot, reason })
    this.#onEnded(slot, reason)
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
