// Slots in workers' processes: the shell of WorkerRegistry. Each slot's link goes over datagrams of its own; the workers' direct
// connections say when a slot can be reached, and when it is lost.

import { pause } from '../base/deadline.ts'
import type { Environment, Timer } from '../base/environment.ts'
import { MillraceError } from '../base/errors.ts'
import type { Incarnation, JobId, SlotId } from '../base/ids.ts'
import type {
  ControlLink,
  FromSlot,
  SlotProvider,
  SlotStart,
  SurvivingSlot,
  SurvivorsOptions,
  ToSlot,
} from '../control/contract.ts'
import { createLink } from '../control/link.ts'
import type { DatagramPort } from '../control/link.ts'
import type { MessageConnection } from '../control/worker-contract.ts'
import { BoundLater } from '../control/worker-link.ts'
import { readFromWorker } from '../control/worker-wire.ts'
import { Survival } from './remote-slots-survival.ts'
import { WorkerRegistry } from './worker-registry.ts'
import type { RegistryEffect, WorkerEntry } from './worker-registry.ts'

/** How long a slot waits for a worker that has room, ms: a pod takes minutes where its image is pulled or a node is made for it. */
const roomDeadlineMsUsual = 300_000
/** Every worker that is there has found its new coordinator by then, ms: above the longest pause between two of its tries. */
export const reconnectMs = 2_500
/** How long it may take from there to load the job and register, ms. */
const startDeadlineMs = 60_000

export interface RemoteSlotsOptions {
  readonly job: JobId
  /** Of the package; workers of another one are refused. */
  readonly runtimeVersion: string
  /** Of the job as this coordinator runs it; workers that differ are refused. */
  readonly build?: string
  /** Workers show it. */
  readonly token: string
  readonly environment: Environment
  /** Datagrams to and from a slot, of this incarnation's link. */
  readonly openPort: (slot: SlotId, incarnation: Incarnation) => DatagramPort
  /** The slots' end has the same. */
  readonly linkDeadlineMs: number
  readonly roomDeadlineMs?: number
}

/** A worker is to end: its slots must be elsewhere, or be gone, within so many ms. */
export interface LeavingWorker {
  readonly worker: string
  readonly slots: readonly SlotId[]
  readonly graceMs: number
}

type Link = BoundLater<ToSlot, FromSlot>

export class RemoteSlots implements SlotProvider {
  readonly registrationDeadlineMs: number
  readonly #options: RemoteSlotsOptions
  readonly #registry: WorkerRegistry
  readonly #connections = new Map<number, MessageConnection>()
  readonly #links = new Map<SlotId, Link>()
  readonly #ending = new Map<SlotId, PromiseWithResolvers<void>>()
  #incarnation: Incarnation | undefined
  #survival: Survival | undefined
  #onLeaving: (leaving: LeavingWorker) => void = () => undefined
  #onSeeking: (instance: string) => void = () => undefined
  #nextConnection = 1
  #timer: Timer | undefined
  /** The time that workers have to come after the last one that brought a slot. */
  #others: Timer | undefined
  #carryingOut = false
  #abandoned = false

  constructor(options: RemoteSlotsOptions) {
    this.#options = options
    const { job, runtimeVersion, build = '', token, roomDeadlineMs = roomDeadlineMsUsual } = options
    this.#registry = new WorkerRegistry({ job, runtimeVersion, build, token, roomDeadlineMs, startDeadlineMs })
    // The coordinator's own limit comes last: the registry's says why.
    this.registrationDeadlineMs = roomDeadlineMs + startDeadlineMs + 1_000
  }

