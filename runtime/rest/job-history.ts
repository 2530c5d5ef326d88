// What a running job has told of itself, the newest of it: an observer of the coordinator that remembers. It keeps figures, not snapshots.

import type { Clock } from '../base/environment.ts'
import type { CompletedSnapshot, CoordinatorObserver, FailedSnapshot } from '../coordinator/coordinator-contract.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import type { CompletedResource, FailedResource, JobResource } from './resources.ts'

/** Of each kind. One holds a line of figures for each subtask. */
export const snapshotsRemembered = 20

export type SnapshotFigures = Pick<CompletedResource, 'durationMs' | 'subtasks'> & { readonly manifest: ManifestRef }

export class JobHistory {
  readonly observer: CoordinatorObserver
  readonly #clock: Clock
  readonly #completed: SnapshotFigures[] = []
  readonly #failed: FailedResource[] = []
  #sinceMs: number | undefined
  #hasRun = false
  #lastFailure: JobResource['lastFailure'] = null

  constructor(clock: Clock) {
    this.#clock = clock
    this.observer = {
      began: () => {
        this.#sinceMs = clock.wallMs()
      },
      running: () => {
        this.#hasRun = true
      },
      checkpointCompleted: (completed) => remember(this.#completed, figuresOf(completed)),
      checkpointFailed: (failed) => remember(this.#failed, this.#failure(failed)),
      restarting: ({ message, inMs, tasks }) => {
        this.#lastFailure = { atMs: clock.wallMs(), message, subtasks: tasks, restartInMs: inMs }
      },
    }
  }

  /** When the job began here, ms since the epoch; undefined: it has not. */
  get sinceMs(): number | undefined {
    return this.#sinceMs
  }

  /** Whether all subtasks have run at the same time once. */
  get hasRun(): boolean {
    return this.#hasRun
  }

  get lastFailure(): JobResource['lastFailure'] {
    return this.#lastFailure
  }

  /** Oldest first. */
  get completed(): readonly SnapshotFigures[] {
    return this.#completed
  }

  /** Oldest first. */
  get failed(): readonly FailedResource[] {
    return this.#failed
  }

  #failure({ id, reason, detail }: FailedSnapshot): FailedResource {
    return { id, atMs: this.#clock.wallMs(), reason, detail }
  }
}

function figuresOf({ manifest, collected, durationMs }: CompletedSnapshot): SnapshotFigures {
  const subtasks = [...collected.subtasks.values()].map(({ task, snapshot }) => {
    const { finished, bytes, syncMs, asyncMs, alignmentMs } = snapshot
    return { vertex: task.vertex, subtask: task.subtask, finished, bytes, syncMs, asyncMs, alignmentMs }
  })
  return { manifest, durationMs, subtasks }
}

function remember<T>(list: T[], entry: T): void {
  list.push(entry)
  if (list.length > snapshotsRemembered) list.shift()
}
