// What a running job has told of itself, the newest of it: an observer of the coordinator that remembers. It keeps figures, not snapshots.
// history-keeper.ts carries it over the loss of the coordinator.

import type { Clock } from '../base/environment.ts'
import { taskKey } from '../base/ids.ts'
import type { Incarnation, Start } from '../base/ids.ts'
import type {
  CompletedSnapshot,
  CoordinatorObserver,
  JobOutcome,
  ReportedFailure,
  ReportedRestart,
} from '../coordinator/coordinator-contract.ts'
import type { ManifestRef } from '../storage/head-contract.ts'
import type { ExceptionResource, RestartResource } from './operating-resources.ts'
import type { CompletedResource, FailedResource, JobResource } from './resources.ts'

/** Of each kind. One holds a line of figures for each subtask. */
export const snapshotsRemembered = 20
/** Lines of figures in all; of older snapshots of a large job only the sums stay. */
export const subtaskLinesMax = 4_000
export const failuresRemembered = 100
/** Characters of a message, which may hold anything. */
export const messageLengthMax = 2_000
const failedNamedMax = 16

export type SnapshotFigures = Pick<CompletedResource, 'durationMs' | 'subtasks'> & { readonly manifest: ManifestRef }

/** What outlives a coordinator; each oldest first. */
export interface Remembered {
  readonly completed: readonly SnapshotFigures[]
  readonly failed: readonly FailedResource[]
  readonly exceptions: readonly ExceptionResource[]
  readonly restarts: readonly RestartResource[]
}

export class JobHistory {
  readonly observer: CoordinatorObserver
  /** Called after each change of what is remembered. */
  onChange: () => void = () => undefined
  readonly #clock: Clock
  #remembered: Remembered = { completed: [], failed: [], exceptions: [], restarts: [] }
  #began: { readonly atMs: number; readonly nowMs: number; readonly start: Start; readonly by: Incarnation } | undefined
  #hasRun = false
  #outcome: JobOutcome | undefined
  #restartsHere = 0
  /** Failures of this process after which not all subtasks have run yet, by the monotonic clock. */
  readonly #open = new Map<RestartResource, number>()

  constructor(clock: Clock) {
    this.#clock = clock
    this.observer = {
      began: ({ start, incarnation }) => {
        this.#began = { atMs: clock.wallMs(), nowMs: clock.nowMs(), start, by: incarnation }
      },
      running: () => {
        this.#hasRun = true
        this.#runsAgain()
      },
      checkpointCompleted: (completed) => this.#add({ completed: [figuresOf(completed)] }),
      checkpointFailed: ({ id, reason, detail }) =>
        this.#add({ failed: [{ id, atMs: clock.wallMs(), reason, detail: shortened(detail) }] }),
      restarting: (failure) => this.#restarting(failure),
      gaveUp: (failure) => this.#add({ exceptions: [this.#exception(failure, undefined)] }),
      ended: (outcome) => {
        this.#outcome = outcome
      },
    }
  }

  /** When the job began here, ms since the epoch; undefined: it has not. */
  get sinceMs(): number | undefined {
    return this.#began?.atMs
  }

  /** The same by the monotonic clock. */
  get beganMs(): number | undefined {
    return this.#began?.nowMs
  }

  get start(): Start | undefined {
    return this.#began?.start
  }

  get incarnation(): Incarnation | undefined {
    return this.#began?.by
  }

  /** Whether all subtasks have run at the same time once. */
  get hasRun(): boolean {
    return this.#hasRun
  }

  /** undefined: it has not ended. */
  get outcome(): JobOutcome | undefined {
    return this.#outcome
  }

  /** Of this process. */
  get restartsHere(): number {
    return this.#restartsHere
  }

  /** Of this start. */
  get lastFailure(): JobResource['lastFailure'] {
    const last = this.#remembered.exceptions.findLast(
      ({ start, restartInMs }) => restartInMs !== null && (start === null || start === this.start),
    )
    if (last === undefined) return null
    const { atMs, message, restarted, restartInMs } = last
    return { atMs, message, subtasks: restarted, restartInMs: restartInMs! }
  }

  get remembered(): Remembered {
    return this.#remembered
  }

  /** What coordinators before this one remembered; it lies before all that is known here. */
  putBefore(older: Remembered): void {
    this.#remembered = joined(older, this.#remembered)
  }

  #restarting(failure: ReportedRestart): void {
    const exception = this.#exception(failure, failure)
    const { atMs, incarnation, code, restarted } = exception
    const restart = { atMs, incarnation, subtasks: restarted, code, runningAfterMs: null }
    this.#restartsHere++
    this.#open.set(restart, this.#clock.nowMs())
    this.#add({ exceptions: [exception], restarts: [restart] })
  }

  #runsAgain(): void {
    if (this.#open.size === 0) return
    const nowMs = this.#clock.nowMs()
    const restarts = this.#remembered.restarts.map((restart) => {
      const sinceMs = this.#open.get(restart)
      return sinceMs === undefined ? restart : { ...restart, runningAfterMs: nowMs - sinceMs }
    })
    this.#open.clear()
    this.#remembered = { ...this.#remembered, restarts }
    this.onChange()
  }

  #exception(failure: ReportedFailure, restart: ReportedRestart | undefined): ExceptionResource {
    const { message, failed, workers } = failure
    return {
      atMs: this.#clock.wallMs(),
      start: this.start ?? null,
      incarnation: this.incarnation ?? null,
      message: shortened(message),
      code: failure.code ?? /^MR-[A-Z]\d\d/.exec(message)?.[0] ?? null,
      failed: failed === undefined ? null : failed.slice(0, failedNamedMax).map(taskKey),
      workers: workers === undefined ? null : workers.slice(0, failedNamedMax),
      restarted: restart?.tasks ?? 0,
      restartInMs: restart?.inMs ?? null,
    }
  }

  #add(more: Partial<Remembered>): void {
    this.#remembered = joined(this.#remembered, more)
    this.onChange()
  }
}

function joined(older: Remembered, newer: Partial<Remembered>): Remembered {
  const { completed = [], failed = [], exceptions = [], restarts = [] } = newer
  return {
    completed: withoutOldLines(last([...older.completed, ...completed], snapshotsRemembered)),
    failed: last([...older.failed, ...failed], snapshotsRemembered),
    exceptions: last([...older.exceptions, ...exceptions], failuresRemembered),
    restarts: last([...older.restarts, ...restarts], failuresRemembered),
  }
}

function figuresOf({ manifest, collected, durationMs }: CompletedSnapshot): SnapshotFigures {
  const subtasks = [...collected.subtasks.values()].map(({ task, snapshot }) => {
    const { finished, bytes, syncMs, asyncMs, alignmentMs, startDelayMs = null } = snapshot
    return { vertex: task.vertex, subtask: task.subtask, finished, bytes, syncMs, asyncMs, alignmentMs, startDelayMs }
  })
  return { manifest, durationMs, subtasks }
}

/** The newest keeps its lines, however many. */
function withoutOldLines(completed: readonly SnapshotFigures[]): readonly SnapshotFigures[] {
  let lines = 0
  return completed
    .toReversed()
    .map((figures, age) => {
      lines += figures.subtasks?.length ?? 0
      return age === 0 || lines <= subtaskLinesMax ? figures : { ...figures, subtasks: null }
    })
    .toReversed()
}

function shortened(text: string): string {
  return text.length <= messageLengthMax ? text : `${text.slice(0, messageLengthMax - 1)}…`
}

function last<T>(list: readonly T[], count: number): readonly T[] {
  return list.slice(-count)
}
