// Whether a coordinator that was overtaken by another one of its own start may raise the incarnation again (rule 2), as a pure machine: looks
// at HEAD and words of workers go in, a decision comes out. Without it two coordinators that both live would fence each other for ever.
//
// A worker talks to one coordinator at a time, and looks for one only while it has none. So whoever comes here and is sent on, and comes
// again for as long as it takes to find the other one, reports that the other one is gone. One such worker is enough: with the others still
// at the other coordinator, that one hears at its next swap that it has been overtaken in its turn, and waits longer than before.
//
// The caller's order: look at HEAD when `wakeAtMs` has come and say what was seen, or that nothing was; a look that could not be made is none.

import type { Start } from '../base/ids.ts'
import { SILENCE_MS_MAX } from '../control/worker-contract.ts'
import type { Head } from '../storage/head-contract.ts'

/** HEAD must stand still for so long at least, ms, however little is left of the back-off: who dies in it knows nothing of what was before. */
const quietMsMin = 10_000
/** Between two looks once that is over, ms. */
export const lookMs = 2_000
/** A worker that has looked for so long has no coordinator, ms: as long as one may be silent. */
const seekingMsMin = SILENCE_MS_MAX
/** From one try to the next, ms: between them it may wait in vain at an address that does not answer. After a longer pause it had one. */
const seekingGapMsMax = 10_000
/** An older word of a worker says nothing of now, ms: it tries every two seconds where somebody answers. */
const freshMsMax = 3_000
/** Remembered at a time; a job has fewer. */
const seekersMax = 1_000

export type RaiseDecision =
  /** Look again. */
  | 'wait'
  /** Raise it; or HEAD says something else to begin with, such as an end, by which nothing is raised. */
  | 'begin'
  /** The other one lives: another back-off. */
  | 'overtaken'

export interface RaiseAgainOptions {
  readonly start: Start
  /** Left of the back-off. */
  readonly backOffMs: number
  readonly nowMs: number
}

export class RaiseAgain {
  readonly #start: Start
  #untilMs: number
  #wakeAtMs: number
  /** Of HEAD at the first look: no two writes are equal. */
  #writer: string | undefined
  readonly #seekers = new Map<string, { readonly sinceMs: number; readonly lastMs: number }>()

  constructor({ start, backOffMs, nowMs }: RaiseAgainOptions) {
    this.#start = start
    this.#untilMs = nowMs + backOffMs
    this.#wakeAtMs = nowMs
  }

  get wakeAtMs(): number {
    return this.#wakeAtMs
  }

  /** A worker has come that has no coordinator. `instance`: of its process. */
  seeks(instance: string, nowMs: number): void {
    const known = this.#seekers.get(instance)
    const goesOn = known !== undefined && nowMs - known.lastMs <= seekingGapMsMax
    this.#seekers.delete(instance)
    this.#seekers.set(instance, { sinceMs: goesOn ? known.sinceMs : nowMs, lastMs: nowMs })
    if (this.#seekers.size <= seekersMax) return
    for (const oldest of this.#seekers.keys()) return void this.#seekers.delete(oldest)
  }

  sawHead(head: Head | undefined, nowMs: number): RaiseDecision {
    if (head === undefined || head.start !== this.#start || head.end.kind !== 'none') return 'begin'
    if (this.#writer === undefined) {
      this.#writer = head.writer
      this.#untilMs = Math.max(this.#untilMs, nowMs + quietMsMin)
      this.#wakeAtMs = this.#untilMs
      return 'wait'
    }
    if (head.writer !== this.#writer) return 'overtaken'
    this.#wakeAtMs = Math.max(this.#untilMs, nowMs + lookMs)
    return nowMs >= this.#untilMs && this.#someoneSeeks(nowMs) ? 'begin' : 'wait'
  }

  /** Unknown is not unchanged: nothing is decided. */
  missedHead(nowMs: number): void {
    this.#wakeAtMs = Math.max(this.#wakeAtMs, nowMs + lookMs)
  }

  #someoneSeeks(nowMs: number): boolean {
    return [...this.#seekers.values()].some(
      ({ sinceMs, lastMs }) => lastMs - sinceMs >= seekingMsMin && nowMs - lastMs <= freshMsMax,
    )
  }
}
