// Carries transitions of HEAD out: read, apply, swap, and settle what is unclear (rule 4). A coordinator has one keeper; its swaps
// go one after the other. The keeper also is the fence: it writes only while HEAD's incarnation is its own (rules 2, 3).

import { invariant, InvariantError, mayPass } from '../base/errors.ts'
import { pause, within } from '../base/deadline.ts'
import type { Environment } from '../base/environment.ts'
import type { Incarnation } from '../base/ids.ts'
import type { HeadStore, HeadVersion, SwapAnswer } from './contract.ts'
import { storageError } from './errors.ts'
import { newestCompletedId, reserveIds } from './head.ts'
import type { Head } from './head-contract.ts'
import { decodeHead, encodeHead } from './head-format.ts'

export type Transition = (head: Head) => Head

export type UpdateAnswer =
  /** Durable: this is HEAD now. */
  { readonly outcome: 'won'; readonly head: Head } | Overtaken

/** HEAD is not ours to write any more. */
export type Overtaken =
  /** Another incarnation owns HEAD: stop everything. */
  | { readonly outcome: 'fenced'; readonly head: Head }
  /** Somebody else ended this start: no new permits; cancel the tasks. `head` tells what was permitted before. */
  | { readonly outcome: 'ended'; readonly head: Head }

export type BeginAnswer =
  | { readonly outcome: 'won'; readonly head: Head }
  /** `decide` wanted nothing written. */
  | { readonly outcome: 'declined'; readonly head: Head | undefined }
  /** Another coordinator raised the incarnation at the same time; raise again only after a back-off (rule 2). */
  | { readonly outcome: 'overtaken'; readonly head: Head }

/** One answer of the store; a call that takes longer counts as unclear. */
export const HEAD_CALL_DEADLINE_MS = 15_000
/** One change of HEAD with all its repeats; then MR-S12, and the keeper stays unsettled. Longer than a store's usual hiccup. */
export const HEAD_SETTLE_DEADLINE_MS = 60_000
/** Between repeats: doubling from the first to the second. */
export const HEAD_BACKOFF_MS = { first: 100, most: 5_000 } as const
/** Changes waiting for their turn. A coordinator has a few; more means that somebody does not wait for answers. */
const HEAD_CHANGES_WAITING_MAX = 256

export class HeadKeeper {
  readonly #store: HeadStore
  readonly #environment: Environment
  /** Of this coordinator, once it has begun. */
  #incarnation: Incarnation | undefined
  #endedByOthers = false
  /** The newest HEAD that we know to be ours; undefined: read before the next swap. */
  #known: Known | undefined
  /** Our own writes whose outcome is not known: writer → the version that it was to replace. Never empty while one may still land. */
  readonly #unclear = new Map<string, string | undefined>()
  #tail: Promise<unknown> = Promise.resolve()
  #waiting = 0

  private constructor(store: HeadStore, environment: Environment) {
    this.#store = store
    this.#environment = environment
  }

  /** Reads HEAD once, so that an unreadable store or HEAD (MR-S10, MR-S11) is known at once; retries up to the deadline (MR-S12). */
  static async open(store: HeadStore, environment: Environment): Promise<HeadKeeper> {
    const keeper = new HeadKeeper(store, environment)
    await keeper.read()
    return keeper
  }

  /** The newest HEAD; undefined only if there positively is none. For a restore: `settled()` first. */
  async read(): Promise<Head | undefined> {
    return (await this.#readRetrying(new Effort(this.#environment, 'reading HEAD'))).head
  }

  /** As `read`, of a job that has begun: a HEAD that is gone is MR-S16. */
  async readBegun(): Promise<Head> {
    const head = await this.read()
    if (head === undefined) throw goneError()
    return head
  }

  /**
   * Takes the job over: `decide` sees the newest HEAD, or undefined if there is none, and gives the next one (newJob, beginStart,
   * raiseIncarnation) or undefined to write nothing. It may be asked several times. When won, the incarnation written is our own.
   */
  begin(decide: (head: Head | undefined) => Head | undefined): Promise<BeginAnswer> {
    return this.#inTurn(() => this.#begin(decide))
  }

  /**
   * Applies `transition` under our own incarnation. It may be applied several times, each time on the newest HEAD, and may throw (then
   * nothing is written by that application). A thrown MR-S12 means: still unclear; ask again with the same transition, or `settled()`.
   */
  update(transition: Transition): Promise<UpdateAnswer> {
    return this.#inTurn(() => this.#update(transition, { fenced: true }))
  }

  /**
   * A change that is right whoever owns HEAD: confirming commits for an ended start, closing, pins. Never completes a checkpoint.
   * There must be a HEAD.
   */
  async amend(transition: Transition): Promise<Head> {
    const answer = await this.#inTurn(() => this.#update(transition, { fenced: false }))
    return answer.head
  }

  /** A block of ids [from, to] for this incarnation (rule 6). */
  async reserveIds(
    count: number,
  ): Promise<{ readonly outcome: 'won'; readonly head: Head; readonly from: number; readonly to: number } | Overtaken> {
    let block = { from: 0, to: 0 }
    const answer = await this.update((head) => {
      const reserved = reserveIds(head, count)
      block = reserved
      return reserved.head
    })
    return answer.outcome === 'won' ? { ...answer, from: block.from, to: block.to } : answer
  }

  /** What an update would be told now, if it could not win. One read, which waits for no turn and is not repeated. Rejects when it fails. */
  async look(): Promise<Overtaken | undefined> {
    const { head } = await this.#readOnce()
    if (head === undefined) throw goneError()
    if (head.incarnation === this.#incarnation && head.end.kind === 'none') return undefined
    // It may be our own swap that ended it: that one has its answer first.
    return this.#inTurn(async () => {
      const known = await this.#readOnce()
      if (known.head === undefined) throw goneError()
      if (this.#ownWrite(known) === undefined) this.#observe(known)
      return this.#verdict(known.head)
    })
  }

  /** Resolves when no swap is in flight or unclear; wins a further swap for that if it must. Throws MR-S12 when it cannot. */
  async settled(): Promise<void> {
    await this.#inTurn(async () => {
      if (this.#unclear.size > 0) await this.#settle()
    })
  }

