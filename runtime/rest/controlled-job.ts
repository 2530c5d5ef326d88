// The running job as REST sees it: what it may be asked, and what it tells of itself. A JobCoordinator is one.

import type { Attempt, RequestId, SlotId, TaskId, TaskKey } from '../base/ids.ts'
import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import type { SavepointAnswer } from '../coordinator/coordinator-contract.ts'
import type { TaskStatus } from '../coordinator/execution.ts'
import type { WorkersView } from '../distributed/contract.ts'
import type { JobGraph } from '../job/contract.ts'

export interface ControlledJob {
  /** Asked again under the same name, it is answered as the first time; rejects when HEAD cannot be written. */
  savepoint(request: RequestId): Promise<SavepointAnswer>
  stop(options: { readonly drain: boolean; readonly request: RequestId }): Promise<SavepointAnswer>
  /** Stops at a checkpoint and goes on at another size, in the same start (rule 25). Repeated like a savepoint. */
  rescale(parallelism: number, request: RequestId): Promise<SavepointAnswer>
  /** Closes HEAD and ends the tasks (rule 5). */
  suspend(): void
  cancel(): void
  checkpoint(): void
  /** As it runs, which a rescale changes; undefined: as it was built. */
  readonly graph?: JobGraph | undefined
  /** The size of HEAD's last rescale that `graph` was built for. HEAD may be ahead: it is swapped before the run at the new size begins. */
  readonly rescaledTo: number | undefined
  /** undefined: it has not begun. */
  readonly execution: ControlledExecution | undefined
  readonly checkpoints: Pick<CheckpointCoordinator, 'pending' | 'counters' | 'lastCompleted'> | undefined
  /** undefined: a local job, whose slots are threads of its own. */
  readonly workers?: WorkersView | undefined
}

export interface ControlledExecution {
  /** No subtask is being deployed. */
  readonly allRunning: boolean
  readonly tasks: ReadonlyMap<TaskKey, ControlledTask>
  /** That runs it, or will. */
  slotOf(task: TaskId): SlotId
}

export interface ControlledTask {
  readonly task: TaskId
  readonly attempt: Attempt
  readonly status: TaskStatus
  /** undefined: it has not reported yet. */
  readonly report: { readonly metrics: Readonly<Record<string, number>> } | undefined
}
