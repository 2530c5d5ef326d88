// Which workers there are and which slots run in them, as a pure machine: connections, messages and time go in, what is to be done
// comes out. Protocol rules 12 and 25; the shell is remote-slots.ts.
//
// A worker is its connection: once that is gone, or was silent for too long, the worker is lost with every slot in it, and what it
// still runs is ended when it comes back. Only in the time of `survivors` slots that were not started here are kept.
//
// The caller's order: after each call, carry out `effects` in their order, emptying them, and see to it that tick is called at `wakeAtMs`.

import { counted } from '../base/counted.ts'
import { invariant, unreachable } from '../base/errors.ts'
import type { MillraceError } from '../base/errors.ts'
import type { Incarnation, JobId, SlotId } from '../base/ids.ts'
import { buildDifference } from '../control/build-difference.ts'
import type { SlotStart } from '../control/contract.ts'
import { HEARTBEAT_MS, SILENCE_MS_MAX, SILENCE_PER_LOOK_MS_MAX } from '../control/worker-contract.ts'
import type { FromWorker, Hello, ToWorker } from '../control/worker-contract.ts'
import { workerError } from '../control/worker-errors.ts'
import { sameToken } from '../control/worker-token.ts'
import { SLOTS_MAX, WORKER_NAME_MAX } from '../control/worker-wire.ts'

/** A connection that says nothing is closed, ms. */
const helloMsMax = 5_000
/**
 * A worker waits so long at a coordinator that has not begun, ms; then it is sent to look again. One that cannot reach its store must not keep
 * workers from another one that can.
 */
const waitingMsMax = 30_000
/** A worker is taken for gone by another one of its name once three heartbeats are missing, ms. */
const replaceableMs = 3 * HEARTBEAT_MS
/** Open at once: more workers than any job has, and few enough for one event loop. */
const connectionsMax = 1_000
/** Lines of the log about refused connections that are not repeated. */
const refusalsRemembered = 100
/** Remembered for people. */
const lostWorkersMax = 32

export type RegistryEffect =
  | { readonly type: 'send'; readonly connection: number; readonly message: Exclude<ToWorker, { type: 'welcome' }> }
  | {
      readonly type: 'welcome'
      readonly connection: number
      readonly incarnation: Incarnation
      readonly keep: readonly SlotId[]
    }
  | { readonly type: 'close'; readonly connection: number }
  /** A worker starts the slot, or goes on with it: its link can be opened. */
  | { readonly type: 'bind'; readonly slot: SlotId; readonly survivor: boolean }
  | { readonly type: 'lost'; readonly slot: SlotId; readonly reason: string }
  /** It can send nothing any more, or nobody can reach it. */
  | { readonly type: 'ended'; readonly slot: SlotId }
  /** A worker that looks for its coordinator was sent on. `instance`: of its process. */
  | { readonly type: 'seeking'; readonly instance: string }
  | { readonly type: 'leaving'; readonly worker: string; readonly slots: readonly SlotId[]; readonly graceMs: number }
  | {
      readonly type: 'log'
      readonly level: 'debug' | 'info' | 'warn'
      readonly message: string
      readonly fields: Readonly<Record<string, unknown>>
    }

export interface RegistryOptions {
  readonly job: JobId
  readonly runtimeVersion: string
  /** As in Hello; others are refused. */
  readonly build?: string
  readonly token: string
  /** How long a slot may wait for a worker that has room, ms. */
  readonly roomDeadlineMs: number
  /** How long it may take to register once a worker starts it, ms. */
  readonly startDeadlineMs: number
}

export interface WorkerEntry {
  readonly name: string
  readonly address: string
  readonly slots: number
  readonly running: readonly SlotId[]
  readonly state: 'registered' | 'leaving' | 'lost'
  /** On the clock of `nowMs`. */
  readonly sinceMs: number
}

interface Connection {
  readonly id: number
  readonly address: string
  readonly openedAtMs: number
  /** new: it has said nothing. waiting: for an incarnation. closed: nothing of it is heard any more. */
  state: 'new' | 'waiting' | 'registered' | 'closed'
  hello: Hello | undefined
  silentMs: number
  /** It was told that it is needed no more: its end is in order. */
  sentHome: boolean
}

