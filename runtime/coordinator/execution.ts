// Which attempt of each subtask runs in which slot, and the links to the slots. It carries out; the lifecycle decides.

import type { Environment, Timer } from '../base/environment.ts'
import { invariant } from '../base/errors.ts'
import { sameAttempt, taskKey } from '../base/ids.ts'
import type { Attempt, Incarnation, JobId, SlotId, TaskId, TaskKey } from '../base/ids.ts'
import { CONTROL_VERSION } from '../control/contract.ts'
import type {
  ControlLink,
  FromSlot,
  SerializedError,
  SlotProvider,
  SlotStart,
  TaskDeployment,
  TaskReport,
  ToSlot,
} from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Adoption } from './adoption.ts'
import { nameOfSlot } from './placement.ts'
import type { Placement } from './placement.ts'
import type { TaskMessage } from './enumerators.ts'
import { coordinatorError } from './errors.ts'

/** How long a slot may take to load the job and register. */
export const registrationDeadlineMs = 60_000

export type TaskStatus = 'deploying' | 'running' | 'finished'

export interface TaskEntry {
  readonly task: TaskId
  readonly key: TaskKey
  readonly slot: number
  attempt: Attempt
  status: TaskStatus
  report: TaskReport | undefined
}

export interface Failure {
  readonly slots: ReadonlySet<number>
  readonly tasks: readonly TaskId[]
  readonly error: SerializedError
  /** The restore point could not be read or dealt out: nothing says that the job itself is wrong. */
  readonly restoring?: unknown
  /** Subtasks stand behind a stop barrier in vain. */
  readonly halted?: true
}

export interface ExecutionOptions {
  readonly graph: JobGraph
  readonly job: JobId
  readonly incarnation: Incarnation
  /** As SlotStart says. */
  readonly rescaledTo: number | undefined
  readonly environment: Environment
  readonly placement: Placement
  readonly slots: SlotProvider
  /** From current attempts only. */
  readonly onMessage: (message: FromSlot) => void
  readonly onFailure: (failure: Failure) => void
}

interface SlotEntry {
  readonly number: number
  readonly id: SlotId
  readonly link: ControlLink<ToSlot, FromSlot>
  state: 'starting' | 'registered' | 'gone'
  readonly deployments: readonly TaskDeployment[]
  registration: Timer | undefined
}

export class Execution {
  readonly tasks = new Map<TaskKey, TaskEntry>()
  readonly #options: ExecutionOptions
  readonly #slots = new Map<number, SlotEntry>()
  readonly #lives = new Map<number, number>()
  /** The name of the slot's present or next life. */
  readonly #names = new Map<number, SlotId>()
  /** Attempts that are given up here, and not in HEAD yet. */
  readonly #former = new Map<TaskKey, Attempt>()
  #nextAttempt = 1

  constructor(options: ExecutionOptions) {
    this.#options = options
    for (const { task, slot } of options.placement.tasks) {
      const key = taskKey(task)
      const attempt = { incarnation: options.incarnation, number: 0 }
      this.tasks.set(key, { task, key, slot, attempt, status: 'deploying', report: undefined })
    }
  }

  get allRunning(): boolean {
    for (const entry of this.tasks.values()) if (entry.status === 'deploying') return false
    return true
  }

  get allFinished(): boolean {
    for (const entry of this.tasks.values()) if (entry.status !== 'finished') return false
    return true
  }

