// One snapshot on its way: from its trigger until it completes or is aborted.

import { invariant } from '../base/errors.ts'
import { taskKey } from '../base/ids.ts'
import type { CheckpointId, RequestId, TaskId, TaskKey } from '../base/ids.ts'
import type { Halt, SnapshotKind } from '../record/element.ts'
import type { SubtaskSnapshot } from './contract.ts'
import type { CollectedSnapshot } from './core-contract.ts'
import type { Subtask } from './subtasks.ts'

/**
 * collecting: waits for acknowledgements; may expire and be aborted. writing (the manifest, before it copies of final states) and
 * swapping (HEAD): fully acknowledged; besides while it is copied only the outcome of the store ends it, since an unclear swap may have
 * landed (rule 4).
 */
export type PendingPhase = 'collecting' | 'writing' | 'swapping'

export interface PendingOptions {
  readonly id: CheckpointId
  readonly kind: SnapshotKind
  readonly request: RequestId | undefined
  readonly halt?: Halt | undefined
  readonly triggeredAtMs: number
  readonly deadlineMs: number
}

export class PendingSnapshot {
  readonly id: CheckpointId
  readonly kind: SnapshotKind
  readonly request: RequestId | undefined
  readonly halt?: Halt | undefined
  readonly triggeredAtMs: number
  deadlineMs: number
  phase: PendingPhase = 'collecting'
  /** What it needs of other snapshots is being copied. */
  isCopying = false
  /** As the graph orders them, whatever the order of their acknowledgements. */
  readonly #keys: TaskKey[] = []
  readonly #missing = new Set<TaskKey>()
  readonly #triggered = new Set<TaskKey>()
  readonly #acknowledged = new Map<TaskKey, { readonly task: TaskId; readonly snapshot: SubtaskSnapshot }>()

  /** Finished subtasks are acknowledged at once with their final state (rule 19). */
  constructor(options: PendingOptions, subtasks: Iterable<Subtask>) {
    this.id = options.id
    this.kind = options.kind
    this.request = options.request
    this.halt = options.halt
    this.triggeredAtMs = options.triggeredAtMs
    this.deadlineMs = options.deadlineMs
    for (const { task, key, state } of subtasks) {
      this.#keys.push(key)
      if (state.status === 'finished') this.#acknowledged.set(key, { task, snapshot: state.snapshot })
      else this.#missing.add(key)
    }
    invariant(this.#missing.size > 0, `snapshot ${this.id} has nobody to trigger`)
  }

  /** It waits for what has no bound of its own, and nothing that could complete it is under way. */
  get mayBeAborted(): boolean {
    return this.phase === 'collecting' || this.isCopying
  }

  get missing(): ReadonlySet<TaskKey> {
    return this.#missing
  }

  isMissing(key: TaskKey): boolean {
    return this.#missing.has(key)
  }

  /** Remembers who is triggered; returns those that neither were before nor have acknowledged. */
  trigger(tasks: readonly TaskId[]): TaskId[] {
    return tasks.filter((task) => {
      const key = taskKey(task)
      if (this.#triggered.has(key) || !this.#missing.has(key)) return false
      this.#triggered.add(key)
      return true
    })
  }

  acknowledge(subtask: Subtask, snapshot: SubtaskSnapshot): void {
    invariant(this.#missing.delete(subtask.key), `${subtask.key} acknowledges ${this.id} twice`)
    this.#acknowledged.set(subtask.key, { task: subtask.task, snapshot })
  }

  uses(snapshot: SubtaskSnapshot): boolean {
    for (const acknowledged of this.#acknowledged.values()) if (acknowledged.snapshot === snapshot) return true
    return false
  }

  collected(): CollectedSnapshot {
    const { id, kind, triggeredAtMs, request, halt } = this
    const keys = this.#keys.filter((key) => this.#acknowledged.has(key))
    const subtasks = new Map(keys.map((key) => [key, this.#acknowledged.get(key)!]))
    return { id, kind, triggeredAtMs, request, halt, subtasks }
  }
}