interface Worker {
  readonly name: string
  readonly instance: string
  readonly address: string
  readonly slots: number
  readonly connection: Connection
  /** Each takes the room of one: threads that are about to end as well. */
  readonly occupied: Set<SlotId>
  state: 'registered' | 'leaving' | 'lost'
  sinceMs: number
}

interface SlotEntry {
  readonly slot: SlotId
  readonly start: SlotStart | undefined
  state: 'queued' | 'starting' | 'running' | 'ending'
  worker: Worker | undefined
  /** When it is lost unless it comes further. */
  deadlineAtMs: number | undefined
}

export class WorkerRegistry {
  readonly effects: RegistryEffect[] = []
  readonly #options: RegistryOptions
  readonly #connections = new Map<number, Connection>()
  readonly #workers = new Map<string, Worker>()
  readonly #slots = new Map<SlotId, SlotEntry>()
  /** By slot number: who has it or had it last, and may have its state on its disk. */
  readonly #lastWorkers = new Map<string, { readonly slot: SlotId; readonly worker: string }>()
  #incarnation: Incarnation | undefined
  #survivorsAwaited = false
  #sendsOn = false
  #dismissed: string | undefined
  #saidWaiting = ''
  /** Why connections were refused, oldest first, and the worker, which may say anything. A worker that was let in is forgotten. */
  readonly #refused = new Map<string, string>()
  #lookedAtMs = 0

  constructor(options: RegistryOptions) {
    this.#options = options
  }

