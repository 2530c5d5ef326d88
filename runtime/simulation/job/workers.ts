// Workers as simulated processes, with what runs in production: the worker's agent, its direct connection, the coordinator's registry, and
// slots that outlive their coordinator and are taken over by the next one (rules 12 and 25).

import type { Incarnation, JobId, SlotId } from '../../base/ids.ts'
import type { ControlLink, FromSlot, SlotStart, ToSlot } from '../../control/contract.ts'
import { createLink, linkDeadlineMsMin } from '../../control/link.ts'
import type { MessageConnection, ToWorker } from '../../control/worker-contract.ts'
import { BoundLater } from '../../control/worker-link.ts'
import { RemoteSlots } from '../../coordinator/remote-slots.ts'
import { WorkerShell } from '../../distributed/worker-shell.ts'
import type { SlotHost, WorkerEnd } from '../../distributed/worker-shell.ts'
import { controlSubjects } from '../../network/subjects.ts'
import type { Slot } from '../../worker/slot.ts'
import type { SimConnections } from '../connections.ts'
import type { SimNetwork } from '../network.ts'
import type { SimProcess } from '../process.ts'
import type { SeededRandom } from '../random.ts'

const runtimeVersion = 'simulated'
const token = 'the token of the simulated job'

/** As a pod is given, virtual ms. */
const graceMs = 25_000

export interface JobNetwork {
  readonly job: JobId
  readonly network: SimNetwork
  readonly connections: SimConnections
}

/** The coordinator's side, as its process puts it together. */
export function remoteSlots(process: SimProcess, { job, network, connections }: JobNetwork): RemoteSlots {
  const slots = new RemoteSlots({
    job,
    runtimeVersion,
    token,
    environment: process.environment,
    linkDeadlineMs: linkDeadlineMsMin,
    openPort: (slot, incarnation) => {
      const subjects = controlSubjects(job, slot, incarnation)
      return network.datagrams(process, { own: subjects.coordinator, peer: subjects.slot })
    },
  })
  connections.listen(process, (connection) => slots.accept(connection))
  return slots
}

export interface SimWorkerOptions extends JobNetwork {
  readonly name: string
  readonly process: SimProcess
  readonly slots: number
  readonly random: SeededRandom
  readonly run: (process: SimProcess, slot: SlotId, start: SlotStart, control: ControlLink<FromSlot, ToSlot>) => Slot
  /** A slot's process has begun. */
  readonly onSlot: (process: SimProcess) => void
  readonly onEnded: (end: WorkerEnd) => void
  /** What it must not do, whatever fails. */
  readonly fail: (what: string) => void
}

export interface SimWorker {
  leave(): void
}

/** Begins in a later step. */
export function startWorker(options: SimWorkerOptions): SimWorker {
  const { process, name, job, slots: slotCount, connections, onEnded } = options
  const { environment } = process
  const promises = new Promises(name, options.fail)
  let shell: WorkerShell | undefined
  environment.executor.post(() => {
    shell = new WorkerShell({
      agent: {
        job,
        worker: name,
        instance: environment.random.id(),
        token,
        runtimeVersion,
        slots: slotCount,
        coordinator: 'the coordinator',
      },
      environment,
      slots: new SimSlotHost(options),
      dial: (handlers) =>
        connections.dial(process, {
          ...handlers,
          onOpen: (connection) => handlers.onOpen(promises.watched(connection)),
        }),
    })
    void shell.ended.then(onEnded)
  })
  return { leave: () => shell?.leave(graceMs) }
}

/** Whom a worker has let in: it does nothing on the word of a coordinator that is older. */
class Promises {
  readonly #worker: string
  readonly #fail: (what: string) => void
  #newest = 0

  constructor(worker: string, fail: (what: string) => void) {
    this.#worker = worker
    this.#fail = fail
  }

