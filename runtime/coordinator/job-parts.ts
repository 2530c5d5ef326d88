// Puts together what one incarnation of a coordinator consists of, and takes it down again.

import { checkpointId } from '../base/ids.ts'
import type { CheckpointId, Incarnation, TaskKey, VertexId } from '../base/ids.ts'
import { createCheckpointCoordinator } from '../checkpoint/coordinator.ts'
import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import { topologyOf } from '../checkpoint/topology.ts'
import type { FromSlot } from '../control/contract.ts'
import { serializeError } from '../control/serialized-error.ts'
import { hasCompleted } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper, Overtaken } from '../storage/head-keeper.ts'
import { ReservedIds } from './checkpoint-ids.ts'
import { Checkpointing } from './checkpointing.ts'
import type { CompletedSnapshot } from './coordinator-contract.ts'
import { Cleanup } from './cleanup.ts'
import { Commits } from './commits.ts'
import type { JobCoordinatorOptions } from './coordinator-contract.ts'
import { Enumerators } from './enumerators.ts'
import { coordinatorError } from './errors.ts'
import { Execution } from './execution.ts'
import type { Failure } from './execution.ts'
import { HeadWatch } from './head-watch.ts'
import type { Interruptions } from './interruptions.ts'
import { placeTasks } from './placement.ts'
import type { Placement } from './placement.ts'
import { refuseRescale } from './rescale-refusal.ts'
import { Savepoints } from './savepoints.ts'
import type { WaitingForSavepoints } from './savepoints.ts'

/** A savepoint may take longer than a checkpoint; nothing else waits for it but the next trigger. */
const savepointTimeoutMs = 600_000

export interface IdBlock {
  readonly from: number
  readonly to: number
}

export interface Parts {
  readonly incarnation: Incarnation
  readonly keeper: HeadKeeper
  readonly placement: Placement
  readonly execution: Execution
  readonly enumerators: Enumerators
  readonly commits: Commits
  readonly core: CheckpointCoordinator
  readonly checkpointing: Checkpointing
  readonly savepoints: Savepoints
  readonly cleanup: Cleanup
  readonly headWatch: HeadWatch
  readonly restartsBefore: number
  readonly newestId: () => CheckpointId
  /** The restore point of the last restart; undefined: empty. */
  restoredFrom: CheckpointId | undefined
  /** That of each subtask's current attempt. */
  readonly restoredFromOf: Map<TaskKey, CheckpointId | undefined>
  runningSinceMs: number | undefined
}

/** What the parts report to whoever runs the job. */
export interface PartsHooks {
  readonly onMessage: (message: FromSlot) => void
  /** `head`: as the completing swap wrote it. */
  readonly onCompleted: (completed: CompletedSnapshot, head: Head) => void
  /** Something changed that may have been the last thing to wait for. */
  readonly onProgress: () => void
}

export interface AssembleOptions {
  readonly options: JobCoordinatorOptions
  readonly keeper: HeadKeeper
  readonly head: Head
  readonly block: IdBlock
  readonly interruptions: Interruptions
  readonly waiting: WaitingForSavepoints
  readonly hooks: PartsHooks
}