  get workers(): readonly WorkerEntry[] {
    return [...this.#workers.values()].map(({ name, address, slots, occupied, state, sinceMs }) => ({
      name,
      address,
      slots,
      running: [...occupied],
      state,
      sinceMs,
    }))
  }

  /** Also of a slot that has ended, until its number is started anew. */
  workerOf(slot: SlotId): string | undefined {
    const last = this.#lastWorkers.get(slotNumber(slot))
    return last?.slot === slot ? last.worker : undefined
  }

  get slotsOffered(): number {
    let offered = 0
    for (const worker of this.#workers.values()) if (worker.state === 'registered') offered += worker.slots
    return offered
  }

  /** Slots that were kept and have not registered yet. */
  get survivorsPending(): boolean {
    return [...this.#slots.values()].some(({ start, state }) => start === undefined && state === 'starting')
  }

  get wakeAtMs(): number | undefined {
    const wakes = [...this.#slots.values()].flatMap(({ deadlineAtMs }) => deadlineAtMs ?? [])
    if (this.#connections.size > 0) wakes.push(this.#lookedAtMs + HEARTBEAT_MS)
    return wakes.length === 0 ? undefined : Math.min(...wakes)
  }

  /** Workers are let in from now on. `survivors`: what they still run from earlier incarnations is kept until survivorsOver. */
  begin(incarnation: Incarnation, options: { readonly survivors: boolean; readonly nowMs: number }): void {
    if (this.#incarnation === incarnation && !options.survivors) return
    if (this.#incarnation !== undefined) return this.#goOn(incarnation)
    this.#incarnation = incarnation
    this.#survivorsAwaited = options.survivors
    for (const connection of this.#connections.values())
      if (connection.state === 'waiting') this.#register(connection, options.nowMs)
  }

  /** Whoever comes from now on is sent to look elsewhere, until letIn: another coordinator may own the job. */
  sendOn(): void {
    invariant(this.#incarnation === undefined, 'a coordinator that has begun lets its workers in')
    this.#sendsOn = true
  }

  letIn(): void {
    this.#sendsOn = false
  }

  /** The same coordinator in its next incarnation, for a rescale in place: it has ended everything before, and nothing is to run on. */
  #goOn(incarnation: Incarnation): void {
    invariant(incarnation > this.#incarnation!, 'survivors are asked for first, and an incarnation only rises')
    this.#incarnation = incarnation
    this.#survivorsAwaited = false
    for (const connection of this.#connections.values())
      if (connection.state === 'registered')
        this.#put({ type: 'welcome', connection: connection.id, incarnation, keep: [] })
  }

  /** Nobody who comes later brings a slot. Those that were kept and have not registered are ended. */
  survivorsOver(): void {
    this.#survivorsAwaited = false
    for (const entry of this.#slots.values())
      if (entry.start === undefined && entry.state === 'starting') this.#end(entry)
  }

  start(slot: SlotId, start: SlotStart, nowMs: number): void {
    invariant(!this.#slots.has(slot), `slot ${slot} is started twice`)
    this.begin(start.incarnation, { survivors: false, nowMs })
    const deadlineAtMs = nowMs + this.#options.roomDeadlineMs
    this.#slots.set(slot, { slot, start, state: 'queued', worker: undefined, deadlineAtMs })
    this.#assign(nowMs)
  }

  /** It spoke over its link. */
  slotRegistered(slot: SlotId): void {
    const entry = this.#slots.get(slot)
    if (entry?.state !== 'starting') return
    entry.state = 'running'
    entry.deadlineAtMs = undefined
  }

  terminate(slot: SlotId): void {
    const entry = this.#slots.get(slot)
    if (entry === undefined) this.#put({ type: 'ended', slot })
    else if (entry.state !== 'ending') this.#end(entry)
  }

  connected(id: number, address: string, nowMs: number): void {
    if (this.#connections.size === 0) this.#lookedAtMs = nowMs
    const connection: Connection = {
      id,
      address,
      openedAtMs: nowMs,
      state: 'new',
      hello: undefined,
      silentMs: 0,
      sentHome: false,
    }
    this.#connections.set(id, connection)
    if (this.#connections.size > connectionsMax)
      this.#refuse(connection, workerError('MR-D08', `There are ${connectionsMax}.`))
  }

  received(id: number, message: FromWorker, nowMs: number): void {
    const connection = this.#connections.get(id)
    if (connection === undefined || connection.state === 'closed') return
    connection.silentMs = 0
    if (message.type === 'hello') return this.#hello(connection, message, nowMs)
    if (message.type === 'heartbeat') return
    const worker = this.#workerOf(connection)
    if (worker === undefined) return
    switch (message.type) {
      case 'slotEnded':
        return this.#slotEnded(worker, message, nowMs)
      case 'leaving':
        return this.#leaving(worker, message.graceMs, nowMs)
      default:
        return unreachable(message)
    }
  }

  /** What came in cannot be understood, or is of another version. */
  broken(id: number, error: MillraceError, nowMs: number): void {
    const connection = this.#connections.get(id)
    if (connection === undefined || connection.state === 'closed') return
    this.#refuse(connection, error)
    this.#loseWorkerOf(connection, error.message, nowMs)
  }

  /** The connection's end, as its transport saw it. */
  closed(id: number, reason: string, nowMs: number): void {
    const connection = this.#connections.get(id)
    if (connection === undefined) return
    this.#connections.delete(id)
    connection.state = 'closed'
    this.#loseWorkerOf(connection, reason, nowMs)
  }

  /** false: nobody of that name was ever here, or it is forgotten. */
  reportLost(name: string, reason: string, nowMs: number): boolean {
    const worker = this.#workers.get(name)
    if (worker === undefined) return false
    this.#loseWorker(worker, reason, nowMs)
    return true
  }

  /** No slot waits for room any more. */
  stopQueue(reason: string): void {
    for (const entry of this.#slots.values()) if (entry.state === 'queued') this.#lose(entry, reason)
  }

  /** The job has ended: all workers go, those too that come later. */
  dismiss(reason: string): void {
    this.#dismissed = reason
    for (const connection of this.#connections.values())
      if (connection.state === 'waiting' || connection.state === 'registered') this.#sayGoodbye(connection, reason)
  }

  tick(nowMs: number): void {
    const silentMs = Math.min(Math.max(0, nowMs - this.#lookedAtMs), SILENCE_PER_LOOK_MS_MAX)
    const beat = nowMs - this.#lookedAtMs >= HEARTBEAT_MS
    this.#lookedAtMs = beat ? nowMs : this.#lookedAtMs
    for (const connection of this.#connections.values()) if (beat) this.#look(connection, silentMs, nowMs)
    for (const entry of this.#slots.values()) {
      if (entry.deadlineAtMs === undefined || nowMs < entry.deadlineAtMs) continue
      this.#overdue(entry)
    }
  }

  #look(connection: Connection, silentMs: number, nowMs: number): void {
    if (connection.state === 'closed') return
    connection.silentMs += silentMs
    if (connection.state === 'new') {
      if (nowMs - connection.openedAtMs >= helloMsMax) this.#close(connection)
      return
    }
    if (connection.silentMs >= SILENCE_MS_MAX) {
      this.#loseWorkerOf(connection, `it was silent for ${SILENCE_MS_MAX / 1000} s`, nowMs)
      return this.#close(connection)
    }
    if (connection.state === 'waiting' && nowMs - connection.openedAtMs >= waitingMsMax)
      return this.#sayRefused(connection, workerError('MR-D10', `Waited for ${waitingMsMax / 1000} s.`))
    this.#send(connection, { type: 'heartbeat' })
  }

  #overdue(entry: SlotEntry): void {
    entry.deadlineAtMs = undefined
    if (entry.state !== 'queued') {
      const { startDeadlineMs } = this.#options
      const reason = `worker ${entry.worker?.name} did not bring it to register within ${startDeadlineMs / 1000} s`
      return this.#put({ type: 'lost', slot: entry.slot, reason })
    }
    const offers = [...this.#workers.values()]
      .filter(({ state }) => state === 'registered')
      .map(({ name, slots }) => `${name}: ${slots}`)
    const registered = `${this.slotsOffered} registered${offers.length === 0 ? '' : ` (${offers.join(', ')})`}`
    const waited = `no worker had room for it within ${this.#options.roomDeadlineMs / 1000} s`
    this.#lose(entry, `${waited}: the job needs ${counted(this.#slotsWanted, 'slot', 'slots')}, ${registered}`)
  }

  #hello(connection: Connection, hello: Hello, nowMs: number): void {
    if (connection.state !== 'new') return
    const error = this.#objection(hello)
    if (error !== undefined) return this.#refuse(connection, error, hello.worker)
    connection.state = 'waiting'
    connection.hello = hello
    if (this.#dismissed !== undefined) return this.#sayGoodbye(connection, this.#dismissed)
    if (this.#sendsOn) {
      this.#put({ type: 'seeking', instance: hello.instance })
      return this.#sayRefused(connection, workerError('MR-D06', 'It looks whether that one lives.'))
    }
    if (this.#incarnation !== undefined) this.#register(connection, nowMs)
  }

  /** The coordinator's own job, version and token are told to nobody who does not know them. */
  #objection({ job, token, runtimeVersion, build, slots, worker }: Hello): MillraceError | undefined {
    const own = this.#options
    if (job !== own.job) return workerError('MR-D03', `Worker ${worker.slice(0, WORKER_NAME_MAX)} is of job ${job}.`)
    if (!sameToken(token, own.token)) return workerError('MR-D04', `Worker ${worker.slice(0, WORKER_NAME_MAX)}.`)
    if (runtimeVersion !== own.runtimeVersion)
      return workerError('MR-D02', `Worker ${worker} is ${runtimeVersion}, the coordinator ${own.runtimeVersion}.`)
    if (build !== (own.build ?? ''))
      return workerError('MR-D09', `Worker ${worker}. ${buildDifference(own.build ?? '', build)}`)
    if (worker.length > WORKER_NAME_MAX) return workerError('MR-D07', `Its name has ${worker.length} characters.`)
    if (!Number.isSafeInteger(slots) || slots < 1 || slots > SLOTS_MAX)
      return workerError('MR-D07', `Worker ${worker} offers ${counted(slots, 'slot', 'slots')}.`)
    return undefined
  }

  #register(connection: Connection, nowMs: number): void {
    const hello = connection.hello!
    const incarnation = this.#incarnation!
    if (hello.promised > incarnation) {
      const detail = `Worker ${hello.worker} has seen incarnation ${hello.promised}; this is ${incarnation}.`
      return this.#refuse(connection, workerError('MR-D06', detail))
    }
    const former = this.#workers.get(hello.worker)
    if (former !== undefined && former.state !== 'lost') {
      const gone = former.instance === hello.instance || former.connection.silentMs >= replaceableMs
      if (!gone)
        return this.#refuse(
          connection,
          workerError('MR-D05', `Worker ${hello.worker} at ${former.connection.address}.`),
        )
      this.#loseWorker(former, 'it has connected anew', nowMs)
    }
    const keep = this.#survivorsAwaited ? hello.running.filter((slot) => !this.#slots.has(slot)) : []
    const worker: Worker = {
      name: hello.worker,
      instance: hello.instance,
      address: connection.address,
      slots: hello.slots,
      connection,
      occupied: new Set(hello.running),
      state: 'registered',
      sinceMs: nowMs,
    }
    connection.state = 'registered'
    this.#workers.delete(hello.worker)
    this.#workers.set(hello.worker, worker)
    this.#put({ type: 'welcome', connection: connection.id, incarnation, keep })
    const { name, address, slots } = worker
    for (const [message, refused] of this.#refused) if (refused === name) this.#refused.delete(message)
    this.#log('info', 'a worker has registered', { worker: name, address, slots, runsOn: keep })
    for (const slot of keep) {
      this.#slots.set(slot, { slot, start: undefined, state: 'starting', worker, deadlineAtMs: undefined })
      this.#lastWorkers.set(slotNumber(slot), { slot, worker: name })
      this.#put({ type: 'bind', slot, survivor: true })
    }
    this.#assign(nowMs)
  }

  #slotEnded(worker: Worker, { slot, reason }: Extract<FromWorker, { type: 'slotEnded' }>, nowMs: number): void {
    worker.occupied.delete(slot)
    const entry = this.#slots.get(slot)
    if (entry?.worker === worker) {
      if (entry.state === 'ending') this.#ended(entry)
      else this.#lose(entry, `worker ${worker.name}: ${reason}`)
    }
    if (worker.state === 'leaving' && worker.occupied.size === 0)
      this.#sayGoodbye(worker.connection, 'its slots have moved')
    this.#assign(nowMs)
  }

  #leaving(worker: Worker, graceMs: number, nowMs: number): void {
    if (worker.state !== 'registered') return
    worker.state = 'leaving'
    worker.sinceMs = nowMs
    this.#log('info', 'a worker is leaving', { worker: worker.name, graceMs, slots: [...worker.occupied] })
    if (worker.occupied.size === 0) return this.#sayGoodbye(worker.connection, 'it has no slots')
    this.#put({ type: 'leaving', worker: worker.name, slots: [...worker.occupied], graceMs })
  }

  #assign(nowMs: number): void {
    let waiting = 0
    for (const entry of this.#slots.values()) {
      if (entry.state !== 'queued') continue
      const worker = this.#roomFor(entry.slot)
      if (worker === undefined) waiting++
      else this.#startIn(worker, entry, nowMs)
    }
    this.#sayWaiting(waiting)
  }

  #startIn(worker: Worker, entry: SlotEntry, nowMs: number): void {
    entry.worker = worker
    entry.state = 'starting'
    entry.deadlineAtMs = nowMs + this.#options.startDeadlineMs
    worker.occupied.add(entry.slot)
    this.#lastWorkers.set(slotNumber(entry.slot), { slot: entry.slot, worker: worker.name })
    this.#send(worker.connection, { type: 'startSlot', slot: entry.slot, start: entry.start! })
    this.#put({ type: 'bind', slot: entry.slot, survivor: false })
  }

  /** The one that had the slot before, else the one with the most room, else the one that has been here longest. */
  #roomFor(slot: SlotId): Worker | undefined {
    const former = this.#workers.get(this.#lastWorkers.get(slotNumber(slot))?.worker ?? '')
    if (former !== undefined && roomIn(former) > 0) return former
    let best: Worker | undefined
    for (const worker of this.#workers.values())
      if (roomIn(worker) > (best === undefined ? 0 : roomIn(best))) best = worker
    return best
  }

  /** Said again whenever the numbers change. */
  #sayWaiting(waiting: number): void {
    const [needs, registered] = [this.#slotsWanted, this.slotsOffered]
    const said =
      waiting === 0
        ? ''
        : `the job waits for workers: it needs ${counted(needs, 'slot', 'slots')}, ${registered} registered`
    if (said !== '' && said !== this.#saidWaiting) this.#log('info', said, { waiting, needs, registered })
    this.#saidWaiting = said
  }

  get #slotsWanted(): number {
    let wanted = 0
    for (const { state } of this.#slots.values()) if (state !== 'ending') wanted++
    return wanted
  }

  #end(entry: SlotEntry): void {
    const { worker } = entry
    if (worker === undefined) return this.#ended(entry)
    entry.state = 'ending'
    entry.deadlineAtMs = undefined
    this.#send(worker.connection, { type: 'terminateSlot', slot: entry.slot })
  }

  #ended({ slot }: SlotEntry): void {
    this.#slots.delete(slot)
    this.#put({ type: 'ended', slot })
  }

  #lose({ slot }: SlotEntry, reason: string): void {
    this.#slots.delete(slot)
    this.#put({ type: 'lost', slot, reason })
  }

  #loseWorkerOf(connection: Connection, reason: string, nowMs: number): void {
    const worker = this.#workerOf(connection)
    if (worker !== undefined) this.#loseWorker(worker, reason, nowMs)
  }

  #loseWorker(worker: Worker, reason: string, nowMs: number): void {
    if (worker.state === 'lost') return
    const { sentHome } = worker.connection
    worker.state = 'lost'
    worker.sinceMs = nowMs
    worker.occupied.clear()
    this.#log(sentHome ? 'info' : 'warn', sentHome ? 'a worker has left' : 'a worker is lost', {
      worker: worker.name,
      reason,
    })
    this.#close(worker.connection)
    for (const entry of this.#slots.values()) {
      if (entry.worker !== worker) continue
      if (entry.state === 'ending') this.#ended(entry)
      else this.#lose(entry, `worker ${worker.name} is lost: ${reason}`)
    }
    this.#forgetOldest()
  }

  #forgetOldest(): void {
    const lost = [...this.#workers.values()].filter(({ state }) => state === 'lost')
    const oldest = lost.toSorted((left, right) => left.sinceMs - right.sinceMs)
    for (const { name } of oldest.slice(0, Math.max(0, lost.length - lostWorkersMax))) this.#workers.delete(name)
  }

  #workerOf(connection: Connection): Worker | undefined {
    const worker = this.#workers.get(connection.hello?.worker ?? '')
    return worker?.connection === connection ? worker : undefined
  }

  #refuse(connection: Connection, error: MillraceError, worker = connection.hello?.worker ?? ''): void {
    const { address } = connection
    const { code, message } = error
    // It comes again and again, until it is mended: one line is read, thousands hide the others.
    const again = this.#refused.has(message)
    this.#refused.set(message, worker)
    if (this.#refused.size > refusalsRemembered) this.#refused.delete(this.#refused.keys().next().value!)
    this.#log(again ? 'debug' : 'warn', 'a connection of a worker is refused', { address, code, reason: message })
    this.#sayRefused(connection, error)
  }

  #sayRefused(connection: Connection, { code, message, retry }: MillraceError): void {
    this.#send(connection, { type: 'refused', code, message, final: !retry })
    this.#close(connection)
  }

  #sayGoodbye(connection: Connection, reason: string): void {
    connection.sentHome = true
    this.#send(connection, { type: 'goodbye', reason })
  }

  #send(connection: Connection, message: Exclude<ToWorker, { type: 'welcome' }>): void {
    if (connection.state !== 'closed') this.#put({ type: 'send', connection: connection.id, message })
  }

  /** Its transport says nothing about a connection that is closed from here. */
  #close(connection: Connection): void {
    if (connection.state === 'closed') return
    connection.state = 'closed'
    this.#connections.delete(connection.id)
    this.#put({ type: 'close', connection: connection.id })
  }

  #log(level: 'debug' | 'info' | 'warn', message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#put({ type: 'log', level, message, fields })
  }

  #put(effect: RegistryEffect): void {
    this.effects.push(effect)
  }
}

function roomIn(worker: Worker): number {
  return worker.state === 'registered' ? worker.slots - worker.occupied.size : 0
}

/** `<slot number>#<life>` */
function slotNumber(slot: SlotId): string {
  return slot.split('#')[0]!
}