  async #begin(decide: (head: Head | undefined) => Head | undefined): Promise<BeginAnswer> {
    const effort = new Effort(this.#environment, 'beginning a start')
    const tried = new Set<string>()
    let before: number | undefined
    for (;;) {
      const known = await this.#readRetrying(effort)
      // An update that was given up may land just now: it began nothing.
      const own = this.#ownWrite(known)
      if (own !== undefined && tried.has(own.writer)) return this.#begun(own)
      before ??= known.head?.incarnation ?? 0
      if (known.head !== undefined && known.head.incarnation !== before) {
        this.#forgetOutdated(known)
        return { outcome: 'overtaken', head: known.head }
      }
      const decided = decide(known.head)
      if (decided === undefined) return { outcome: 'declined', head: known.head }
      invariant(decided.incarnation === before + 1, 'beginning raises the incarnation by one')
      const won = await this.#swap(known, this.#withPlantedIds(decided, known.head), effort, tried)
      if (won !== undefined) return this.#begun(won)
    }
  }

  #begun(head: Head): BeginAnswer {
    this.#incarnation = head.incarnation
    this.#endedByOthers = false
    return { outcome: 'won', head }
  }

  async #update(transition: Transition, { fenced }: { readonly fenced: boolean }): Promise<UpdateAnswer> {
    invariant(!fenced || this.#incarnation !== undefined, 'a coordinator that has not begun updates HEAD')
    const effort = new Effort(this.#environment, 'changing HEAD')
    const tried = new Set<string>()
    // Good for a first try: if it is out of date, the swap is lost and HEAD is read.
    let known = this.#known
    for (;;) {
      if (known === undefined) {
        known = await this.#readRetrying(effort)
        const own = this.#ownWrite(known)
        if (own !== undefined && tried.has(own.writer)) return { outcome: 'won', head: own }
        this.#observe(known)
      }
      if (known.head === undefined) throw goneError()
      const verdict = fenced ? this.#verdict(known.head) : undefined
      if (verdict !== undefined) {
        this.#forgetOutdated(known)
        return verdict
      }
      const next = transition(known.head)
      invariant(next.incarnation === known.head.incarnation, 'only beginning raises the incarnation')
      const won = await this.#swap(known, next, effort, tried)
      if (won !== undefined) return { outcome: 'won', head: won }
      known = undefined
    }
  }

  /** An end that we wrote ourselves is part of what we know; one that we did not know is somebody else's. */
  #observe({ head }: Known): void {
    if (head === undefined || head.incarnation !== this.#incarnation) return
    if (head.end.kind !== 'none' && this.#known?.head?.end.kind === 'none') this.#endedByOthers = true
  }

  /** Whether we may no longer write under our incarnation. */
  #verdict(head: Head): Overtaken | undefined {
    // The planted fault is exactly this: the swap goes on top of another coordinator's HEAD.
    if (head.incarnation !== this.#incarnation && !this.#environment.planted.has('no-fence'))
      return { outcome: 'fenced', head }
    return this.#endedByOthers ? { outcome: 'ended', head } : undefined
  }

  /** Writes that were to replace a version which is no longer there have landed before or never will. */
  #forgetOutdated(known: Known): void {
    for (const [writer, replaced] of this.#unclear) {
      if (replaced !== known.version?.token) this.#unclear.delete(writer)
    }
  }

  /** Writes HEAD as it is under a new writer: once that has won, or one of the unclear writes shows, none of them can land later. */
  async #settle(): Promise<void> {
    const effort = new Effort(this.#environment, 'settling HEAD')
    for (;;) {
      const known = await this.#readRetrying(effort)
      if (this.#ownWrite(known) !== undefined) return
      // Only a first write can be unclear where there is no HEAD: whoever begins again wins or loses against it.
      if (known.head === undefined) throw storageError('MR-S12', 'The first HEAD of the job may still appear.')
      this.#observe(known)
      if (this.#incarnation !== undefined && this.#verdict(known.head) !== undefined) this.#forgetOutdated(known)
      if (this.#unclear.size === 0) return
      if ((await this.#swap(known, known.head, effort)) !== undefined) return
    }
  }

  /** One try, under a writer never used before. undefined: not won; read before trying again. */
  async #swap(known: Known, next: Head, effort: Effort, tried?: Set<string>): Promise<Head | undefined> {
    const written: Head = { ...next, writer: this.#environment.random.id() }
    const bytes = encodeHead(written)
    tried?.add(written.writer)
    this.#unclear.set(written.writer, known.version?.token)
    const answer = await this.#ask(known.version, bytes)
    if (answer.outcome === 'won') {
      this.#unclear.clear()
      this.#known = { head: written, version: answer.version }
      return written
    }
    if (answer.outcome === 'lost') {
      // This write surely did not land; earlier ones of the same change may have.
      this.#unclear.delete(written.writer)
      await effort.afterLost()
      return undefined
    }
    this.#environment.log('warn', 'a write of HEAD has no clear answer; settling it', { cause: String(answer.cause) })
    await effort.pause(answer.cause)
    return undefined
  }

  async #ask(version: HeadVersion | undefined, bytes: Uint8Array): Promise<SwapAnswer> {
    try {
      return await inTime(this.#environment, this.#store.swap(version, bytes), 'The swap of HEAD')
    } catch (cause) {
      if (cause instanceof InvariantError) throw cause
      return { outcome: 'unclear', cause }
    }
  }

  /** Our own write, if that is what was read: then it has won, and it is all clear again. */
  #ownWrite(known: Known): Head | undefined {
    if (known.head === undefined || !this.#unclear.has(known.head.writer)) return undefined
    this.#unclear.clear()
    this.#known = known
    return known.head
  }

  async #readRetrying(effort: Effort): Promise<Known> {
    for (;;) {
      try {
        return await this.#readOnce()
      } catch (error) {
        if (!mayPass(error)) throw error
        await effort.pause(error)
      }
    }
  }

  async #readOnce(): Promise<Known> {
    const read = await inTime(this.#environment, this.#store.read(), 'Reading HEAD')
    if (read === undefined) return { head: undefined, version: undefined }
    return { head: decodeHead(read.bytes, `HEAD at ${read.version.token}`), version: read.version }
  }

  /** Planted fault 'ids-reused': the new incarnation forgets the reserved block (rule 6). */
  #withPlantedIds(next: Head, before: Head | undefined): Head {
    if (before === undefined || !this.#environment.planted.has('ids-reused')) return next
    return { ...next, reservedIds: newestCompletedId(next) }
  }

  #inTurn<T>(act: () => Promise<T>): Promise<T> {
    invariant(this.#waiting < HEAD_CHANGES_WAITING_MAX, `${this.#waiting} changes of HEAD wait`)
    this.#waiting++
    const turn = this.#tail.then(act)
    const done = () => {
      this.#waiting--
    }
    this.#tail = turn.then(done, done)
    return turn
  }
}

function goneError(): Error {
  return storageError('MR-S16', 'It was there before.')
}

interface Known {
  readonly head: Head | undefined
  readonly version: HeadVersion | undefined
}

/** The repeats of one change: back-off and the deadline over all of them. */
class Effort {
  readonly #environment: Environment
  readonly #doing: string
  readonly #untilMs: number
  #pauseMs: number = HEAD_BACKOFF_MS.first
  #lost = 0

  constructor(environment: Environment, doing: string) {
    this.#environment = environment
    this.#doing = doing
    this.#untilMs = environment.clock.nowMs() + HEAD_SETTLE_DEADLINE_MS
  }

  /** Losing once is usual (an amendment came between); losing again and again is a fight. */
  async afterLost(): Promise<void> {
    if (this.#lost++ > 0) await this.pause(undefined)
  }

  /** Throws MR-S12 after the deadline. */
  async pause(cause: unknown): Promise<void> {
    if (this.#environment.clock.nowMs() >= this.#untilMs)
      throw storageError('MR-S12', `${this.#doing} for ${HEAD_SETTLE_DEADLINE_MS} ms${lastAnswer(cause)}.`, cause)
    // Jitter, so that two coordinators that fight over HEAD do not stay in step.
    const pauseMs = this.#pauseMs * (0.5 + this.#environment.random.next() / 2)
    this.#pauseMs = Math.min(this.#pauseMs * 2, HEAD_BACKOFF_MS.most)
    await pause(this.#environment.clock, pauseMs)
  }
}

/** A call that does not answer in time counts as failed; its late answer is of no more use, since rule 4 settles by reading. */
function inTime<T>(environment: Environment, call: Promise<T>, what: string): Promise<T> {
  const late = () => storageError('MR-S01', `${what} took longer than ${HEAD_CALL_DEADLINE_MS} ms.`)
  return within(environment.clock, HEAD_CALL_DEADLINE_MS, call, late)
}

/** So that the one error that people see says what stands in the way, such as a full disk. */
function lastAnswer(cause: unknown): string {
  return cause instanceof Error ? `, the last answer: ${cause.message}` : ''
}
