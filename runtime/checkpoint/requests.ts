// Snapshots that somebody asked for and that wait for their turn. Each request is answered exactly once.

import type { RequestId } from '../base/ids.ts'
import type { Halt, SnapshotKind } from '../record/element.ts'
import type { RefuseRequest } from './core-contract.ts'

export interface WaitingRequest {
  readonly kind: SnapshotKind
  readonly halt?: Halt | undefined
  /** undefined: nobody waits for an answer. */
  readonly request: RequestId | undefined
  /** When it is given up if it was not triggered. */
  readonly deadlineMs: number
}

/** More would only wait for their deadline: one snapshot is pending at a time. */
export const waitingRequestsMax = 100
/**
 * How long a request that cannot be carried out is held back before it fails, ms. Above the 2.5 s within which every worker finds the next
 * coordinator (reconnectMs): those with room may come a moment after those whose subtasks it goes on with.
 */
export const refusedMsMax = 3_000
/** As many answers as HEAD remembers: a repetition of one of them is not a new request. */
export const rememberedRequestsMax = 100

export class RequestQueue {
  #waiting: WaitingRequest[] = []
  /** Taken and not yet answered. */
  readonly #taken = new Set<RequestId>()
  readonly #answered = new Set<RequestId>()
  /** Of waiting ones that cannot be carried out, since when. */
  readonly #refusedSinceMs = new Map<WaitingRequest, number>()
  readonly #refuse: RefuseRequest

  constructor(refuse: RefuseRequest = () => undefined) {
    this.#refuse = refuse
  }

  /** known: it waits, runs or was answered already. */
  add(entry: WaitingRequest): 'added' | 'known' | 'full' {
    const { request } = entry
    const repeated =
      request === undefined
        ? this.#waiting.some((waiting) => waiting.request === undefined && waiting.halt === entry.halt)
        : this.#taken.has(request) ||
          this.#answered.has(request) ||
          this.#waiting.some((waiting) => waiting.request === request)
    if (repeated) return 'known'
    if (this.#waiting.length >= waitingRequestsMax) return 'full'
    this.#waiting.push(entry)
    return 'added'
  }

  /** Savepoints first (rule 15), else in the order of arrival. What is held back lets the others pass. */
  get next(): WaitingRequest | undefined {
    const waiting = this.#waiting.filter((entry) => !this.#refusedSinceMs.has(entry))
    return waiting.find((entry) => entry.kind === 'savepoint') ?? waiting[0]
  }

  /** Whatever could be triggered now is asked after. Takes what was refused for too long. */
  giveUpRefused(nowMs: number): { readonly request: RequestId; readonly why: string }[] {
    return this.#waiting.flatMap((entry) => {
      const { request } = entry
      const why = request === undefined ? undefined : this.#refuse(request)
      if (request === undefined || why === undefined) {
        this.#refusedSinceMs.delete(entry)
        return []
      }
      const sinceMs = this.#refusedSinceMs.get(entry) ?? nowMs
      this.#refusedSinceMs.set(entry, sinceMs)
      if (nowMs - sinceMs < refusedMsMax) return []
      this.take(entry)
      return [{ request, why }]
    })
  }

  /** When giveUpRefused takes one that is held back. */
  get earliestRefusalMs(): number | undefined {
    return this.#refusedSinceMs.size === 0 ? undefined : Math.min(...this.#refusedSinceMs.values()) + refusedMsMax
  }

  take(entry: WaitingRequest): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting !== entry)
    this.#refusedSinceMs.delete(entry)
    if (entry.request !== undefined) this.#taken.add(entry.request)
  }

  /** Takes those that waited for too long, or all of them. */
  giveUp(which: { readonly dueAtMs: number } | 'all'): WaitingRequest[] {
    const over = this.#waiting.filter((entry) => which === 'all' || entry.deadlineMs <= which.dueAtMs)
    for (const entry of over) this.take(entry)
    return over
  }

  /** Moves: stops that nobody waits for an answer of. All subtasks are about to begin again, outside of every worker that is leaving. */
  dropMoves(): void {
    this.#waiting = this.#waiting.filter(({ request, halt }) => request !== undefined || halt === undefined)
  }

  get earliestDeadlineMs(): number | undefined {
    return this.#waiting.length === 0 ? undefined : Math.min(...this.#waiting.map((entry) => entry.deadlineMs))
  }

  answered(request: RequestId): void {
    this.#taken.delete(request)
    this.#answered.add(request)
    for (const oldest of this.#answered) {
      if (this.#answered.size <= rememberedRequestsMax) break
      this.#answered.delete(oldest)
    }
  }
}
