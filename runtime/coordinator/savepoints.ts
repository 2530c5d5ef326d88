// Requests for savepoints, to stop with or not, and for rescales (rules 21, 25): written into HEAD before the trigger, answered once, and taken up again by
// the coordinator that comes after this one.

import type { Environment } from '../base/environment.ts'
import type { RequestId } from '../base/ids.ts'
import type { CheckpointEvent } from '../checkpoint/core-contract.ts'
import { failSavepoint, requestSavepoint } from '../storage/head.ts'
import type { Head, ManifestRef, SavepointRequest } from '../storage/head-contract.ts'
import type { HeadKeeper, Overtaken } from '../storage/head-keeper.ts'
import type { SavepointAnswer } from './coordinator-contract.ts'
import type { RescaleWish } from './rescale-refusal.ts'

/** Who waits for an answer, by request. */
export type WaitingForSavepoints = Map<RequestId, ((answer: SavepointAnswer) => void)[]>

export interface SavepointsOptions {
  /** Of the job: a rescale does not end the wait. */
  readonly waiting: WaitingForSavepoints
  readonly keeper: HeadKeeper
  readonly handle: (event: CheckpointEvent) => void
  /** Why the job cannot go to this size now. */
  readonly refuseRescale: (wish: RescaleWish) => string | undefined
  readonly log: Environment['log']
  readonly onOvertaken: (answer: Overtaken) => void
  readonly onBroken: (error: unknown) => void
}

export class Savepoints {
  readonly #options: SavepointsOptions
  readonly #waiting: WaitingForSavepoints
  /** Of rescales that wait for their turn, or have it. */
  readonly #parallelismOf = new Map<RequestId, number>()
  /** What is answered from now on; undefined in it: the next run has to be asked. */
  #closed: { readonly answer: SavepointAnswer | undefined } | undefined

  constructor(options: SavepointsOptions) {
    this.#options = options
    this.#waiting = options.waiting
  }

  /** What a coordinator before this one was asked for and had no result of. */
  resume(head: Head): void {
    for (const asked of head.savepointRequests) this.#trigger(asked)
  }

  /**
   * The same request again gets the same answer; of a new one that cannot be nothing is written. undefined: this run goes on as another one,
   * which has to be asked. Rejects with MR-S13 when too many wait, and with MR-S12 when HEAD stays unclear: it may have the request, or yet
   * get it.
   */
  async ask(asked: SavepointRequest): Promise<SavepointAnswer | undefined> {
    if (this.#closed !== undefined) return this.#closed.answer
    // A savepoint to stop with may have completed since: the end that it wrote is known here only a moment later.
    const hasEnded = (head: Head): boolean => head.end.kind !== 'none'
    const { keeper } = this.#options
    const head = await keeper.readBegun()
    const isBehindAnother = head.savepointRequests.some(({ mode }) => mode === 'rescale')
    const isNew = !isKnown(head, asked.request) && !hasEnded(head)
    const refused = isNew ? this.#refuse(asked.parallelism, isBehindAnother) : undefined
    if (refused !== undefined) return { outcome: 'failed', detail: refused }
    const answer = await keeper.update((newest) => (hasEnded(newest) ? newest : requestSavepoint(newest, asked)))
    if (answer.outcome !== 'won') {
      this.#options.onOvertaken(answer)
      return { outcome: 'ended', detail: 'another command runs the job now, or has ended it' }
    }
    const known = answerIn(answer.head, asked.request)
    if (known !== undefined) return known
    if (hasEnded(answer.head)) return { outcome: 'ended', detail: 'the job has ended' }
    return new Promise((resolve) => {
      // HEAD has it all the same. The run after this one may have begun from what it read before: it learns of this by being asked.
      if (this.#closed !== undefined) return resolve(this.#closed.answer)
      this.#waiting.set(asked.request, [...(this.#waiting.get(asked.request) ?? []), resolve])
      this.#trigger(asked)
    })
  }

  /**
   * Why a request whose turn has come cannot be carried out: what it needs may have gone since it was written into HEAD, and the swap that
   * completes a rescale would leave the job at a size that it cannot run at.
   */
  refusalOf(request: RequestId): string | undefined {
    return this.#refuse(this.#parallelismOf.get(request), false)
  }

  /** HEAD has it, by the swap that completed it. */
  completed(request: RequestId, manifest: ManifestRef): void {
    this.#resolve(request, { outcome: 'completed', manifest })
  }

  /**
   * Written into HEAD, and then said, as HEAD has it. Where that is not ours to write any more the request still stands in it, and the next
   * coordinator triggers it again: whoever waits hears that this one has ended. Never rejects.
   */
  async failed(request: RequestId, detail: string): Promise<void> {
    const { keeper, log, onOvertaken, onBroken } = this.#options
    try {
      const answer = await keeper.update((head) => failSavepoint(head, { request, detail }))
      const known = answerIn(answer.head, request)
      if (known?.outcome === 'failed') log('warn', 'a snapshot that was asked for failed', { request, detail })
      if (known !== undefined) this.#resolve(request, known)
      if (answer.outcome !== 'won') onOvertaken(answer)
    } catch (error) {
      onBroken(error)
    }
  }

  /** The job has ended here: nothing more is asked for, and nobody waits in vain. Nothing changes after `goOn`. */
  close(why: string): void {
    if (this.#closed !== undefined) return
    this.#closed = { answer: { outcome: 'ended', detail: why } }
    endWaiting(this.#waiting, why)
  }

  /** The same start goes on in another run, which takes up what HEAD says and answers whoever waits. */
  goOn(): void {
    this.#closed ??= { answer: undefined }
  }

  #refuse(parallelism: number | undefined, isBehindAnother: boolean): string | undefined {
    return parallelism === undefined ? undefined : this.#options.refuseRescale({ parallelism, isBehindAnother })
  }

  #trigger({ request, mode, parallelism }: SavepointRequest): void {
    const { handle, log } = this.#options
    if (parallelism !== undefined) this.#parallelismOf.set(request, parallelism)
    log('info', 'a snapshot is asked for', { request, mode })
    if (mode === 'savepoint') handle({ type: 'savepointRequested', request })
    else if (mode === 'rescale') handle({ type: 'checkpointRequested', request, halt: 'stop' })
    else handle({ type: 'savepointRequested', request, halt: mode })
  }

  #resolve(request: RequestId, answer: SavepointAnswer): void {
    for (const resolve of this.#waiting.get(request) ?? []) resolve(answer)
    this.#waiting.delete(request)
    this.#parallelismOf.delete(request)
  }
}

/** Nobody is left to answer them. */
export function endWaiting(waiting: WaitingForSavepoints, why: string): void {
  for (const resolve of [...waiting.values()].flat()) resolve({ outcome: 'ended', detail: why })
  waiting.clear()
}

function isKnown(head: Head, request: RequestId): boolean {
  return answerIn(head, request) !== undefined || head.savepointRequests.some((waiting) => waiting.request === request)
}

function answerIn(head: Head, request: RequestId): SavepointAnswer | undefined {
  const result = head.savepointResults.find((entry) => entry.request === request)
  if (result === undefined) return undefined
  return result.manifest === undefined
    ? { outcome: 'failed', detail: result.detail }
    : { outcome: 'completed', manifest: result.manifest }
}