  watched(connection: MessageConnection): MessageConnection {
    let incarnation = Infinity
    let closed = false
    return {
      address: connection.address,
      send: (message) => connection.send(message),
      onClosed: (callback) => connection.onClosed(callback),
      close: () => {
        closed = true
        connection.close()
      },
      onMessage: (callback) =>
        connection.onMessage((message) => {
          const said = message as ToWorker
          if (said.type === 'welcome') incarnation = said.incarnation
          callback(message)
          if (incarnation < this.#newest && !closed)
            this.#fail(`worker ${this.#worker} obeys incarnation ${incarnation} after ${this.#newest} (${said.type})`)
          if (said.type === 'welcome') this.#newest = Math.max(this.#newest, incarnation)
        }),
    }
  }
}

interface HostedSlot {
  readonly process: SimProcess
  /** Whom it was attached to last. */
  incarnation: Incarnation
  link: BoundLater<FromSlot, ToSlot>
  /** Which link its worker means it to have: counts attachments and detachments. */
  life: number
  slot: Slot | undefined
}

/** A thread takes so long to be gone, virtual ms; one that is in the middle of something takes longer. */
const endMsMean = 3
const longEndMsMax = 2_000

/** Threads of a worker's process. */
class SimSlotHost implements SlotHost {
  readonly #options: SimWorkerOptions
  readonly #slots = new Map<SlotId, HostedSlot>()
  #onEnded: (slot: SlotId, reason: string) => void = () => undefined
  #onLinkLost: (slot: SlotId, reason: string) => void = () => undefined

  constructor(options: SimWorkerOptions) {
    this.#options = options
  }

  start(id: SlotId, start: SlotStart): void {
    const { process: worker, run, onSlot } = this.#options
    const process = worker.machine.spawn(`slot ${id}`, worker)
    const hosted: HostedSlot = {
      process,
      incarnation: start.incarnation,
      link: new BoundLater(),
      life: 0,
      slot: undefined,
    }
    this.#slots.set(id, hosted)
    onSlot(process)
    process.onExit(worker, (reason) => {
      this.#slots.delete(id)
      this.#onEnded(id, reason)
    })
    process.environment.executor.post(() => {
      this.#open(id, hosted, { incarnation: start.incarnation, life: 0 })
      hosted.slot = run(process, id, start, hosted.link)
    })
  }

  attach(id: SlotId, incarnation: Incarnation): void {
    const hosted = this.#slots.get(id)
    if (hosted === undefined) return
    if (incarnation < hosted.incarnation)
      this.#options.fail(`slot ${id} was given to incarnation ${incarnation} after ${hosted.incarnation}`)
    hosted.incarnation = incarnation
    const life = ++hosted.life
    hosted.process.environment.executor.post(() => {
      if (hosted.incarnation !== incarnation) return
      hosted.link = new BoundLater()
      this.#open(id, hosted, { incarnation, life })
      hosted.slot!.attach(hosted.link)
    })
  }

  detach(id: SlotId, reason: string): void {
    const hosted = this.#slots.get(id)
    if (hosted === undefined) return
    hosted.life++
    hosted.process.environment.executor.post(() => hosted.link.lose(reason))
  }

  terminate(id: SlotId): void {
    const { random, process: worker } = this.#options
    const hosted = this.#slots.get(id)
    if (hosted === undefined) return
    const inMs = random.chance(0.1) ? random.between(0, longEndMsMax) : random.exponential(endMsMean)
    worker.world.after(inMs, `end of slot ${id}`, () => hosted.process.kill('ended by its coordinator'), {
      owner: worker,
    })
  }

  onEnded(callback: (slot: SlotId, reason: string) => void): void {
    this.#onEnded = callback
  }

  onLinkLost(callback: (slot: SlotId, reason: string) => void): void {
    this.#onLinkLost = callback
  }

  close(): Promise<void> {
    for (const { process } of this.#slots.values()) process.kill('its worker ends')
    return Promise.resolve()
  }

  #open(
    id: SlotId,
    hosted: HostedSlot,
    { incarnation, life }: { readonly incarnation: Incarnation; readonly life: number },
  ): void {
    const { job, network, fail, process: worker } = this.#options
    const { process, link } = hosted
    const subjects = controlSubjects(job, id, incarnation)
    const port = network.datagrams(process, { own: subjects.slot, peer: subjects.coordinator })
    const control = createLink<FromSlot, ToSlot>({
      port,
      environment: process.environment,
      deadlineMs: linkDeadlineMsMin,
    })
    link.bind({
      send: (message) => control.send(message),
      onLost: (callback) =>
        control.onLost((reason) => {
          callback(reason)
          // The thread's port closes, which the worker sees in a turn of its own.
          worker.environment.executor.post(() => {
            if (this.#slots.get(id) === hosted && hosted.life === life) this.#onLinkLost(id, reason)
          })
        }),
      close: () => control.close(),
      onMessage: (callback) =>
        control.onMessage((message) => {
          // A thread may hear what was on its way when its worker changed over; behind that, nothing.
          if (link !== hosted.link) fail(`slot ${id} hears incarnation ${incarnation} after ${hosted.incarnation}`)
          callback(message)
        }),
    })
  }
}