  /** Whether one of them has not come to run yet. */
  someDeploying(tasks: readonly TaskId[]): boolean {
    return tasks.some((task) => this.#entry(task).status === 'deploying')
  }

  /** The current attempt of each subtask. */
  attempts(): ReadonlyMap<TaskKey, Attempt> {
    const attempts = new Map<TaskKey, Attempt>()
    for (const entry of this.tasks.values()) attempts.set(entry.key, entry.attempt)
    return attempts
  }

  /** New attempt numbers and slot names for a restart; nothing runs yet. */
  renew(tasks: readonly TaskId[]): void {
    const slots = new Set<number>()
    for (const task of tasks) {
      const entry = this.#entry(task)
      this.#former.set(entry.key, this.#former.get(entry.key) ?? entry.attempt)
      entry.attempt = { incarnation: this.#options.incarnation, number: this.#nextAttempt++ }
      entry.status = 'deploying'
      entry.report = undefined
      slots.add(entry.slot)
    }
    for (const slot of slots) {
      const life = (this.#lives.get(slot) ?? 0) + 1
      this.#lives.set(slot, life)
      this.#names.set(slot, nameOfSlot(slot, this.#options.incarnation, life))
    }
  }

  /** Of all slots, as they run or will run. */
  get slotNames(): readonly SlotId[] {
    return [...this.#names.values()]
  }

  /** HEAD says which slots are given up: nobody adopts them any more. */
  givenUp(): void {
    this.#former.clear()
  }

  /** The attempt before the task's current one, while the next coordinator might still adopt it. */
  formerAttemptOf(task: TaskId): Attempt | undefined {
    return this.#former.get(taskKey(task))
  }

  /** The name of the slot that runs, or will run, the task's current attempt. */
  slotOf(task: TaskId): SlotId {
    const { slot } = this.#entry(task)
    const name = this.#names.get(slot)
    invariant(name !== undefined, `slot ${slot} has no name`)
    return name
  }

  slotNumberOf(task: TaskId): number {
    return this.#entry(task).slot
  }

  attemptOf(task: TaskId): Attempt {
    return this.#entry(task).attempt
  }

  /** Takes over what runs on from an earlier incarnation, in the attempts that it has (rule 25). It is heard from `listenTo` on. */
  adopt({ slots, tasks }: Adoption): void {
    for (const { task, attempt, status } of tasks) {
      const entry = this.#entry(task)
      entry.attempt = attempt
      entry.status = status === 'finished' ? 'finished' : 'running'
      entry.report = undefined
    }
    for (const { number, survivor } of slots) {
      this.#names.set(number, survivor.slot)
      const { slot: id, link } = survivor
      this.#slots.set(number, { number, id, link, state: 'registered', deployments: [], registration: undefined })
    }
  }

  /** What these slots have said since they registered comes now. */
  listenTo({ slots }: Adoption): void {
    for (const { number } of slots) this.#listen(this.#slots.get(number)!)
  }

  /** Starts fresh slots for these deployments; each is deployed to when it has registered. */
  deploy(deployments: readonly TaskDeployment[]): void {
    const bySlot = new Map<number, TaskDeployment[]>()
    for (const deployment of deployments) {
      const { slot } = this.#entry(deployment.task)
      const group = bySlot.get(slot)
      if (group === undefined) bySlot.set(slot, [deployment])
      else group.push(deployment)
    }
    for (const [number, group] of bySlot) this.#start(number, group)
  }

  send(task: TaskId, message: TaskMessage): void {
    const entry = this.#entry(task)
    const slot = this.#slots.get(entry.slot)
    if (slot === undefined || slot.state === 'gone') return
    slot.link.send({ ...message, task, attempt: entry.attempt })
  }

  broadcast(message: ToSlot): void {
    for (const slot of this.#slots.values()) if (slot.state === 'registered') slot.link.send(message)
  }

  /** Ends these slots' threads; resolves when none can send anything any more. */
  async terminate(numbers: Iterable<number>): Promise<void> {
    const ending: Promise<void>[] = []
    for (const number of numbers) {
      const slot = this.#slots.get(number)
      if (slot === undefined) continue
      slot.state = 'gone'
      slot.registration?.cancel()
      this.#slots.delete(number)
      slot.link.close()
      ending.push(this.#options.slots.terminate(slot.id))
    }
    await Promise.all(ending)
  }

  /** Ends all slots. */
  async close(): Promise<void> {
    await this.terminate([...this.#slots.keys()])
  }

  #entry(task: TaskId): TaskEntry {
    const entry = this.tasks.get(taskKey(task))
    invariant(entry !== undefined, `no subtask ${taskKey(task)}`)
    return entry
  }

  #start(number: number, deployments: readonly TaskDeployment[]): void {
    const { slots, incarnation, environment, rescaledTo } = this.#options
    const id = this.slotOf(deployments[0]!.task)
    const start: SlotStart = { incarnation, parallelism: rescaledTo }
    const link = slots.start(id, start)
    const slot: SlotEntry = { number, id, link, state: 'starting', deployments, registration: undefined }
    this.#slots.set(number, slot)
    this.#listen(slot)
    const deadlineMs = slots.registrationDeadlineMs ?? registrationDeadlineMs
    slot.registration = environment.clock.timer(deadlineMs, () => {
      if (slot.state === 'starting') this.#lost(slot, coordinatorError('MR-O12', `Slot ${id}, ${deadlineMs} ms.`))
    })
  }

  #listen(slot: SlotEntry): void {
    slot.link.onMessage((message) => this.#receive(slot, message))
    slot.link.onLost((reason) => this.#lost(slot, coordinatorError('MR-O11', `Slot ${slot.id}: ${reason}.`)))
  }

  #receive(slot: SlotEntry, message: FromSlot): void {
    if (slot.state === 'gone') return
    if (message.type === 'registered') return this.#registered(slot, message)
    if (message.type === 'failed') return this.#failed(slot, message.error)
    if (message.type === 'report') return this.#reported(message.tasks)
    const entry = this.tasks.get(taskKey(message.task))
    if (entry === undefined || !sameAttempt(entry.attempt, message.attempt)) return
    if (message.type === 'running' && entry.status === 'deploying') entry.status = 'running'
    if (message.type === 'finished') entry.status = 'finished'
    this.#options.onMessage(message)
  }

  #registered(slot: SlotEntry, message: Extract<FromSlot, { type: 'registered' }>): void {
    const { graph } = this.#options
    if (message.version !== CONTROL_VERSION) {
      return this.#lost(
        slot,
        coordinatorError('MR-O13', `Slot ${slot.id} speaks ${message.version}, the coordinator ${CONTROL_VERSION}.`),
      )
    }
    if (message.graphHash !== graph.hash) {
      return this.#lost(
        slot,
        coordinatorError('MR-O14', `Slot ${slot.id} built ${message.graphHash}, the coordinator ${graph.hash}.`),
      )
    }
    slot.state = 'registered'
    slot.registration?.cancel()
    slot.link.send({ type: 'deploy', tasks: slot.deployments })
  }

  #reported(reports: readonly TaskReport[]): void {
    for (const report of reports) {
      const entry = this.tasks.get(taskKey(report.task))
      if (entry !== undefined && sameAttempt(entry.attempt, report.attempt)) entry.report = report
    }
  }

  #lost(slot: SlotEntry, error: Error & { readonly code: string; readonly retry: boolean }): void {
    if (slot.state === 'gone') return
    this.#failed(slot, {
      name: error.name,
      message: error.message,
      stack: undefined,
      code: error.code,
      retry: error.retry,
    })
  }

  #failed(slot: SlotEntry, error: SerializedError): void {
    slot.state = 'gone'
    slot.registration?.cancel()
    const tasks = [...this.tasks.values()].filter((entry) => entry.slot === slot.number).map(({ task }) => task)
    this.#options.onFailure({ slots: new Set([slot.number]), tasks, error })
  }
}