export function assembleParts({ options, keeper, head, block, interruptions, waiting, hooks }: AssembleOptions): Parts {
  const { graph, job, environment, files, store, savepoints: place, slots, snapshotWriters, snapshotReader } = options
  const { settings } = graph
  const ids = new ReservedIds()
  ids.add(block)
  const onOvertaken = (answer: Overtaken): void => interruptions.push({ type: 'overtaken', answer })
  const onBroken = (error: unknown): void => interruptions.push({ type: 'broken', error })
  const placement = placeTasks(graph)
  const execution: Execution = new Execution({
    graph,
    job,
    incarnation: head.incarnation,
    rescaledTo: head.rescaledTo,
    environment,
    placement,
    slots,
    onMessage: hooks.onMessage,
    onFailure: (failure) => interruptions.push({ type: 'failure', failure }),
  })
  const enumerators = new Enumerators({
    graph,
    environment,
    files,
    send: (task, message) => execution.send(task, message),
    fail: (vertex, error) =>
      interruptions.push({ type: 'failure', failure: enumeratorFailure(vertex, error, execution) }),
  })
  const commits = new Commits({
    graph,
    job,
    environment,
    files,
    keeper,
    onAllConfirmed: hooks.onProgress,
    onOvertaken,
    onBroken,
  })
  const core = createCheckpointCoordinator(
    topologyOf(graph),
    {
      intervalMs: settings.checkpointIntervalMs,
      firstAtOnce: !hasCompleted(head),
      timeoutMs: settings.checkpointTimeoutMs,
      minPauseMs: settings.minPauseMs,
      savepointTimeoutMs,
      tolerableFailures: settings.tolerableFailures,
    },
    ids,
    environment.planted,
    (request) => savepoints.refusalOf(request),
  )
  const quiet = (): Promise<void> => checkpointing.quiet()
  const cleanup = new Cleanup({
    store,
    savepoints: place,
    foreign: options.foreign,
    keeper,
    environment,
    incarnation: head.incarnation,
    firstId: block.from,
    commits,
    execution,
    quiet,
    onBroken,
  })
  const checkpointing: Checkpointing = new Checkpointing({
    core,
    ids,
    keeper,
    store,
    savepoints: place,
    writers: snapshotWriters,
    reader: snapshotReader,
    environment,
    graph,
    job,
    start: head.start,
    incarnation: head.incarnation,
    execution,
    enumerators,
    onCompleted: hooks.onCompleted,
    onStepped: hooks.onProgress,
    onOrphan: (id, snapshot) => cleanup.orphans.add(id, snapshot),
    onAborted: (failed) => {
      cleanup.orphans.aborted(failed.id, failed.kind)
      options.observer?.checkpointFailed?.(failed)
    },
    onLateCopies: (id, kind) => cleanup.orphans.aborted(id, kind),
    onRequestFailed: (request, detail) => void savepoints.failed(request, detail),
    onHaltFailed: (reason) => interruptions.push({ type: 'failure', failure: haltFailure(reason, placement) }),
    onFailJob: (reason) => interruptions.push({ type: 'failure', failure: checkpointsFailure(reason, placement) }),
    onOvertaken,
    onBroken,
  })
  const savepoints: Savepoints = new Savepoints({
    waiting,
    keeper,
    log: options.environment.log,
    handle: (event) => checkpointing.handle(event),
    refuseRescale: (wish) => refuseRescale(options, wish),
    onOvertaken,
    onBroken,
  })
  execution.renew(placement.tasks.map(({ task }) => task))
  return {
    incarnation: head.incarnation,
    keeper,
    placement,
    execution,
    enumerators,
    commits,
    core,
    checkpointing,
    savepoints,
    cleanup,
    headWatch: new HeadWatch({ keeper, environment, onOvertaken, onBroken }),
    restartsBefore: head.restarts,
    restoredFrom: undefined,
    restoredFromOf: new Map(),
    runningSinceMs: undefined,
    newestId: () => checkpointing.newestTriggered ?? checkpointId(block.from - 1),
  }
}

export async function takeDownParts(parts: Parts): Promise<void> {
  parts.headWatch.close()
  parts.savepoints.close('the job has ended')
  parts.checkpointing.close()
  parts.enumerators.close()
  parts.commits.close()
  parts.cleanup.close()
  await parts.execution.close()
}

/** All of the job: what holds its checkpoints back may be anywhere. */
function checkpointsFailure(reason: string, placement: Placement): Failure {
  return { ...everything(placement), error: serializeError(coordinatorError('MR-O02', `${reason}.`)) }
}

/** Nobody's fault: subtasks that have halted run again at once, whatever the restart strategy says (rule 25). */
function haltFailure(reason: string, placement: Placement): Failure {
  return { ...everything(placement), halted: true, error: serializeError(coordinatorError('MR-O24', `${reason}.`)) }
}

/** They have halted behind a checkpoint that completed, and run again elsewhere. */
export function moveFailure(placement: Placement): Failure {
  const error = serializeError(coordinatorError('MR-O27', 'A worker is about to end.'))
  return { ...everything(placement), halted: true, error }
}

function everything({ tasks }: Placement): Pick<Failure, 'tasks' | 'slots'> {
  return { tasks: tasks.map(({ task }) => task), slots: new Set(tasks.map(({ slot }) => slot)) }
}

function enumeratorFailure(vertex: VertexId, error: unknown, execution: Execution): Failure {
  const entries = [...execution.tasks.values()].filter(({ task }) => task.vertex === vertex)
  return {
    tasks: entries.map(({ task }) => task),
    slots: new Set(entries.map(({ slot }) => slot)),
    error: serializeError(error),
  }
}
