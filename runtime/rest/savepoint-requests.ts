// Requests for savepoints, to stop with or not: asked for at once, answered later. What is answered stands in HEAD, so that the answer
// outlives the process; what is asked here is remembered until then.

import { MillraceError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'
import type { Head } from '../storage/head-contract.ts'
import type { ControlledJob } from './controlled-job.ts'
import { restError } from './errors.ts'
import { manifestView } from './job-views.ts'
import type { Locate } from './job-views.ts'
import type { SavepointMode, SavepointResource } from './resources.ts'

/** Waiting for an answer; HEAD takes as many. */
export const requestsWaitingMax = 100
/** Answered ones whose mode is known, so that an id is not used for two things; HEAD keeps as many results. */
export const requestsRememberedMax = 100

interface Asked {
  readonly mode: SavepointMode
  /** undefined: it waits. */
  failed: string | undefined
  answered: boolean
}

export class SavepointRequests {
  readonly #job: ControlledJob
  readonly #readHead: () => Promise<Head>
  readonly #locate: Locate
  readonly #asked = new Map<RequestId, Asked>()

  constructor(options: {
    readonly job: ControlledJob
    readonly readHead: () => Promise<Head>
    readonly locate: Locate
  }) {
    this.#job = options.job
    this.#readHead = options.readHead
    this.#locate = options.locate
  }

  /** Asks for it, unless that was done before. Throws MR-H04 before the job has begun and when too many wait, MR-H05. */
  async ask(request: RequestId, mode: SavepointMode): Promise<SavepointResource> {
    const head = await this.#readHead()
    this.#refuseOtherUse(head, request, mode)
    const known = this.#stateIn(head, request)
    // A failure that HEAD does not know of wrote nothing: the same request may yet succeed.
    if (known !== undefined && !(known.state === 'failed' && resultIn(head, request) === undefined)) return known
    if (this.#job.execution === undefined) throw restError('MR-H04', 'It has not begun yet.')
    const waiting = [...this.#asked.values()].filter(({ answered }) => !answered).length
    if (waiting >= requestsWaitingMax) throw restError('MR-H04', `${waiting} requests for savepoints wait.`)
    this.#remember(request, mode)
    return { request, state: 'pending' }
  }

  /** undefined: nobody asked for it, or it was answered so long ago that HEAD has forgotten it. */
  async find(request: RequestId): Promise<SavepointResource | undefined> {
    return this.#stateIn(await this.#readHead(), request)
  }

  #stateIn(head: Head, request: RequestId): SavepointResource | undefined {
    const result = resultIn(head, request)
    if (result?.manifest !== undefined)
      return { request, state: 'completed', savepoint: manifestView(result.manifest, this.#locate) }
    if (result !== undefined) return { request, state: 'failed', detail: result.detail }
    const asked = this.#asked.get(request)
    if (asked?.failed !== undefined) return { request, state: 'failed', detail: asked.failed }
    const waits = asked !== undefined || head.savepointRequests.some((entry) => entry.request === request)
    return waits ? { request, state: 'pending' } : undefined
  }

  /** Else a request to stop would be answered by the savepoint of before, and the job run on. */
  #refuseOtherUse(head: Head, request: RequestId, mode: SavepointMode): void {
    const before =
      this.#asked.get(request)?.mode ?? head.savepointRequests.find((entry) => entry.request === request)?.mode
    if (before !== undefined && before !== mode) throw restError('MR-H05', `${request} was to ${purposes[before]}.`)
    const completed = resultIn(head, request)?.manifest !== undefined
    if (completed && mode !== 'savepoint' && head.end.kind === 'none')
      throw restError('MR-H05', `${request} was to ${purposes.savepoint}.`)
  }

  #remember(request: RequestId, mode: SavepointMode): void {
    const asked: Asked = { mode, failed: undefined, answered: false }
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
      const answer = await (asked.mode === 'savepoint'
        ? this.#job.savepoint(request)
        : this.#job.stop({ drain: asked.mode === 'drain', request }))
      if (answer.outcome === 'failed') asked.failed = answer.detail
    } catch (error) {
      asked.failed = error instanceof MillraceError ? error.message : String(error)
    }
    asked.answered = true
  }
}

const purposes: Readonly<Record<SavepointMode, string>> = {
  savepoint: 'take a savepoint',
  stop: 'stop the job',
  drain: 'drain the job',
}

function resultIn(head: Head, request: RequestId): Head['savepointResults'][number] | undefined {
  return head.savepointResults.find((entry) => entry.request === request)
}
