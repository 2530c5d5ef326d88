// A slot: runs one subtask of every vertex of one slot-sharing group, on its coordinator's word. It lives and dies as a whole.

import type { Environment, Timer } from '../base/environment.ts'
import { unreachable } from '../base/errors.ts'
import { sameAttempt, taskKey } from '../base/ids.ts'
import type { Attempt, JobId, SlotId, TaskId, TaskKey } from '../base/ids.ts'
import type { SnapshotReader, SnapshotWriters } from '../checkpoint/contract.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { ControlLink, FromSlot, TaskDeployment, ToSlot } from '../control/contract.ts'
import { serializeError } from '../control/serialized-error.ts'
import type { JobGraph } from '../job/contract.ts'
import type { FrameTransport } from '../network/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { ChannelHub } from '../network/channel-hub.ts'
import { SlotExecutor } from './slot-executor.ts'
import { buildSubtask } from './subtask-builder.ts'
import type { Subtask } from './subtask-builder.ts'

/** How often metrics go to the coordinator. */
const reportIntervalMs = 500

export interface SlotOptions {
  readonly slot: SlotId
  readonly job: JobId
  readonly graph: JobGraph
  readonly environment: Environment
  readonly files: FileSystem
  readonly transport: FrameTransport
  readonly control: ControlLink<FromSlot, ToSlot>
  readonly snapshotWriters: SnapshotWriters
  readonly snapshotReader: SnapshotReader
  /** Credit of the slot's connection (rule 9); CREDIT_BYTES_MAX by default. */
  readonly creditBytes?: number
}

export class Slot {
  readonly #options: SlotOptions
  readonly #hub: ChannelHub
  readonly #executor: SlotExecutor
  readonly #subtasks = new Map<TaskKey, Subtask>()
  #broken = false
  #reportTimer: Timer | undefined

  constructor(options: SlotOptions) {
    this.#options = options
    this.#executor = new SlotExecutor(options.environment)
    const { job, slot, transport, environment, graph, creditBytes } = options
    const deadlineMs = graph.settings.channelDeadlineMs
    this.#hub = new ChannelHub({
      job,
      slot,
      transport,
      environment,
      deadlineMs,
      ...(creditBytes === undefined ? {} : { creditBytes }),
    })
    options.control.onMessage((message) => this.#receive(message))
    options.control.onLost((reason) => this.#stop(`the coordinator is gone: ${reason}`))
    options.control.send({
      type: 'registered',
      version: CONTROL_VERSION,
      slot: options.slot,
      graphHash: options.graph.hash,
    })
    this.#report()
  }

  /** Something outside any task is broken: the slot stops and says so. */
  fail(error: unknown): void {
    this.#fail(undefined, undefined, error)
  }

  #receive(message: ToSlot): void {
    if (this.#broken) return
    try {
      this.#act(message)
    } catch (error) {
      // Nobody above could report it: the link only delivers.
      this.#fail(undefined, undefined, error)
    }
  }

  #act(message: ToSlot): void {
    switch (message.type) {
      case 'deploy':
        for (const deployment of message.tasks) this.#deploy(deployment)
        return
      case 'trigger': {
        const { id, kind, halt, triggeredAtMs } = message
        const barrier = { id, kind, triggeredAtMs, alignedMs: 0, ...(halt !== undefined && { halt }) }
        return this.#current(message)?.task.trigger(barrier)
      }
      case 'abort':
        for (const subtask of this.#subtasks.values()) subtask.task.abort(message.id)
        return
      case 'complete':
        for (const subtask of this.#subtasks.values()) subtask.task.complete(message.id)
        return
      case 'assign':
        return this.#current(message)?.assign(message.splits, message.noMore)
      case 'splitsWait':
        return this.#current(message)?.setSplitsWait(message.waiting)
      default:
        return unreachable(message)
    }
  }

  #deploy(deployment: TaskDeployment): void {
    const subtask = buildSubtask(deployment, {
      ...this.#options,
      hub: this.#hub,
      wake: (task) => this.#executor.wake(task),
      fail: (error) => this.#fail(deployment.task, deployment.attempt, error),
    })
    this.#subtasks.set(taskKey(deployment.task), subtask)
    subtask.start().catch((error: unknown) => this.#fail(deployment.task, deployment.attempt, error))
  }

  #current(to: { readonly task: TaskId; readonly attempt: Attempt }): Subtask | undefined {
    const subtask = this.#subtasks.get(taskKey(to.task))
    return subtask !== undefined && sameAttempt(subtask.task.deployment.attempt, to.attempt) ? subtask : undefined
  }

  #fail(task: TaskId | undefined, attempt: Attempt | undefined, error: unknown): void {
    if (this.#broken) return
    this.#options.environment.log('error', 'a subtask failed', { slot: this.#options.slot, task, error: String(error) })
    this.#options.control.send({ type: 'failed', task, attempt, error: serializeError(error, this.#placeOf(task)) })
    // One subtask's failure is its thread's: nothing here runs on, the coordinator starts a fresh one.
    this.#stop('a subtask failed')
  }

  #placeOf(task: TaskId | undefined): string | undefined {
    const vertex = this.#options.graph.vertices.find(({ id }) => id === task?.vertex)
    return vertex === undefined ? undefined : `${vertex.name}, subtask ${task!.subtask}`
  }

  #stop(reason: string): void {
    if (this.#broken) return
    this.#broken = true
    this.#options.environment.log('debug', 'slot stops', { slot: this.#options.slot, reason })
    this.#reportTimer?.cancel()
    this.#executor.close()
    for (const subtask of this.#subtasks.values()) subtask.task.close()
    this.#hub.closeAll()
  }

  #report(): void {
    this.#reportTimer = this.#options.environment.clock.timer(reportIntervalMs, () => {
      if (this.#broken) return
      const tasks = [...this.#subtasks.values()].map((subtask) => subtask.report())
      if (tasks.length > 0) this.#options.control.send({ type: 'report', tasks })
      this.#report()
    })
  }
}
