// Carries out what the pure checkpoint coordinator decides: triggers, manifests, the swap of HEAD, permits, clean-up.
//
// The order that keeps results exact: all acknowledged → manifest durable → swap of HEAD won → sinks told to commit.

import { within } from '../base/deadline.ts'
import type { Environment, Timer } from '../base/environment.ts'
import { InvariantError, unreachable } from '../base/errors.ts'
import type { CheckpointId, Incarnation, JobId, RequestId, Start, TaskKey } from '../base/ids.ts'
import type { SnapshotReader, SnapshotWriters, SubtaskSnapshot } from '../checkpoint/contract.ts'
import type { CheckpointAction, CheckpointEvent, CollectedSnapshot } from '../checkpoint/core-contract.ts'
import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import { encodeManifest, fromCollected, objectsOfSnapshot } from '../checkpoint/manifest.ts'
import type { EnumeratorSnapshot } from '../checkpoint/manifest.ts'
import type { SnapshotKind } from '../record/element.ts'
import type { JobGraph } from '../job/contract.ts'
import type { ObjectKey, ObjectStore, SavepointStore } from '../storage/contract.ts'
import { completeCheckpoint, completeSavepoint, rescale, stop } from '../storage/head.ts'
import type { Head, ManifestRef } from '../storage/head-contract.ts'
import type { HeadKeeper, Overtaken } from '../storage/head-keeper.ts'
import { manifestKey } from '../storage/paths.ts'
import { storeOfKind } from '../storage/savepoint-place.ts'
import type { ReservedIds } from './checkpoint-ids.ts'
import { idBlockSize } from './checkpoint-ids.ts'
import { holdsCommittables } from './commits.ts'
import type { Enumerators } from './enumerators.ts'
import { SelfContained } from './self-contained.ts'
import type { CompletedSnapshot, FailedSnapshot } from './coordinator-contract.ts'
import { coordinatorError } from './errors.ts'
import type { Execution } from './execution.ts'

/** Writing one manifest; then the checkpoint fails. One that appears later is named by nobody. */
export const manifestDeadlineMs = 120_000

export interface CheckpointingOptions {
  readonly core: CheckpointCoordinator
  readonly ids: ReservedIds
  readonly keeper: HeadKeeper
  readonly store: ObjectStore
  /** As in JobCoordinatorOptions. */
  readonly savepoints?: SavepointStore | undefined
  readonly writers: SnapshotWriters
  readonly reader: SnapshotReader
  readonly environment: Environment
  readonly graph: JobGraph
  readonly job: JobId
  readonly start: Start
  readonly incarnation: Incarnation
  readonly execution: Execution
  readonly enumerators: Enumerators
  readonly onCompleted: (completed: CompletedSnapshot, head: Head) => void
  readonly onOrphan: (id: CheckpointId, snapshot: SubtaskSnapshot) => void
  readonly onAborted: (failed: FailedSnapshot) => void
  /** Copies may have been written since it was aborted. */
  readonly onLateCopies: (id: CheckpointId, kind: SnapshotKind) => void
  /** A completed one is told by onCompleted. */
  readonly onRequestFailed: (request: RequestId, detail: string) => void
  /** Subtasks have halted for a savepoint that will not be. */
  readonly onHaltFailed: (reason: string) => void
  /** After events were handled. */
  readonly onStepped: () => void
  readonly onFailJob: (reason: string) => void
  /** Nothing more may be done here. */
  readonly onOvertaken: (answer: Overtaken) => void
  /** HEAD could not be changed and stays unclear, or an invariant is broken: the coordinator cannot go on. */
  readonly onBroken: (error: unknown) => void
}

