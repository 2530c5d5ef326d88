// A worker's side of its direct connection to the coordinator, as a pure machine: it connects, promises, starts and ends slots on the
// coordinator's word, keeps them when the coordinator is lost, and leaves in order. Protocol rules 12 and 25.
//
// The caller's order: after each call, carry out `effects` in their order, emptying them, and see to it that tick is called at
// `wakeAtMs`. After `exit` nothing counts any more.

import { unreachable } from '../base/errors.ts'
import type { MillraceError } from '../base/errors.ts'
import { incarnation } from '../base/ids.ts'
import type { Incarnation, JobId, SlotId } from '../base/ids.ts'
import type { Random } from '../base/environment.ts'
import type { PlantedFault } from '../base/planted.ts'
import { THREAD_END_MS_MAX } from '../control/contract.ts'
import type { SlotStart } from '../control/contract.ts'
import {
  HEARTBEAT_MS,
  SILENCE_MS_MAX,
  SILENCE_PER_LOOK_MS_MAX,
  WORKER_WIRE_VERSION,
} from '../control/worker-contract.ts'
import type { FromWorker, ToWorker } from '../control/worker-contract.ts'
import { agentError } from './agent-errors.ts'

/** Between the first two tries to connect; doubles up to the maximum until the coordinator lets it in. */
const retryMsMin = 100
const retryMsMax = 2_000
/** A connection attempt without an answer is given up, ms. */
const connectMsMax = 5_000
/** Without a coordinator for so long something is wrong that a fresh process may find, ms. */
const aloneMsMax = 15 * 60_000
/** Processing time and the signatures of S3 suffer from a clock further off than this, ms. */
const skewMsMax = 5 * 60_000

export type AgentEffect =
  | { readonly type: 'connect' }
  | { readonly type: 'send'; readonly message: FromWorker }
  | { readonly type: 'disconnect' }
  | { readonly type: 'startSlot'; readonly slot: SlotId; readonly start: SlotStart }
  /** It goes on, on a new link to this incarnation. */
  | { readonly type: 'attachSlot'; readonly slot: SlotId; readonly incarnation: Incarnation }
  /** Its coordinator is lost; it runs on. */
  | { readonly type: 'detachSlot'; readonly slot: SlotId; readonly reason: string }
  | { readonly type: 'terminateSlot'; readonly slot: SlotId }
  /** `error`: it did not end well; `final`: another try would end in the same way. */
  | {
      readonly type: 'exit'
      readonly reason: string
      readonly error: MillraceError | undefined
      readonly final: boolean
    }
  | {
      readonly type: 'log'
      readonly level: 'info' | 'warn'
      readonly message: string
      readonly fields: Readonly<Record<string, unknown>>
    }

export interface AgentOptions {
  readonly job: JobId
  readonly worker: string
  readonly instance: string
  readonly token: string
  readonly runtimeVersion: string
  /** As in Hello. */
  readonly build?: string
  readonly slots: number
  /** Where the coordinator is, for people. */
  readonly coordinator: string
  readonly random: Pick<Random, 'next'>
  readonly nowMs: number
  /** Faults planted on purpose, under simulation. */
  readonly planted: ReadonlySet<PlantedFault>
}

type HostedSlot =
  /** unlinked: why it has lost its link, though its worker is registered. */
  | { readonly state: 'running'; unlinked: string | undefined }
  /** Its thread is about to be gone. why: if nobody asked for that; else what its host says. waitedMs: while a coordinator was there. */
  | { readonly state: 'ending'; readonly why: string | undefined; waitedMs: number }

type State =
  /** Until `atMs`, when it tries again. */
  | { readonly kind: 'waiting'; readonly atMs: number }
  | { readonly kind: 'connecting'; readonly untilMs: number }
  /** It has said hello and waits to be let in. */
  | { readonly kind: 'greeting' }
  | { readonly kind: 'registered' }
  | { readonly kind: 'ended' }

export class WorkerAgent {
  readonly effects: AgentEffect[] = []
  readonly #options: AgentOptions
  readonly #slots = new Map<SlotId, HostedSlot>()
  #state: State
  #promised: Incarnation = incarnation(0)
  /** What its last hello said that it runs, until it is let in. */
  #greetedWith: readonly SlotId[] = []
  #retryMs = retryMsMin
  #heardAtMs: number
  #silentMs = 0
  #lookedAtMs: number
  /** Since when it has nobody to talk to. */
  #aloneSinceMs: number
  /** Said once, not at every try. */
  #trouble = ''
  #leaveAtMs: number | undefined

