// The running job as REST sees it: what it may be asked, and what it tells of itself. A JobCoordinator is one.

import type { Attempt, RequestId, TaskId, TaskKey } from '../base/ids.ts'
import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import type { SavepointAnswer } from '../coordinator/coordinator-contract.ts'
import type { TaskStatus } from '../coordinator/execution.ts'

export interface ControlledJob {
  /** Asked again under the same name, it is answered as the first time; rejects when HEAD cannot be written. */
  savepoint(request: RequestId): Promise<SavepointAnswer>
  stop(options: { readonly drain: boolean; readonly request: RequestId }): Promise<SavepointAnswer>
  cancel(): void
  checkpoint(): void
  /** undefined: it has not begun. */
  readonly execution: ControlledExecution | undefined
  readonly checkpoints: Pick<CheckpointCoordinator, 'pending' | 'counters' | 'lastCompleted'> | undefined
}

export interface ControlledExecution {
  /** No subtask is being deployed. */
  readonly allRunning: boolean
  readonly tasks: ReadonlyMap<TaskKey, ControlledTask>
}

export interface ControlledTask {
  readonly task: TaskId
  readonly attempt: Attempt
  readonly status: TaskStatus
  /** undefined: it has not reported yet. */
  readonly report: { readonly metrics: Readonly<Record<string, number>> } | undefined
}