  /** A connection that somebody has opened to coordinator.workersAddress. */
  accept(connection: MessageConnection): void {
    const id = this.#nextConnection++
    this.#connections.set(id, connection)
    this.#happen((nowMs) => this.#registry.connected(id, connection.address, nowMs))
    connection.onMessage((message) => this.#happen((nowMs) => this.#receive(id, message, nowMs)))
    connection.onClosed((reason) =>
      this.#happen((nowMs) => {
        this.#connections.delete(id)
        this.#registry.closed(id, reason, nowMs)
      }),
    )
  }

  start(slot: SlotId, start: SlotStart): ControlLink<ToSlot, FromSlot> {
    const link = this.#newLink(slot, start.incarnation)
    this.#happen((nowMs) => this.#registry.start(slot, start, nowMs))
    return link
  }

  terminate(slot: SlotId): Promise<void> {
    if (this.#abandoned) return Promise.resolve()
    const ending = this.#ending.get(slot) ?? Promise.withResolvers<void>()
    this.#ending.set(slot, ending)
    this.#happen(() => this.#registry.terminate(slot))
    return ending.promise
  }

  /** To be called before the first slot is started, if at all. */
  survivors(options: SurvivorsOptions): Promise<readonly SurvivingSlot[]> {
    const { incarnation, deadlineMs } = options
    this.#incarnation = incarnation
    const survival = new Survival(options)
    this.#survival = survival
    this.#happen((nowMs) => this.#registry.begin(incarnation, { survivors: true, nowMs }))
    const { clock } = this.#options.environment
    this.#awaitOthers(survival)
    const timer = clock.timer(deadlineMs, () => this.#survivorsOver(survival))
    return survival.result.finally(() => {
      timer.cancel()
      this.#others?.cancel()
    })
  }

  async endSurvivors(incarnation: Incarnation): Promise<void> {
    this.#happen((nowMs) => this.#registry.begin(incarnation, { survivors: false, nowMs }))
    await pause(this.#options.environment.clock, reconnectMs)
  }

  /**
   * Until letIn: workers are told to look elsewhere, since another coordinator may own the job. `onSeeking` hears of each that comes, by the name
   * of its process.
   */
  sendOn(onSeeking: (instance: string) => void): void {
    this.#onSeeking = onSeeking
    this.#happen(() => this.#registry.sendOn())
  }

  letIn(): void {
    this.#happen(() => this.#registry.letIn())
  }

  /** No slot is started any more. The workers stay connected. */
  close(): Promise<void> {
    this.#happen(() => this.#registry.stopQueue('no slot is started any more'))
    return Promise.resolve()
  }

  /** The job has ended: workers, those too that come later, are told to end well. */
  dismiss(reason: string): void {
    this.#happen(() => this.#registry.dismiss(reason))
  }

  /** As SlotProvider says, and when this process ends: connections and links are closed without a word, and the slots run on. */
  abandon(): void {
    this.#abandoned = true
    this.#timer?.cancel()
    this.#others?.cancel()
    for (const link of this.#links.values()) link.close()
    for (const connection of this.#connections.values()) connection.close()
    this.#connections.clear()
    this.#links.clear()
  }

  onLeaving(callback: (leaving: LeavingWorker) => void): void {
    this.#onLeaving = callback
  }

  get slotsOffered(): number {
    return this.#registry.slotsOffered
  }

  /** As in WorkersView: `sinceMs` by the wall clock. */
  get workers(): readonly WorkerEntry[] {
    const { clock } = this.#options.environment
    const startMs = clock.wallMs() - clock.nowMs()
    return this.#registry.workers.map((worker) => ({ ...worker, sinceMs: Math.round(startMs + worker.sinceMs) }))
  }

  workerOf(slot: SlotId): string | undefined {
    return this.#registry.workerOf(slot)
  }

  /** The word of somebody outside that a worker's process is gone. false: no such worker. */
  reportLost(worker: string, reason: string): boolean {
    let known = false
    this.#happen((nowMs) => {
      known = this.#registry.reportLost(worker, reason, nowMs)
    })
    return known
  }

  #receive(id: number, message: unknown, nowMs: number): void {
    try {
      this.#registry.received(id, readFromWorker(message), nowMs)
    } catch (error) {
      if (!(error instanceof MillraceError)) throw error
      this.#registry.broken(id, error, nowMs)
    }
  }

  #happen(what: (nowMs: number) => void): void {
    if (this.#abandoned) return
    what(this.#options.environment.clock.nowMs())
    // Whoever hears of a loss may ask for something else at once: that comes behind what is still to be done.
    if (this.#carryingOut) return
    this.#carryingOut = true
    try {
      for (let effect = this.#registry.effects.shift(); effect !== undefined; effect = this.#registry.effects.shift())
        this.#carryOut(effect)
    } finally {
      this.#carryingOut = false
    }
    this.#arm()
    this.#lookAtSurvivors()
  }

  #lookAtSurvivors(): void {
    const survival = this.#survival
    const { slotsOffered, survivorsPending: pending } = this.#registry
    if (survival?.over === false && survival.isEnough({ slotsOffered, pending })) this.#survivorsOver(survival)
  }

  #arm(): void {
    this.#timer?.cancel()
    const { clock } = this.#options.environment
    const { wakeAtMs } = this.#registry
    if (wakeAtMs === undefined || this.#abandoned) return
    const delayMs = Math.max(0, wakeAtMs - clock.nowMs())
    this.#timer = clock.timer(delayMs, () => this.#happen((nowMs) => this.#registry.tick(nowMs)))
  }

  #carryOut(effect: RegistryEffect): void {
    const { environment } = this.#options
    switch (effect.type) {
      case 'send':
        return this.#connections.get(effect.connection)?.send(effect.message)
      case 'welcome': {
        const { connection, incarnation, keep } = effect
        const wallMs = environment.clock.wallMs()
        return this.#connections.get(connection)?.send({ type: 'welcome', incarnation, keep, wallMs })
      }
      case 'close':
        this.#connections.get(effect.connection)?.close()
        this.#connections.delete(effect.connection)
        return
      case 'bind':
        return effect.survivor ? this.#meetSurvivor(effect.slot) : this.#bind(effect.slot)
      case 'lost':
        this.#links.get(effect.slot)?.lose(effect.reason)
        this.#survival?.lost(effect.slot)
        return this.#forget(effect.slot)
      case 'ended':
        this.#links.get(effect.slot)?.close()
        this.#ending.get(effect.slot)?.resolve()
        this.#ending.delete(effect.slot)
        return this.#forget(effect.slot)
      case 'leaving':
        return this.#onLeaving(effect)
      case 'seeking':
        return this.#onSeeking(effect.instance)
      case 'log':
        return environment.log(effect.level, effect.message, effect.fields)
      default:
        return effect satisfies never
    }
  }

  #newLink(slot: SlotId, incarnation: Incarnation): Link {
    this.#incarnation = incarnation
    const link: Link = new BoundLater()
    this.#links.set(slot, link)
    return link
  }

  #bind(slot: SlotId, onFirst: (message: FromSlot) => boolean = () => true): void {
    const { environment, openPort, linkDeadlineMs: deadlineMs } = this.#options
    const link = this.#links.get(slot)
    if (link === undefined) return
    const port = openPort(slot, this.#incarnation!)
    const bound = createLink<ToSlot, FromSlot>({ port, environment, deadlineMs })
    link.bind(
      hearingFirst(bound, (message) => {
        // A survivor is one of those who are there before it counts as awaited no longer.
        const deliver = onFirst(message)
        this.#happen(() => this.#registry.slotRegistered(slot))
        return deliver
      }),
    )
  }

  /** What it says after it has registered is kept until the coordinator listens. */
  #meetSurvivor(slot: SlotId): void {
    const survival = this.#survival!
    const link = this.#newLink(slot, this.#incarnation!)
    this.#bind(slot, (message) => {
      if (message.type === 'registered' && !survival.over) {
        survival.add({ slot, registered: message, link })
        this.#awaitOthers(survival)
      } else this.#happen(() => this.#registry.terminate(slot))
      return false
    })
  }

  /** They notice the loss of a silent coordinator at different times, but not far from each other. */
  #awaitOthers(survival: Survival): void {
    this.#others?.cancel()
    this.#others = this.#options.environment.clock.timer(reconnectMs, () => {
      survival.roomIsEnough = true
      this.#lookAtSurvivors()
    })
  }

  #survivorsOver(survival: Survival): void {
    if (survival.over) return
    survival.end()
    this.#happen(() => this.#registry.survivorsOver())
  }

  #forget(slot: SlotId): void {
    this.#links.delete(slot)
  }
}

/** The same link; its first message is shown to `onFirst`, which says whether it is delivered too. */
function hearingFirst(
  link: ControlLink<ToSlot, FromSlot>,
  onFirst: (message: FromSlot) => boolean,
): ControlLink<ToSlot, FromSlot> {
  let heard = false
  return {
    send: (message) => link.send(message),
    onLost: (callback) => link.onLost(callback),
    close: () => link.close(),
    onMessage: (callback) =>
      link.onMessage((message) => {
        const deliver = heard || onFirst(message)
        heard = true
        if (deliver) callback(message)
      }),
  }
}
