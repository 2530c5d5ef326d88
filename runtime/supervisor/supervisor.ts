// Restarts a process in place, so that repeated kills do not meet the kubelet's growing back-off: what it does, as a pure machine.
//
// The caller's order: after each call, carry out `effects` in their order, emptying them, and see to it that tick is called at `wakeAtMs`.

import { processExitCodes } from './contract.ts'

/** After the first and second death the next process starts at once. */
const immediateRestarts = 2
const delayMsMin = 100
const delayMsMax = 5_000
/** A process that lived so long was well: the delays begin anew, ms. */
const wellAfterMs = 60_000
/**
 * Protocol rule 2: two coordinators must not fence each other for ever. The next process is started at once all the same, and told of it: it
 * waits itself, so that the container's probe is answered and the kubelet does not end it, and with it what is remembered here.
 */
const fencedDelayMsMin = 10_000
const fencedDelayMsMax = 5 * 60_000
/** The delay itself, and up to half of it more: two that wait must not meet again. */
const fencedJitter = 0.5

export type SupervisorEffect =
  /** `backOffMs`: a coordinator before it was overtaken by another one; so much is left of the wait. */
  | { readonly type: 'spawn'; readonly backOffMs: number | undefined }
  /** To the child. */
  | { readonly type: 'signal'; readonly signal: NodeJS.Signals }
  | { readonly type: 'exit'; readonly code: number }
  | {
      readonly type: 'log'
      readonly level: 'info' | 'warn' | 'error'
      readonly message: string
      readonly fields: Readonly<Record<string, unknown>>
    }

/** How a child ended. `code` is null when a signal ended it. */
export interface ChildExit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** As shells count signals: 128 and the signal's number. */
  readonly shellCode: number
}

export class Supervisor {
  readonly effects: SupervisorEffect[] = []
  readonly #random: { next(): number }
  #state: 'running' | 'waiting' | 'ended' = 'waiting'
  #startAtMs: number | undefined
  #startedAtMs = 0
  #leaving = false
  /** Deaths since the last process that was well. */
  #deaths = 0
  #fencedDelayMs = fencedDelayMsMin
  /** Until a child says that it owns the job: those that begin are told of the wait, also of one that is over. */
  #backOffUntilMs: number | undefined
  /** Since when the child has owned the job, by its word. */
  #ownsSinceMs: number | undefined

  constructor(options: { readonly random: { next(): number }; readonly nowMs: number }) {
    this.#random = options.random
    this.#spawn(options.nowMs)
  }

  get wakeAtMs(): number | undefined {
    return this.#state === 'waiting' ? this.#startAtMs : undefined
  }

  tick(nowMs: number): void {
    if (this.#state === 'waiting' && this.#startAtMs !== undefined && nowMs >= this.#startAtMs) this.#spawn(nowMs)
  }

  /** Somebody wants this process to end: its child is told, and is not started again. */
  signalled(signal: NodeJS.Signals): void {
    this.#leaving = true
    if (this.#state === 'running') this.#put({ type: 'signal', signal })
    else if (this.#state === 'waiting') this.#exit(processExitCodes.done)
  }

  /** The child says that it owns the job: whoever comes after it was overtaken by nobody. */
  owns(nowMs: number): void {
    if (this.#state !== 'running') return
    this.#backOffUntilMs = undefined
    // Said again at each rescale.
    this.#ownsSinceMs ??= nowMs
  }

  /** It cannot even be started, which no further try mends. */
  spawnFailed(reason: string): void {
    if (this.#state !== 'running') return
    this.#put({ type: 'log', level: 'error', message: 'the process cannot be started', fields: { reason } })
    this.#exit(processExitCodes.failed)
  }

  exited({ code, signal, shellCode }: ChildExit, nowMs: number): void {
    if (this.#state !== 'running') return
    const livedMs = Math.round(nowMs - this.#startedAtMs)
    if (this.#leaving || code === processExitCodes.done || code === processExitCodes.badInput)
      return this.#exit(code ?? shellCode)
    if (livedMs >= wellAfterMs) this.#deaths = 0
    const isFenced = code === processExitCodes.fenced
    if (isFenced) this.#backOff(nowMs)
    const delayMs = isFenced ? 0 : this.#delay()
    this.#state = 'waiting'
    this.#startAtMs = nowMs + delayMs
    const fields = { code, signal, livedMs, restartsInMs: delayMs, backOffMs: this.#backOffLeftMs(nowMs) }
    this.#put({ type: 'log', level: 'warn', message: 'the process ended and is started again', fields })
    if (delayMs === 0) this.#spawn(nowMs)
  }

  #delay(): number {
    const beyond = this.#deaths++ - immediateRestarts
    return beyond < 0 ? 0 : Math.min(delayMsMax, delayMsMin * 2 ** beyond)
  }

  #backOff(nowMs: number): void {
    // As long as two could have fenced each other at the longest.
    const ownedLong = this.#ownsSinceMs !== undefined && nowMs - this.#ownsSinceMs >= fencedDelayMsMax
    if (ownedLong) this.#fencedDelayMs = fencedDelayMsMin
    const delayMs = this.#fencedDelayMs * (1 + fencedJitter * this.#random.next())
    this.#fencedDelayMs = Math.min(fencedDelayMsMax, this.#fencedDelayMs * 2)
    this.#backOffUntilMs = nowMs + Math.min(fencedDelayMsMax, delayMs)
  }

  #backOffLeftMs(nowMs: number): number | undefined {
    return this.#backOffUntilMs === undefined ? undefined : Math.max(0, Math.round(this.#backOffUntilMs - nowMs))
  }

  #spawn(nowMs: number): void {
    this.#state = 'running'
    this.#startAtMs = undefined
    this.#startedAtMs = nowMs
    this.#ownsSinceMs = undefined
    this.#put({ type: 'spawn', backOffMs: this.#backOffLeftMs(nowMs) })
  }

  #exit(code: number): void {
    this.#state = 'ended'
    this.#put({ type: 'exit', code })
  }

  #put(effect: SupervisorEffect): void {
    this.effects.push(effect)
  }
}