export class Checkpointing {
  readonly #options: CheckpointingOptions
  readonly #events: CheckpointEvent[] = []
  readonly #enumeratorStates = new Map<CheckpointId, Promise<ReadonlyMap<string, EnumeratorSnapshot>>>()
  /** Written, and on their way to HEAD. */
  readonly #manifests = new Map<CheckpointId, { readonly ref: ManifestRef; readonly contained: CollectedSnapshot }>()
  readonly #selfContained: SelfContained
  #copying: { readonly id: CheckpointId; readonly stop: AbortController } | undefined
  readonly #writing = new Set<Promise<void>>()
  readonly #swapping = new Set<Promise<void>>()
  #newestTriggered: CheckpointId | undefined
  #stepping = false
  #closed = false
  #endWaiting: () => void = () => undefined
  readonly #closing = new Promise<void>((resolve) => {
    this.#endWaiting = resolve
  })
  #timer: Timer | undefined
  #reserving = false
  /** Final states that the restore point holds for subtasks of wholly finished vertices, which run nothing now. */
  #finals: ReadonlyMap<TaskKey, SubtaskSnapshot> = new Map()

  constructor(options: CheckpointingOptions) {
    this.#options = options
    this.#selfContained = new SelfContained(options)
  }

  setFinalsOfRestorePoint(finals: ReadonlyMap<TaskKey, SubtaskSnapshot>): void {
    this.#finals = finals
  }

  finalOf(key: TaskKey): SubtaskSnapshot | undefined {
    return this.#finals.get(key)
  }

  /** Feeds the core. Events that arise while actions are carried out wait for their turn, so that actions keep their order. */
  handle(event: CheckpointEvent): void {
    if (this.#closed) return
    this.#events.push(event)
    if (this.#stepping) return
    this.#stepping = true
    try {
      for (let next = this.#events.shift(); next !== undefined; next = this.#events.shift()) {
        for (const action of this.#options.core.step(next, this.#options.environment.clock.nowMs())) {
          if (!this.#closed) this.#carryOut(action)
        }
      }
    } catch (error) {
      // Who called is a slot's message or a timer: neither could report it.
      this.close()
      return this.#options.onBroken(error)
    } finally {
      this.#stepping = false
    }
    void this.#reserveIds()
    this.#options.onStepped()
  }

  /**
   * Resolves when no fully acknowledged snapshot is on its way to HEAD. Every restore waits for it (rules 4, 21): else it would begin
   * before a checkpoint whose permit comes later, and the records between would be committed twice. One that is still copied is given up
   * when subtasks are lost, so that no restart waits for it. After close() a manifest that is being written leads to no swap any more, and
   * is not waited for.
   */
  async quiet(): Promise<void> {
    while (this.#swapping.size > 0 || (!this.#closed && this.#writing.size > 0)) {
      await Promise.race([Promise.all([...this.#swapping, ...this.#writing]), this.#closing])
      if (this.#closed) await Promise.all(this.#swapping)
    }
  }

  /** The newest id that this coordinator gave out. */
  get newestTriggered(): CheckpointId | undefined {
    return this.#newestTriggered
  }

  close(): void {
    this.#closed = true
    this.#copying?.stop.abort()
    this.#endWaiting()
    this.#timer?.cancel()
    this.#events.length = 0
  }

  #carryOut(action: CheckpointAction): void {
    const { execution, environment } = this.#options
    switch (action.type) {
      case 'trigger':
        return this.#trigger(action)
      case 'triggerMore':
        return this.#send(action)
      case 'abort':
        environment.log('warn', 'a snapshot was aborted', {
          id: action.id,
          reason: action.reason,
          detail: action.detail,
        })
        this.#enumeratorStates.delete(action.id)
        if (this.#copying?.id === action.id) this.#copying.stop.abort()
        this.#options.onAborted(action)
        return execution.broadcast({ type: 'abort', id: action.id })
      case 'writeManifest':
        return track(this.#writing, this.#writeManifest(action.snapshot))
      case 'swap':
        return track(this.#swapping, this.#swap(action.snapshot))
      case 'notifyComplete':
        environment.failpoints.hit('coordinator.complete.before')
        execution.broadcast({ type: 'complete', id: action.id })
        return environment.failpoints.hit('coordinator.complete.after')
      case 'savepointAnswered':
        if (action.outcome === 'failed') this.#options.onRequestFailed(action.request, action.detail)
        return undefined
      case 'restartHalted':
        return this.#options.onHaltFailed(`snapshot ${action.id}, to stop with, did not complete (${action.detail})`)
      case 'discard':
        return this.#options.onOrphan(action.id, action.snapshot)
      case 'wakeIn':
        this.#timer?.cancel()
        this.#timer = environment.clock.timer(action.delayMs, () => this.handle({ type: 'tick' }))
        return undefined
      case 'failJob':
        return this.#options.onFailJob(action.reason)
      default:
        return unreachable(action)
    }
  }

  /** The enumerators' snapshot and the triggers in one turn (rule 20). */
  #trigger(action: Extract<CheckpointAction, { type: 'trigger' }>): void {
    const { failpoints } = this.#options.environment
    failpoints.hit('coordinator.trigger.before')
    this.#newestTriggered = action.id
    try {
      const states = this.#options.enumerators.snapshot(action.id)
      const written = this.#writeEnumerators(action, states)
      // Its failure is met where the manifest waits for it.
      written.catch(() => undefined)
      this.#enumeratorStates.set(action.id, written)
    } catch (error) {
      return this.handle({ type: 'triggerFailed', id: action.id, reason: String(error) })
    }
    this.#send(action)
    failpoints.hit('coordinator.trigger.after')
  }

  #send({ id, kind, halt, tasks }: Extract<CheckpointAction, { type: 'trigger' | 'triggerMore' }>): void {
    const triggeredAtMs = this.#options.environment.clock.wallMs()
    const trigger = { type: 'trigger', id, kind, triggeredAtMs, ...(halt !== undefined && { halt }) } as const
    for (const task of tasks) this.#options.execution.send(task, trigger)
  }

  async #writeEnumerators(
    { id, kind }: { readonly id: CheckpointId; readonly kind: SnapshotKind },
    states: ReturnType<Enumerators['snapshot']>,
  ): Promise<ReadonlyMap<string, EnumeratorSnapshot>> {
    const handles = await Promise.all(
      [...states].map(
        async ([uid, { codec, bytes }]) =>
          [uid, { codec, handle: await this.#options.writers.ofKind(kind).write(id, bytes) }] as const,
      ),
    )
    return new Map(handles)
  }

  async #writeManifest(collected: CollectedSnapshot): Promise<void> {
    const { environment, graph, job, start, incarnation } = this.#options
    const { id, kind } = collected
    try {
      environment.failpoints.hit('coordinator.manifest.before')
      const contained = await this.#contained(collected)
      if (contained === undefined) return
      const enumerators = await this.#enumeratorStates.get(id)
      this.#enumeratorStates.delete(id)
      const manifest = fromCollected(contained, {
        job,
        start,
        incarnation,
        graph,
        enumerators: enumerators ?? new Map(),
      })
      const bytes = encodeManifest(manifest)
      const { objects, nameOf } = storeOfKind(kind, this.#options)
      const key = manifestKey(id, kind)
      const path = nameOf(key)
      const late = () => coordinatorError('MR-O19', `${path}: no answer within ${manifestDeadlineMs} ms.`)
      const creating = within(environment.clock, manifestDeadlineMs, objects.create(key, bytes), late)
      const unwritten = kind === 'savepoint' && environment.planted.has('savepoint-unwritten')
      // The planted fault waits for nothing, so that a failure has only the log to be told in.
      if (unwritten)
        creating.catch((error) => environment.log('warn', `${path} was not written`, { error: String(error) }))
      else if ((await creating) === 'exists')
        throw coordinatorError('MR-O19', `${path} exists already: its id was used before.`)
      const ref = {
        id,
        kind,
        path,
        start,
        completedAtMs: environment.clock.wallMs(),
        bytes: bytesOf(collected) + bytes.length,
        ...(collected.halt === 'drain' && { drained: true }),
      }
      this.#manifests.set(id, { ref, contained })
      environment.failpoints.hit('coordinator.manifest.after')
      this.handle({ type: 'manifestWritten', id })
    } catch (error) {
      this.#failManifest(id, error)
    }
  }

  #failManifest(id: CheckpointId, error: unknown): void {
    // A manifest that contradicts itself would do so the next time as well, and the job go on unprotected.
    if (error instanceof InvariantError) return this.#options.onBroken(error)
    this.handle({ type: 'manifestFailed', id, reason: String(error) })
  }

  /** undefined: the core has given it up meanwhile or has been told that it failed, or all has ended here. */
  async #contained(collected: CollectedSnapshot): Promise<CollectedSnapshot | undefined> {
    const { id, kind } = collected
    const needed = this.#selfContained.needed(collected)
    // Nearly always: what subtasks write goes where it belongs.
    if (needed.missing.size === 0) return needed.snapshot
    const stop = new AbortController()
    const { signal } = stop
    this.#copying = { id, stop }
    this.handle({ type: 'copyBegun', id })
    try {
      // A checkpoint that is given up leaves what it has copied to the next one. A savepoint cannot: each lies in a folder of its own.
      const onPiece = (): void => {
        if (kind === 'savepoint' && !signal.aborted) this.handle({ type: 'copyProgressed', id })
      }
      const contained = await this.#selfContained.copied(needed, { signal, onPiece })
      if (signal.aborted) return undefined
      this.handle({ type: 'copied', id })
      return contained
    } catch (error) {
      void this.#selfContained.settled().then(() => this.#options.onLateCopies(id, kind))
      // In this turn: until the core knows, it may give up what is copied.
      if (!signal.aborted) this.#failManifest(id, error)
      return undefined
    } finally {
      if (this.#copying?.id === id) this.#copying = undefined
    }
  }

  async #swap(collected: CollectedSnapshot): Promise<void> {
    const { environment, keeper, graph, onOvertaken } = this.#options
    const { ref: manifest, contained } = this.#manifests.get(collected.id)!
    this.#manifests.delete(collected.id)
    try {
      environment.failpoints.hit('coordinator.swap.before')
      const commitsPending = [...collected.subtasks.values()].some(({ snapshot }) =>
        holdsCommittables(snapshot.operators),
      )
      const answer = await keeper.update((head) => {
        if (collected.kind === 'checkpoint') {
          const completed = { manifest, retainedMax: graph.settings.retained, commitsPending }
          const asked = head.savepointRequests.find(({ request }) => request === collected.request)
          return asked?.parallelism === undefined
            ? completeCheckpoint(head, completed)
            : rescale(head, { ...completed, request: asked.request, parallelism: asked.parallelism })
        }
        const request = collected.request!
        return collected.halt === undefined
          ? completeSavepoint(head, { request, manifest })
          : stop(head, { request, manifest, commitsPending })
      })
      environment.failpoints.hit('coordinator.swap.after')
      if (answer.outcome !== 'won') {
        this.handle({ type: 'fenced' })
        return onOvertaken(answer)
      }
      const durationMs = environment.clock.nowMs() - collected.triggeredAtMs
      // What is permitted now must be known before the core goes on: it may find that all is done, and this not confirmed.
      this.#selfContained.completed(collected)
      this.#options.onCompleted({ manifest, collected: contained, durationMs }, answer.head)
      this.handle({ type: 'swapWon', id: collected.id })
    } catch (error) {
      // Unclear and not settled within its deadline: nothing may be restored, aborted or deleted by this coordinator (rule 4).
      this.#options.onBroken(error)
    }
  }

  async #reserveIds(): Promise<void> {
    const { ids, keeper, onOvertaken, onBroken } = this.#options
    if (this.#reserving || this.#closed || !ids.needsBlock) return
    this.#reserving = true
    try {
      const answer = await keeper.reserveIds(idBlockSize)
      if (answer.outcome === 'won') ids.add(answer)
      else onOvertaken(answer)
    } catch (error) {
      onBroken(error)
    } finally {
      this.#reserving = false
    }
  }
}

/** `step` never rejects. */
function track(steps: Set<Promise<void>>, step: Promise<void>): void {
  steps.add(step)
  void step.finally(() => steps.delete(step))
}

export function objectsOfCollected(collected: CollectedSnapshot): ReadonlySet<ObjectKey> {
  return new Set([...collected.subtasks.values()].flatMap(({ snapshot }) => objectsOfSnapshot(snapshot)))
}

function bytesOf(collected: CollectedSnapshot): number {
  let bytes = 0
  for (const { snapshot } of collected.subtasks.values()) bytes += snapshot.bytes
  return bytes
}
