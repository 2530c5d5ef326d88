// Requests that end with a snapshot: savepoints, to stop with or not, and rescales. Asked for at once, answered later. What is answered
// stands in HEAD, so that the answer outlives the process; what is asked here is remembered until then.

import { MillraceError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'
import type { Head, ManifestRef, SavepointRequest, SavepointResult } from '../storage/head-contract.ts'
import type { ControlledJob } from './controlled-job.ts'
import { restError } from './errors.ts'
import type { JobHistory } from './job-history.ts'
import type { SavepointMode } from './request-resources.ts'

/** Waiting for an answer; HEAD takes as many. */
export const requestsWaitingMax = 100
/** Answered ones whose purpose is known, so that an id is not used for two things; HEAD keeps as many results. */
export const requestsRememberedMax = 100

export type Wish = { readonly mode: SavepointMode } | { readonly mode: 'rescale'; readonly parallelism: number }

export type RequestState =
  | { readonly state: 'pending' }
  | { readonly state: 'completed'; readonly manifest: ManifestRef }
  | { readonly state: 'failed'; readonly detail: string }
  /** The job is over, and not by this request. */
  | { readonly state: 'ended'; readonly detail: string }

interface Asked {
  readonly wish: Wish
  /** undefined: it waits, or HEAD has the answer. Says nothing while the request stands in HEAD. */
  refused: Extract<RequestState, { readonly detail: string }> | undefined
  answered: boolean
}

export class SavepointRequests {
  readonly #job: ControlledJob
  readonly #readHead: () => Promise<Head>
  readonly #history: Pick<JobHistory, 'outcome'>
  readonly #asked = new Map<RequestId, Asked>()

  constructor(options: {
    readonly job: ControlledJob
    readonly history: Pick<JobHistory, 'outcome'>
    readonly readHead: () => Promise<Head>
  }) {
    this.#job = options.job
    this.#history = options.history
    this.#readHead = options.readHead
  }

  /** Asks for it, unless that was done before. Throws MR-H04 before the job has begun and when too many wait, MR-H05. */
  async ask(request: RequestId, wish: Wish): Promise<RequestState> {
    const head = await this.#readHead()
    this.#refuseOtherUse(head, request, wish)
    const known = this.#stateIn(head, request)
    // A failure that HEAD does not know of wrote nothing: the same request may yet succeed.
    if (known !== undefined && !(known.state === 'failed' && resultIn(head, request) === undefined)) return known
    if (head.end.kind !== 'none') return { state: 'ended', detail: `the job has ended (${head.end.kind})` }
    refuseUnlessOwned(this.#job, this.#history)
    const waiting = [...this.#asked.values()].filter(({ answered }) => !answered).length
    if (waiting >= requestsWaitingMax) throw restError('MR-H04', `${waiting} requests for savepoints wait.`)
    this.#remember(request, wish)
    return { state: 'pending' }
  }

  /** undefined: nobody asked for it, or it was answered so long ago that HEAD has forgotten it. */
  async find(request: RequestId): Promise<RequestState | undefined> {
    return this.#stateIn(await this.#readHead(), request)
  }

  /** What it was asked for here; undefined: nothing, or forgotten. */
  purposeOf(request: RequestId): string | undefined {
    const wish = this.#asked.get(request)?.wish
    return wish && purposeOf(wish)
  }

  #stateIn(head: Head, request: RequestId): RequestState | undefined {
    const result = resultIn(head, request)
    if (result?.manifest !== undefined) return { state: 'completed', manifest: result.manifest }
    if (result !== undefined) return { state: 'failed', detail: result.detail }
    const asked = this.#asked.get(request)
    // What stands in HEAD is carried out, by the next coordinator if not by this one, whatever was heard here.
    if (!head.savepointRequests.some((entry) => entry.request === request)) {
      if (asked === undefined) return undefined
      if (asked.refused !== undefined) return asked.refused
    }
    // HEAD takes no result any more: it will not be answered otherwise.
    return head.end.kind === 'none'
      ? { state: 'pending' }
      : { state: 'ended', detail: `the job has ended (${head.end.kind})` }
  }

  /** Else a request to stop would be answered by the savepoint of before, and the job run on. */
  #refuseOtherUse(head: Head, request: RequestId, wish: Wish): void {
    const refuse = (before: string): never => {
      throw restError('MR-H05', `${request} was to ${before}.`)
    }
    const standing = head.savepointRequests.find((entry) => entry.request === request)
    const result = resultIn(head, request)
    const before = this.purposeOf(request) ?? purposeIn(standing ?? result ?? {})
    if (before !== undefined && before !== purposeOf(wish)) refuse(before)
    if (result?.start !== undefined && result.start !== head.start)
      refuse(`${before ?? 'take a snapshot'} in start ${result.start}`)
  }

  #remember(request: RequestId, wish: Wish): void {
    const asked: Asked = { wish, refused: undefined, answered: false }
    this.#asked.delete(request)
    this.#asked.set(request, asked)
    for (const [oldest, { answered }] of this.#asked) {
      if (this.#asked.size <= requestsRememberedMax) break
      if (answered) this.#asked.delete(oldest)
    }
    void this.#follow(request, asked)
  }

  /** Never rejects. */
  async #follow(request: RequestId, asked: Asked): Promise<void> {
    try {
      const answer = await this.#start(request, asked.wish)
      if (answer.outcome !== 'completed') asked.refused = { state: answer.outcome, detail: answer.detail }
    } catch (error) {
      asked.refused = { state: 'failed', detail: error instanceof MillraceError ? error.message : String(error) }
    }
    asked.answered = true
  }

  #start(request: RequestId, wish: Wish) {
    if (wish.mode === 'savepoint') return this.#job.savepoint(request)
    if (wish.mode === 'rescale') return this.#job.rescale(wish.parallelism, request)
    return this.#job.stop({ drain: wish.mode === 'drain', request })
  }
}

/** Throws MR-H04: what this process would be asked for, nobody would do. */
export function refuseUnlessOwned(job: ControlledJob, { outcome }: Pick<JobHistory, 'outcome'>): void {
  if (outcome !== undefined) throw restError('MR-H04', `This process does not run it any more (${outcome.kind}).`)
  if (job.execution === undefined) throw restError('MR-H04', 'It has not begun yet.')
}

const purposes: Readonly<Record<SavepointMode, string>> = {
  savepoint: 'take a savepoint',
  stop: 'stop the job',
  drain: 'drain the job',
}

export function purposeOf(wish: Wish): string {
  return wish.mode === 'rescale' ? `rescale the job to ${wish.parallelism}` : purposes[wish.mode]
}

/** undefined: HEAD does not tell. */
function purposeIn({ mode, parallelism = 0 }: Partial<SavepointRequest>): string | undefined {
  return mode && purposeOf(mode === 'rescale' ? { mode, parallelism } : { mode })
}

function resultIn(head: Head, request: RequestId): SavepointResult | undefined {
  return head.savepointResults.find((entry) => entry.request === request)
}
