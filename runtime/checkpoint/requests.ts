// Snapshots that somebody asked for and that wait for their turn. Each request is answered exactly once.

import type { RequestId } from '../base/ids.ts'
import type { Halt, SnapshotKind } from '../record/element.ts'

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
/** As many answers as HEAD remembers: a repetition of one of them is not a new request. */
export const rememberedRequestsMax = 100

export class RequestQueue {
  #waiting: WaitingRequest[] = []
  /** Taken and not yet answered. */
  readonly #taken = new Set<RequestId>()
  readonly #answered = new Set<RequestId>()

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

  /** Savepoints first (rule 15), else in the order of arrival. */
  get next(): WaitingRequest | undefined {
    return this.#waiting.find((entry) => entry.kind === 'savepoint') ?? this.#waiting[0]
  }

  take(entry: WaitingRequest): void {
    this.#waiting = this.#waiting.filter((waiting) => waiting !== entry)
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