  constructor(options: AgentOptions) {
    this.#options = options
    const { nowMs } = options
    this.#heardAtMs = nowMs
    this.#lookedAtMs = nowMs
    this.#aloneSinceMs = nowMs
    this.#state = { kind: 'waiting', atMs: nowMs }
    this.#connect(nowMs)
  }

  get running(): readonly SlotId[] {
    return [...this.#slots].filter(([, { state }]) => state === 'running').map(([slot]) => slot)
  }

  get promised(): Incarnation {
    return this.#promised
  }

  get #forgets(): boolean {
    return this.#options.planted.has('stale-coordinator-terminates')
  }

  get isRegistered(): boolean {
    return this.#state.kind === 'registered'
  }

  get wakeAtMs(): number | undefined {
    if (this.#state.kind === 'ended') return undefined
    const wakes = [this.#lookedAtMs + HEARTBEAT_MS]
    if (this.#state.kind === 'waiting') wakes.push(this.#state.atMs)
    if (this.#leaveAtMs !== undefined) wakes.push(this.#leaveAtMs)
    return Math.min(...wakes)
  }

  connected(nowMs: number): void {
    if (this.#state.kind !== 'connecting') return
    this.#state = { kind: 'greeting' }
    this.#silentMs = 0
    const { job, worker, instance, token, runtimeVersion, build = '', slots } = this.#options
    this.#greetedWith = this.running
    this.#send({
      type: 'hello',
      wireVersion: WORKER_WIRE_VERSION,
      runtimeVersion,
      build,
      job,
      worker,
      instance,
      token,
      slots,
      promised: this.#forgets ? incarnation(0) : this.#promised,
      running: this.#greetedWith,
    })
    this.#lookedAtMs = nowMs
  }

  /** The connection could not be made, or has ended. */
  closed(reason: string, nowMs: number): void {
    if (this.#state.kind === 'ended' || this.#state.kind === 'waiting') return
    this.#lost(reason, nowMs)
  }

  received(message: ToWorker, { nowMs, wallMs }: { readonly nowMs: number; readonly wallMs: number }): void {
    if (this.#state.kind !== 'greeting' && this.#state.kind !== 'registered') return
    this.#silentMs = 0
    // One that only ever refuses is none.
    if (message.type !== 'refused') this.#heardAtMs = nowMs
    switch (message.type) {
      case 'welcome':
        this.#compareClocks(message.wallMs - wallMs)
        return this.#welcome(message, nowMs)
      case 'refused':
        return this.#refused(message, nowMs)
      case 'heartbeat':
        return this.#endUnlinked()
      case 'startSlot':
        return this.#start(message.slot, message.start)
      case 'terminateSlot':
        return this.#terminate(message.slot)
      case 'goodbye':
        return this.#exit(message.reason)
      default:
        return unreachable(message)
    }
  }

  /** A slot's thread is gone, whatever ended it. */
  slotEnded(slot: SlotId, reason: string): void {
    const hosted = this.#slots.get(slot)
    if (hosted === undefined) return
    this.#slots.delete(slot)
    const why = hosted.state === 'ending' ? hosted.why : undefined
    if (this.#state.kind === 'registered') this.#send({ type: 'slotEnded', slot, reason: why ?? reason })
    else if (this.#leaveAtMs !== undefined && this.#slots.size === 0) this.#exit('it was to leave and has no slots')
  }

  /**
   * A slot has lost its link by its own finding. The coordinator need not notice: it waits for nothing that the slot has to say. So the slot ends,
   * which the coordinator hears, but only once that has shown that it lives: slots whose coordinator is gone run on for the next one (rule 25).
   */
  linkLost(slot: SlotId, reason: string): void {
    const hosted = this.#slots.get(slot)
    if (this.#state.kind !== 'registered' || hosted?.state !== 'running') return
    hosted.unlinked ??= reason
  }

  /** It is to end within so many ms: in order if the coordinator moves its slots by then. */
  leave(graceMs: number, nowMs: number): void {
    if (this.#state.kind === 'ended' || this.#leaveAtMs !== undefined) return
    this.#leaveAtMs = nowMs + graceMs
    this.#log('info', 'the worker is to end', { graceMs, slots: this.running })
    if (this.#state.kind === 'registered') this.#sayLeaving(nowMs)
    else if (this.#slots.size === 0) this.#exit('it was to leave and has no slots')
  }

  tick(nowMs: number): void {
    if (this.#state.kind === 'ended') return
    if (this.#leaveAtMs !== undefined && nowMs >= this.#leaveAtMs) return this.#graceOver()
    if (this.#state.kind === 'waiting' && nowMs >= this.#state.atMs) this.#connect(nowMs)
    if (this.#state.kind === 'connecting' && nowMs >= this.#state.untilMs) {
      this.#put({ type: 'disconnect' })
      this.#lost(`no connection within ${connectMsMax / 1000} s`, nowMs)
    }
    if (nowMs - this.#lookedAtMs >= HEARTBEAT_MS) this.#look(nowMs)
  }

  #look(nowMs: number): void {
    const passedMs = Math.min(nowMs - this.#lookedAtMs, SILENCE_PER_LOOK_MS_MAX)
    this.#lookedAtMs = nowMs
    if (this.#state.kind === 'greeting' || this.#state.kind === 'registered') {
      this.#silentMs += passedMs
      if (this.#silentMs >= SILENCE_MS_MAX) {
        this.#put({ type: 'disconnect' })
        return this.#lost(`it was silent for ${SILENCE_MS_MAX / 1000} s`, nowMs)
      }
      if (this.#state.kind === 'registered' && this.#someoneHangs(passedMs)) return
      return this.#send({ type: 'heartbeat' })
    }
    const aloneMs = nowMs - Math.max(this.#aloneSinceMs, this.#heardAtMs)
    if (aloneMs < aloneMsMax) return
    const detail = `It looked for it at ${this.#options.coordinator} for ${aloneMsMax / 60_000} min: ${this.#trouble}.`
    this.#exit('it found no coordinator', agentError('MR-D20', detail))
  }

  /**
   * The coordinator waits for each end, and nothing but the end of the process is sure to bring one. Without a coordinator nobody waits, and other
   * slots are to be adopted.
   */
  #someoneHangs(passedMs: number): boolean {
    const hanging: SlotId[] = []
    for (const [slot, hosted] of this.#slots) {
      if (hosted.state !== 'ending') continue
      hosted.waitedMs += passedMs
      if (hosted.waitedMs >= THREAD_END_MS_MAX) hanging.push(slot)
    }
    if (hanging.length === 0) return false
    const detail = `Slot ${hanging.join(', ')} was asked to end ${THREAD_END_MS_MAX / 1000} s ago.`
    this.#exit('a thread does not end', agentError('MR-D23', detail))
    return true
  }

  #endUnlinked(): void {
    for (const [slot, hosted] of this.#slots) {
      if (hosted.state !== 'running' || hosted.unlinked === undefined) continue
      this.#log('warn', 'a slot has lost its link to the coordinator, which lives: it ends', {
        slot,
        reason: hosted.unlinked,
      })
      this.#end(slot, hosted.unlinked)
    }
  }

  #connect(nowMs: number): void {
    this.#state = { kind: 'connecting', untilMs: nowMs + connectMsMax }
    this.#put({ type: 'connect' })
  }

  #welcome({ incarnation, keep }: Extract<ToWorker, { type: 'welcome' }>, nowMs: number): void {
    // A coordinator that goes on in its next incarnation says so where it is registered (a rescale in place).
    if (this.#state.kind === 'registered' ? incarnation <= this.#promised : this.#state.kind !== 'greeting') return
    if (incarnation < this.#promised && !this.#forgets) {
      this.#put({ type: 'disconnect' })
      return this.#lost(`its incarnation ${incarnation} is stale, ${this.#promised} was promised to`, nowMs)
    }
    if (this.#state.kind === 'registered') this.#detach(`incarnation ${incarnation} of the coordinator has begun`)
    this.#state = { kind: 'registered' }
    this.#promised = incarnation
    this.#retryMs = retryMsMin
    this.#trouble = ''
    this.#log('info', 'registered with the coordinator', { incarnation, keeps: keep })
    for (const slot of this.running) {
      if (keep.includes(slot)) this.#put({ type: 'attachSlot', slot, incarnation })
      else this.#end(slot)
    }
    // Also those that are not kept: each still counts as a place that is taken.
    for (const slot of new Set([...this.#greetedWith, ...keep]))
      if (!this.#slots.has(slot)) this.#send({ type: 'slotEnded', slot, reason: 'it ended meanwhile' })
    this.#greetedWith = []
    if (this.#leaveAtMs !== undefined) this.#sayLeaving(nowMs)
  }

  #refused({ message, final }: Extract<ToWorker, { type: 'refused' }>, nowMs: number): void {
    if (!final) {
      this.#put({ type: 'disconnect' })
      return this.#lost(message, nowMs)
    }
    this.#exit('the coordinator refuses it', agentError('MR-D22', message), true)
  }

  #compareClocks(aheadMs: number): void {
    if (Math.abs(aheadMs) <= skewMsMax) return
    const message = "this worker's clock is far from the coordinator's: processing time and requests to S3 suffer"
    this.#log('warn', message, { behindByMs: Math.round(aheadMs) })
  }

  #start(slot: SlotId, start: SlotStart): void {
    if (this.#state.kind !== 'registered' || this.#slots.has(slot)) return
    if (start.incarnation !== this.#promised)
      return this.#send({
        type: 'slotEnded',
        slot,
        reason: `incarnation ${start.incarnation} is not its coordinator's`,
      })
    if (this.running.length >= this.#options.slots)
      return this.#send({ type: 'slotEnded', slot, reason: `all its slots (${this.#options.slots}) are in use` })
    this.#slots.set(slot, { state: 'running', unlinked: undefined })
    this.#put({ type: 'startSlot', slot, start })
  }

  #terminate(slot: SlotId): void {
    const state = this.#slots.get(slot)?.state
    if (state === undefined) this.#send({ type: 'slotEnded', slot, reason: 'there is no such slot' })
    else if (state === 'running') this.#end(slot)
  }

  #end(slot: SlotId, why?: string): void {
    this.#slots.set(slot, { state: 'ending', why, waitedMs: 0 })
    this.#put({ type: 'terminateSlot', slot })
  }

  /** Back to looking for a coordinator; the slots run on. */
  #lost(reason: string, nowMs: number): void {
    const wasRegistered = this.#state.kind === 'registered'
    if (wasRegistered) {
      this.#aloneSinceMs = nowMs
      this.#retryMs = retryMsMin
    }
    const { coordinator, random } = this.#options
    if (wasRegistered || reason !== this.#trouble)
      this.#log('warn', wasRegistered ? 'the coordinator is lost' : 'no coordinator', { coordinator, reason })
    this.#trouble = reason
    if (wasRegistered) this.#detach(reason)
    if (this.#leaveAtMs !== undefined && this.#slots.size === 0) return this.#exit('it was to leave and has no slots')
    const delayMs = this.#retryMs * (0.5 + random.next() / 2)
    this.#retryMs = Math.min(retryMsMax, this.#retryMs * 2)
    this.#state = { kind: 'waiting', atMs: nowMs + delayMs }
  }

  #detach(reason: string): void {
    for (const [slot, hosted] of this.#slots) {
      if (hosted.state !== 'running') continue
      hosted.unlinked = undefined
      this.#put({ type: 'detachSlot', slot, reason })
    }
  }

  #sayLeaving(nowMs: number): void {
    this.#send({ type: 'leaving', graceMs: Math.max(0, Math.round(this.#leaveAtMs! - nowMs)) })
  }

  #graceOver(): void {
    const slots = this.running
    if (slots.length === 0) return this.#exit('it was to leave and has no slots')
    this.#exit('its time to leave is over', agentError('MR-D21', `Slots ${slots.join(', ')} still ran.`))
  }

  #exit(reason: string, error?: MillraceError, final = false): void {
    this.#state = { kind: 'ended' }
    this.#put({ type: 'exit', reason, error, final })
  }

  #send(message: FromWorker): void {
    this.#put({ type: 'send', message })
  }

  #log(level: 'info' | 'warn', message: string, fields: Readonly<Record<string, unknown>>): void {
    this.#put({ type: 'log', level, message, fields })
  }

  #put(effect: AgentEffect): void {
    this.effects.push(effect)
  }
}
