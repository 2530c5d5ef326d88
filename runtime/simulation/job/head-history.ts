// Everything that HEAD ever was, and what must hold from one HEAD to the next whatever happens (rules 1, 2, 6, 7).

import { drainedStopOf } from '../../storage/head.ts'
import { decodeHead } from '../../storage/head-format.ts'
import type { Head, ManifestRef } from '../../storage/head-contract.ts'
import type { ReportedSavepoints } from './reported-savepoints.ts'
import type { HeadStore, HeadVersion, SwapAnswer, VersionedHead } from '../../storage/contract.ts'

export class HeadHistory implements HeadStore {
  readonly failures: string[] = []
  /** Manifests by id, as they completed. */
  readonly completed = new Map<number, ManifestRef>()
  /** The newest HEAD. */
  newest: Head | undefined
  swaps = 0
  /** HEAD has changed; who did it does not know yet. */
  onSwap: (() => void) | undefined
  readonly #truth: HeadStore
  readonly #savepoints: ReportedSavepoints
  readonly #writers = new Set<string>()
  readonly #triggered = new Map<number, number>()

  /** `truth` answers within microtasks. */
  constructor(truth: HeadStore, savepoints: ReportedSavepoints) {
    this.#truth = truth
    this.#savepoints = savepoints
  }

  get incarnations(): number {
    return this.newest?.incarnation ?? 0
  }

  read(): Promise<VersionedHead | undefined> {
    return this.#truth.read()
  }

  async swap(expected: HeadVersion | undefined, bytes: Uint8Array): Promise<SwapAnswer> {
    const answer = await this.#truth.swap(expected, bytes)
    if (answer.outcome === 'won') this.#record(decodeHead(bytes, 'a new HEAD'))
    return answer
  }

  /** A coordinator of this incarnation triggers this checkpoint. */
  triggered(id: number, incarnation: number): void {
    const before = this.#triggered.get(id)
    if (before !== undefined && before !== incarnation)
      this.#fail(`id ${id} was triggered by incarnations ${before} and ${incarnation}`)
    this.#triggered.set(id, incarnation)
  }

  #record(head: Head): void {
    const before = this.newest
    this.newest = head
    this.#savepoints.inHead(head)
    this.swaps++
    this.onSwap?.()
    if (this.#writers.has(head.writer)) this.#fail(`two HEADs have the writer ${head.writer}`)
    this.#writers.add(head.writer)
    for (const ref of head.retained) this.#recordCompleted(ref)
    if (before === undefined) return
    const risen = head.incarnation - before.incarnation
    if (risen !== 0 && risen !== 1) this.#fail(`the incarnation went from ${before.incarnation} to ${head.incarnation}`)
    if (head.start < before.start) this.#fail(`the start went from ${before.start} to ${head.start}`)
    const mayFinish = drainedStopOf(before.end) !== undefined && head.end.kind === 'finished'
    if (before.end.kind !== 'none' && head.end.kind !== before.end.kind && head.start === before.start && !mayFinish)
      this.#fail(`an end turned from ${before.end.kind} into ${head.end.kind}`)
  }

  #recordCompleted(ref: ManifestRef): void {
    const known = this.completed.get(ref.id)
    if (known !== undefined) {
      if (known.path !== ref.path || known.completedAtMs !== ref.completedAtMs)
        this.#fail(`id ${ref.id} completed twice`)
      return
    }
    for (const older of this.completed.keys()) if (older > ref.id) this.#fail(`id ${ref.id} completed after ${older}`)
    this.completed.set(ref.id, ref)
  }

  #fail(what: string): void {
    if (this.failures.length < 5) this.failures.push(`HEAD: ${what}.`)
  }
}
