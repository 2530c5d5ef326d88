// Requests for savepoints, to stop with or not (rule 21): written into HEAD before the trigger, answered once, and taken up again by
// the coordinator that comes after this one.

import type { RequestId } from '../base/ids.ts'
import type { CheckpointEvent } from '../checkpoint/core-contract.ts'
import type { Halt } from '../record/element.ts'
import { failSavepoint, requestSavepoint } from '../storage/head.ts'
import type { Head, ManifestRef, SavepointRequest } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import type { Overtaken } from './commits.ts'
import type { SavepointAnswer } from './coordinator-contract.ts'

export interface SavepointsOptions {
  readonly keeper: HeadKeeper
  readonly handle: (event: CheckpointEvent) => void
  readonly onOvertaken: (answer: Overtaken) => void
  readonly onBroken: (error: unknown) => void
}

export class Savepoints {
  readonly #options: SavepointsOptions
  readonly #waiting = new Map<RequestId, ((answer: SavepointAnswer) => void)[]>()
  #closedBy: string | undefined

  constructor(options: SavepointsOptions) {
    this.#options = options
  }

  /** What a coordinator before this one was asked for and had no result of. */
  resume(head: Head): void {
    for (const { request, mode } of head.savepointRequests) this.#trigger(request, mode)
  }

  /** The same request again gets the same answer. Rejects with MR-S13 when too many wait, or when HEAD stays unclear. */
  async ask(asked: SavepointRequest): Promise<SavepointAnswer> {
    if (this.#closedBy !== undefined) return { outcome: 'failed', detail: this.#closedBy }
    // A savepoint to stop with may have completed since: the end that it wrote is known here only a moment later.
    const hasEnded = (head: Head): boolean => head.end.kind !== 'none'
    const answer = await this.#options.keeper.update((head) => (hasEnded(head) ? head : requestSavepoint(head, asked)))
    if (answer.outcome !== 'won') {
      this.#options.onOvertaken(answer)
      return { outcome: 'failed', detail: 'another command runs the job now, or has ended it' }
    }
    const known = answerIn(answer.head, asked.request)
    if (known !== undefined) return known
    if (hasEnded(answer.head)) return { outcome: 'failed', detail: 'the job has ended' }
    return new Promise((resolve) => {
      if (this.#closedBy !== undefined) return resolve({ outcome: 'failed', detail: this.#closedBy })
      this.#waiting.set(asked.request, [...(this.#waiting.get(asked.request) ?? []), resolve])
      this.#trigger(asked.request, asked.mode)
    })
  }

  /** HEAD has it, by the swap that completed it. */
  completed(request: RequestId, manifest: ManifestRef): void {
    this.#resolve(request, { outcome: 'completed', manifest })
  }

  /** Written into HEAD, and then said. Never rejects. */
  async failed(request: RequestId, detail: string): Promise<void> {
    const { keeper, onOvertaken, onBroken } = this.#options
    try {
      const answer = await keeper.update((head) => failSavepoint(head, { request, detail }))
      if (answer.outcome !== 'won') onOvertaken(answer)
      this.#resolve(request, { outcome: 'failed', detail })
    } catch (error) {
      onBroken(error)
    }
  }

  /** The job has ended here: nothing more is asked for, and nobody waits in vain. */
  close(why: string): void {
    this.#closedBy ??= why
    for (const request of this.#waiting.keys()) this.#resolve(request, { outcome: 'failed', detail: this.#closedBy })
  }

  #trigger(request: RequestId, mode: SavepointRequest['mode']): void {
    const halt = haltOf(mode)
    this.#options.handle({ type: 'savepointRequested', request, ...(halt !== undefined && { halt }) })
  }

  #resolve(request: RequestId, answer: SavepointAnswer): void {
    for (const resolve of this.#waiting.get(request) ?? []) resolve(answer)
    this.#waiting.delete(request)
  }
}

function haltOf(mode: SavepointRequest['mode']): Halt | undefined {
  return mode === 'savepoint' ? undefined : mode
}

function answerIn(head: Head, request: RequestId): SavepointAnswer | undefined {
  const result = head.savepointResults.find((entry) => entry.request === request)
  if (result === undefined) return undefined
  return result.manifest === undefined
    ? { outcome: 'failed', detail: result.detail }
    : { outcome: 'completed', manifest: result.manifest }
}
