// What is no longer needed is taken away after a checkpoint has completed: dropped manifests with their data (rule 7), state of
// aborted snapshots (R8), transactions that nobody holds (rule 24). Failing here costs space, never a record; a broken invariant is no such failure.

import { within } from '../base/deadline.ts'
import type { Clock, Environment } from '../base/environment.ts'
import { InvariantError } from '../base/errors.ts'
import type { CheckpointId, Incarnation } from '../base/ids.ts'
import { committablesOf } from '../checkpoint/assignment.ts'
import { decodeManifest, objectsOf } from '../checkpoint/manifest.ts'
import type { Manifest } from '../checkpoint/manifest.ts'
import type { ForeignObjects, ObjectKey, ObjectStore, SavepointStore } from '../storage/contract.ts'
import { storageError } from '../storage/errors.ts'
import { discardFiles } from '../storage/garbage.ts'
import { discarded, requiredRestorePoint, restorePointOf } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import {
  CHECKPOINTS_PREFIX,
  SAVEPOINTS_PREFIX,
  checkpointOfKey,
  isAbsoluteKey,
  savepointOfKey,
} from '../storage/paths.ts'
import type { CompletedSnapshot } from './coordinator-contract.ts'
import type { Commits } from './commits.ts'
import { coordinatorError } from './errors.ts'
import type { Execution } from './execution.ts'
import { Orphans } from './orphans.ts'
import { storeOf } from './restore.ts'
import { SinkSweeps } from './sink-sweeps.ts'

/**
 * The files of one clean-up; then it begins nothing more. What a call that was given up still deletes is needed by nobody for ever: ids,
 * attempts and names are never used again.
 */
export const cleanupDeadlineMs = 300_000
/** Of a clean-up: behind it no further file is begun with. So a slow store costs files that wait, and the sweep of transactions little time. */
export const filesDeadlineMs = cleanupDeadlineMs / 2

/** Throws MR-S01 after the deadline. */
export function withinCleanup<T>(clock: Clock, call: Promise<T>): Promise<T> {
  const late = () => storageError('MR-S01', `Cleaning up took longer than ${cleanupDeadlineMs} ms.`)
  return within(clock, cleanupDeadlineMs, call, late)
}

/** Whether there is time to begin with something more. */
export function timeFor(clock: Clock, ms: number): () => boolean {
  const untilMs = clock.nowMs() + ms
  return () => clock.nowMs() < untilMs
}

export interface CleanupOptions {
  readonly store: ObjectStore
  /** As in JobCoordinatorOptions. */
  readonly savepoints?: SavepointStore | undefined
  /** For a restore point outside of it. */
  readonly foreign?: ForeignObjects | undefined
  readonly keeper: HeadKeeper
  readonly environment: Environment
  readonly incarnation: Incarnation
  /** The first checkpoint id that this incarnation may give out. */
  readonly firstId: number
  readonly commits: Commits
  readonly execution: Execution
  /** Resolves when no fully acknowledged snapshot is on its way to HEAD (checkpointing.ts). */
  readonly quiet: () => Promise<void>
  readonly onBroken: (error: unknown) => void
}

/** not ours: another coordinator has the job. */
type CleanedUp = 'as far as there was time' | 'not ours'

interface Needs {
  readonly objects: ReadonlySet<ObjectKey>
  readonly transactions: ReadonlySet<string>
}

export class Cleanup {
  readonly orphans: Orphans
  readonly #options: CleanupOptions
  /** What each manifest that HEAD names needs; a manifest never changes. */
  readonly #needs = new Map<ObjectKey, Needs>()
  /** At most one: the newest clean-up does all that those before it had to do, and a sweep is its last step. */
  #waiting: (() => Promise<CleanedUp>) | undefined
  #running: Promise<void> | undefined
  readonly #sweeps: SinkSweeps
  #closed = false
  #lookedBack = false

