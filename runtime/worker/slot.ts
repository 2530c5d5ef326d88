// A slot: runs one subtask of every vertex of one slot-sharing group, on its coordinator's word. It lives and dies as a whole.

import type { Environment, Timer } from '../base/environment.ts'
import { unreachable } from '../base/errors.ts'
import { sameAttempt, taskKey } from '../base/ids.ts'
import type { Attempt, JobId, SlotId, TaskId, TaskKey } from '../base/ids.ts'
import type { SnapshotReader, SnapshotWriters, SubtaskSnapshot } from '../checkpoint/contract.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type { ControlLink, FromSlot, SurvivingTask, TaskDeployment, ToSlot } from '../control/contract.ts'
import { serializeError } from '../control/serialized-error.ts'
import type { JobGraph } from '../job/contract.ts'
import type { FrameTransport } from '../network/contract.ts'
import type { FileSystem } from '../storage/contract.ts'
import { ChannelHub } from '../network/channel-hub.ts'
import { SlotExecutor } from './slot-executor.ts'
import { buildSubtask } from './subtask-builder.ts'
import type { Subtask } from './subtask-builder.ts'

/** Without a coordinator for so long no snapshot that is pending will complete: what waits for its barriers goes on (rule 25). */
const alignmentsDroppedAfterMs = 5_000

/** How often metrics go to the coordinator. */
const reportIntervalMs = 500

/** A failure is told to every coordinator that asks. */
type SlotEnd = Extract<FromSlot, { type: 'failed' }> | 'stopped'

export interface SlotOptions {
  readonly slot: SlotId
  readonly job: JobId
  readonly graph: JobGraph
  readonly environment: Environment
  readonly files: FileSystem
  readonly transport: FrameTransport
  readonly control: ControlLink<FromSlot, ToSlot>
  /** Its subtasks run on when the coordinator is lost, until attach() gives it the next one; else it stops then. */
  readonly outlivesCoordinator?: boolean
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
  #control: ControlLink<FromSlot, ToSlot> | undefined
  /** What subtasks say that have been asked already waits until all are, and the coordinator has heard of them. */
  #registration: { readonly surveyed: Set<TaskKey>; readonly held: FromSlot[] } | undefined
  readonly #finals = new Map<TaskKey, SubtaskSnapshot>()
  #broken: SlotEnd | undefined
  #orphaned: Timer | undefined
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
    this.attach(options.control)
    this.#report()
  }

  /**
   * The coordinator, or the next one after it was lost: it hears first what runs here, and then what the subtasks say from there on. What a
   * link before still brings is not listened to any more.
   */
  attach(control: ControlLink<FromSlot, ToSlot>): void {
    this.#control?.close()
    this.#control = control
    this.#orphaned?.cancel()
    const registration = { surveyed: new Set<TaskKey>(), held: [] as FromSlot[] }
    this.#registration = registration
    control.onMessage((message) => this.#control === control && this.#receive(message))
    control.onLost((reason) => this.#control === control && this.#lost(reason))
    if (this.#subtasks.size === 0) {
      this.#registration = undefined
      return this.#register([])
    }
    void this.#survey(registration.surveyed).then((tasks) => {
      if (this.#registration !== registration) return
      this.#registration = undefined
      this.#register(tasks)
      for (const message of registration.held) this.#say(message)
    })
  }

  /** Something outside any task is broken: the slot stops and says so. */
  fail(error: unknown): void {
    this.#fail(undefined, undefined, error)
  }

  #receive(message: ToSlot): void {
    if (this.#broken !== undefined) return
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
      case 'adopt':
        for (const subtask of this.#subtasks.values()) subtask.task.adopt(message.newestKnown)
        return
      case 'begin':
        for (const subtask of this.#subtasks.values()) subtask.task.begin()
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
      control: { send: (said) => this.#say(said) },
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
    if (this.#broken !== undefined) return
    this.#options.environment.log('error', 'a subtask failed', { slot: this.#options.slot, task, error: String(error) })
    const failed = { type: 'failed', task, attempt, error: serializeError(error, this.#placeOf(task)) } as const
    // One subtask's failure is its thread's: nothing here runs on, the coordinator starts a fresh one.
    this.#stop('a subtask failed', failed)
    if (this.#registration === undefined) this.#control?.send(failed)
  }

  #lost(reason: string): void {
    this.#control = undefined
    this.#registration = undefined
    if (this.#options.outlivesCoordinator !== true) return this.#stop(`the coordinator is gone: ${reason}`, 'stopped')
    if (this.#broken !== undefined) return
    const { log } = this.#options.environment
    log('warn', 'the link to the coordinator is lost; the subtasks run on', { slot: this.#options.slot, reason })
    this.#dropAlignments()
  }

  /** Again and again: a barrier that was held up on its way may begin another one later, and the data would stand still behind it. */
  #dropAlignments(): void {
    this.#orphaned = this.#options.environment.clock.timer(alignmentsDroppedAfterMs, () => {
      for (const { task } of this.#subtasks.values()) task.dropAlignment()
      this.#dropAlignments()
    })
  }

  /** `surveyed`: those whose part is taken. */
  #survey(surveyed: Set<TaskKey>): Promise<readonly SurvivingTask[]> {
    return Promise.all(
      [...this.#subtasks.values()].map(
        ({ task: { deployment }, task: subtask }) =>
          new Promise<SurvivingTask>((resolve) =>
            subtask.survey((survey) => {
              const { task, attempt, inputs, outputs } = deployment
              const key = taskKey(task)
              surveyed.add(key)
              const final = this.#finals.get(key)
              const status = final === undefined ? survey.status : 'finished'
              resolve({ ...survey, task, attempt, inputs, outputs, status, final })
            }),
          ),
      ),
    )
  }

  #register(tasks: readonly SurvivingTask[]): void {
    const { slot, graph } = this.#options
    const isBroken = this.#broken !== undefined
    this.#control?.send({
      type: 'registered',
      version: CONTROL_VERSION,
      slot,
      graphHash: graph.hash,
      tasks: isBroken ? [] : tasks,
    })
    if (isBroken && this.#broken !== 'stopped') this.#control?.send(this.#broken!)
  }

  /** Without a coordinator it is dropped: the next one learns it from what the slot registers with. */
  #say(message: FromSlot): void {
    if (message.type === 'finished') this.#finals.set(taskKey(message.task), message.snapshot)
    const registration = this.#registration
    if (registration === undefined) this.#control?.send(message)
    else if ('task' in message && message.task !== undefined && registration.surveyed.has(taskKey(message.task)))
      registration.held.push(message)
  }

  #placeOf(task: TaskId | undefined): string | undefined {
    const vertex = this.#options.graph.vertices.find(({ id }) => id === task?.vertex)
    return vertex === undefined ? undefined : `${vertex.name}, subtask ${task!.subtask}`
  }

  #stop(reason: string, broken: SlotEnd): void {
    if (this.#broken !== undefined) return
    this.#broken = broken
    this.#options.environment.log('debug', 'slot stops', { slot: this.#options.slot, reason })
    this.#reportTimer?.cancel()
    this.#orphaned?.cancel()
    this.#executor.close()
    for (const subtask of this.#subtasks.values()) subtask.task.close()
    this.#hub.closeAll()
  }

  #report(): void {
    this.#reportTimer = this.#options.environment.clock.timer(reportIntervalMs, () => {
      if (this.#broken !== undefined) return
      const tasks = [...this.#subtasks.values()].map((subtask) => subtask.report())
      if (tasks.length > 0) this.#say({ type: 'report', tasks })
      this.#report()
    })
  }
}