  constructor(options: CleanupOptions) {
    this.#options = options
    this.#sweeps = new SinkSweeps({
      environment: options.environment,
      commits: options.commits,
      execution: options.execution,
      readKept: () => this.#transactionsKept(),
      onBroken: (error) => this.#break(error),
    })
    this.orphans = new Orphans(options)
  }

  /**
   * `acknowledged`: objects of the snapshot that has just completed and of finished subtasks. Resolves, like `sweep`, when nothing runs or
   * waits any more; never rejects.
   */
  afterCompleted(completed: CompletedSnapshot, acknowledged: ReadonlySet<ObjectKey>): Promise<void> {
    this.#waiting = () => this.#clean(completed.manifest.id, acknowledged)
    return (this.#running ??= this.#runWaiting())
  }

  /** After a restart: transactions of attempts that are gone. */
  sweep(): Promise<void> {
    this.#waiting ??= async () => 'as far as there was time'
    return (this.#running ??= this.#runWaiting())
  }

  /** The job has ended here: whoever comes next cleans up. */
  close(): void {
    this.#closed = true
  }

  /**
   * One at a time: what is left of one that was given up, the call that it waits for, ends before the next one begins. Else a slow store
   * would have one more of them with each, until they held all its permits.
   */
  async #runWaiting(): Promise<void> {
    const { clock } = this.#options.environment
    for (let act = this.#waiting; act !== undefined && !this.#closed; act = this.#waiting) {
      this.#waiting = undefined
      const cleaning = this.#told(act())
      try {
        await withinCleanup(clock, cleaning)
      } catch (late) {
        this.#warn(late)
      }
      // Files that could not be deleted are no reason to leave transactions open, which may hold up who reads them.
      if ((await cleaning) !== 'not ours' && !this.#closed) await this.#sweeps.sweep()
    }
    this.#running = undefined
  }

  /** Never rejects; undefined: it failed, and that was told. */
  async #told<T>(step: Promise<T>): Promise<T | undefined> {
    try {
      return await step
    } catch (error) {
      if (error instanceof InvariantError) this.#break(error)
      else this.#warn(error)
      return undefined
    }
  }

  /** Whoever does not know any more what is needed deletes nothing. */
  #break(error: InvariantError): void {
    this.close()
    this.#options.onBroken(error)
  }

  async #clean(id: CheckpointId, acknowledged: ReadonlySet<ObjectKey>): Promise<CleanedUp> {
    const isTime = timeFor(this.#options.environment.clock, filesDeadlineMs)
    const mayGoOn = (): boolean => !this.#closed && isTime()
    const { keeper, environment, incarnation } = this.#options
    environment.failpoints.hit('coordinator.discard.before')
    // Nothing is deleted while a swap is unclear (rule 4).
    await keeper.settled()
    const head = await keeper.readBegun()
    if (head.incarnation !== incarnation) return 'not ours'
    const used = new Set(acknowledged)
    for (const ref of namedBy(head)) {
      if (!mayGoOn()) return 'as far as there was time'
      used.add(ref.path)
      for (const object of (await this.#needsOf(ref)).objects) used.add(object)
    }
    if (!this.#lookedBack) await this.#lookBack(head)
    await this.#discard(head, used, mayGoOn)
    await this.orphans.collect(id, used, mayGoOn)
    environment.failpoints.hit('coordinator.discard.after')
    return 'as far as there was time'
  }

  /** What earlier incarnations wrote for checkpoints that never completed: nobody was left to take it away. */
  async #lookBack(head: Head): Promise<void> {
    const { store, firstId } = this.#options
    const named = new Set([...namedBy(head), ...head.discarding].map(({ path }) => checkpointOfKey(path)))
    for (const key of await store.list(CHECKPOINTS_PREFIX)) {
      const id = checkpointOfKey(key)
      if (id !== undefined && id < firstId && !named.has(id)) this.orphans.aborted(id, 'checkpoint')
    }
    if (this.#options.environment.planted.has('savepoint-swept')) await this.#lookBackAtSavepoints()
    this.#lookedBack = true
  }

  /** The planted fault: HEAD names none of them once they have completed. */
  async #lookBackAtSavepoints(): Promise<void> {
    const { store, firstId } = this.#options
    for (const key of await store.list(SAVEPOINTS_PREFIX)) {
      const id = savepointOfKey(key)
      if (id !== undefined && id < firstId) this.orphans.aborted(id, 'savepoint')
    }
  }

  /** Rule 7: data first, the manifest last, then a later swap removes the entry. */
  async #discard(head: Head, used: ReadonlySet<ObjectKey>, mayGoOn: () => boolean): Promise<void> {
    const { store, keeper, environment } = this.#options
    const gone = await discardFiles({
      head,
      store,
      objectsOf: (bytes) => [...objectsOf(decodeManifest(bytes, 'a dropped checkpoint'))],
      stillUsed: used,
      mayGoOn,
      environment,
    })
    if (gone.length === 0) return
    for (const { id, path } of head.discarding) if (gone.includes(id)) this.#needs.delete(path)
    await keeper.update((newest) => discarded(newest, gone))
  }

  /** undefined: nothing may be swept. */
  async #transactionsKept(): Promise<ReadonlySet<string> | undefined> {
    const { keeper, incarnation, quiet } = this.#options
    // What an attempt that was given up had pre-committed may stand in a snapshot that is fully acknowledged and not yet in HEAD.
    await quiet()
    await keeper.settled()
    const head = await keeper.readBegun()
    if (head.incarnation !== incarnation) return undefined
    const kept = new Set<string>()
    const point = restorePointOf(head)
    for (const ref of [point.kind === 'manifest' ? point.manifest : undefined, head.unconfirmed]) {
      if (ref === undefined) continue
      for (const name of (await this.#needsOf(ref)).transactions) kept.add(name)
    }
    return this.#closed ? undefined : kept
  }

  async #needsOf(ref: ManifestRef): Promise<Needs> {
    const known = this.#needs.get(ref.path)
    if (known !== undefined) return known
    const bytes = await storeOf(ref.path, this.#options).read(ref.path)
    // HEAD names it, so that it must be there: an answer that it is not stops the clean-up, it never frees anything.
    if (bytes === undefined) throw coordinatorError('MR-O18', `At ${ref.path}.`)
    const manifest = decodeManifest(bytes, ref.path)
    // Outside of the store nothing is the job's to delete: what such a manifest names needs no protection from it.
    const objects = isAbsoluteKey(ref.path) ? new Set<ObjectKey>() : objectsOf(manifest)
    const needs = { objects, transactions: transactionsIn(manifest) }
    this.#needs.set(ref.path, needs)
    return needs
  }

  #warn(error: unknown): void {
    this.#options.environment.log('warn', 'cleaning up failed; the next completed checkpoint tries again', {
      error: String(error),
    })
  }
}

/** Manifests that are there, and whose objects must stay. */
export function namedBy(head: Head): readonly ManifestRef[] {
  const required = requiredRestorePoint(head)
  return [
    ...head.retained,
    ...head.pins.map(({ manifest }) => manifest),
    ...(head.unconfirmed === undefined ? [] : [head.unconfirmed]),
    ...(required === undefined ? [] : [required]),
  ]
}

function transactionsIn(manifest: Manifest): ReadonlySet<string> {
  return new Set([...committablesOf(manifest).values()].flat().map(({ transaction }) => transaction))
}
