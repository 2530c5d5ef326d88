// One job's coordinator: takes HEAD, restores, deploys, checkpoints, and restarts what failed, until the job ends.
//
//   begin ─▶ restore ─▶ deploy ─▶ run ──all finished, all confirmed──▶ finished
//              ▲                   │
//              └──── restart ◀─────┴─ failure      run ──suspend──▶ suspended      anything ──another incarnation──▶ fenced
//
// Whatever the end but fenced: the tasks are ended first, and then what HEAD permits is committed without them (rules 2, 5).

import type { Environment } from '../base/environment.ts'
import { InvariantError, MillraceError, unreachable } from '../base/errors.ts'
import { checkpointId, taskKey } from '../base/ids.ts'
import type { CheckpointId, Incarnation, JobId, Start, TaskId, TaskKey, VertexId } from '../base/ids.ts'
import { createCheckpointCoordinator } from '../checkpoint/coordinator.ts'
import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import type { SnapshotReader, SnapshotWriter } from '../checkpoint/contract.ts'
import { topologyOf } from '../checkpoint/topology.ts'
import type { FromSlot, SerializedError, SlotProvider } from '../control/contract.ts'
import type { JobGraph } from '../job/contract.ts'
import type { FileSystem, HeadStore, ObjectStore } from '../storage/contract.ts'
import { cancel, close, countRestart, fail, finish } from '../storage/head.ts'
import type { Head, RestorePoint } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { beginJob } from './begin.ts'
import { ReservedIds, idBlockSize } from './checkpoint-ids.ts'
import { Checkpointing, objectsOfCollected } from './checkpointing.ts'
import type { CompletedSnapshot } from './checkpointing.ts'
import { Cleanup } from './cleanup.ts'
import { Commits } from './commits.ts'
import type { Overtaken } from './commits.ts'
import { deploymentsOf } from './deployment.ts'
import { Enumerators } from './enumerators.ts'
import { coordinatorError } from './errors.ts'
import { Execution } from './execution.ts'
import type { Failure } from './execution.ts'
import { failoverScope } from './failover.ts'
import { Interruptions } from './interruptions.ts'
import type { Interruption } from './interruptions.ts'
import { placeTasks } from './placement.ts'
import type { Placement } from './placement.ts'
import { readPermittedCommits, readRestorePoint } from './restore.ts'
import { createRestartStrategy } from './restart-strategy.ts'

/** A savepoint may take longer than a checkpoint; nothing else waits for it but the next trigger. */
const savepointTimeoutMs = 600_000

export interface JobCoordinatorOptions {
  readonly graph: JobGraph
  readonly job: JobId
  /** undefined: the local rule, which goes on with what is there (rule 28). */
  readonly start: Start | undefined
  readonly environment: Environment
  readonly files: FileSystem
  readonly store: ObjectStore
  readonly head: HeadStore
  readonly slots: SlotProvider
  readonly snapshotWriter: SnapshotWriter
  readonly snapshotReader: SnapshotReader
  readonly observer?: CoordinatorObserver
}

/** What a terminal or a test may watch. */
export interface CoordinatorObserver {
  began?(head: Head, restorePoint: RestorePoint): void
  running?(): void
  checkpointCompleted?(completed: CompletedSnapshot): void
  restarting?(failure: { readonly message: string; readonly inMs: number; readonly tasks: number }): void
}

export type JobOutcome =
  | { readonly kind: 'finished' }
  | { readonly kind: 'suspended' }
  | { readonly kind: 'cancelled' }
  | { readonly kind: 'failed'; readonly reason: string }
  /** Another coordinator owns the job. */
  | { readonly kind: 'fenced'; readonly head: Head }
  /** Somebody else ended this start, before or while it ran; permitted commits were carried out. */
  | { readonly kind: 'ended'; readonly head: Head }

export class JobCoordinator {
  readonly #options: JobCoordinatorOptions
  readonly #interruptions = new Interruptions()
  #parts: Parts | undefined

  constructor(options: JobCoordinatorOptions) {
    this.#options = options
  }

  /** Runs the job to its end. Rejects when HEAD or the restore point cannot be read, or the job cannot begin. */
  async run(): Promise<JobOutcome> {
    const { head: headStore, environment, graph, start, job } = this.#options
    const keeper = await HeadKeeper.open(headStore, environment)
    const begun = await beginJob({ keeper, graph, job, start })
    if (begun.outcome === 'ended') {
      await this.#finishCommits(keeper, begun.head)
      return { kind: 'ended', head: begun.head }
    }
    if (begun.outcome === 'fenced') return { kind: 'fenced', head: begun.head }
    const block = await keeper.reserveIds(idBlockSize)
    const outcome = block.outcome === 'won' ? await this.#runBegun(keeper, begun.head, block) : overtakenOutcome(block)
    await this.#finishCommitsAfter(keeper, outcome)
    return outcome
  }

  async #runBegun(keeper: HeadKeeper, head: Head, block: IdBlock): Promise<JobOutcome> {
    const parts = this.#assemble(keeper, head, block)
    this.#parts = parts
    try {
      return await this.#lifecycle(parts)
    } finally {
      await this.#tearDown(parts)
    }
  }

  /** Closes HEAD and ends the tasks; the next start goes on from the newest checkpoint. */
  suspend(): void {
    this.#interruptions.push({ type: 'suspend' })
  }

  /** The job is over and will not be resumed. */
  cancel(): void {
    this.#interruptions.push({ type: 'cancel' })
  }

  /** Takes a checkpoint as soon as none is pending. */
  checkpoint(): void {
    this.#parts?.checkpointing.handle({ type: 'checkpointRequested', request: undefined })
  }

  get execution(): Execution | undefined {
    return this.#parts?.execution
  }

  get checkpoints(): CheckpointCoordinator | undefined {
    return this.#parts?.core
  }

  // ---- the lifecycle ----

  async #lifecycle(parts: Parts): Promise<JobOutcome> {
    const { environment, graph } = this.#options
    const strategy = createRestartStrategy(graph.settings.restartStrategy, environment.random, parts.restartsBefore)
    let scope: readonly TaskId[] = parts.placement.tasks.map(({ task }) => task)
    for (;;) {
      if (scope.length > 0) await this.#restartOrReport(parts, scope)
      scope = []
      const interruption = await this.#interruptions.next()
      // It may have been said before something failed that had to run again.
      if (interruption.type === 'finished' && !this.#isDone(parts)) continue
      if (interruption.type !== 'failure') return this.#end(parts, interruption)
      const { failure } = interruption
      const { error } = failure
      const beginning = parts.execution.someDeploying(failure.tasks)
      strategy.onRunning(parts.runningSinceMs, environment.clock.nowMs())
      const failover = await this.#fail(parts, failure)
      if (failover === undefined) continue
      // Not `failed`: that would let the same command begin a new job, from empty, for a job that only could not begin again.
      if (!error.retry && beginning && parts.restoredFrom !== undefined) throw coordinatorError('MR-O20', error.message)
      const decision = error.retry ? strategy.onFailure(environment.clock.nowMs()) : { fail: undefined }
      if ('fail' in decision) {
        if (failure.restoring !== undefined) throw failure.restoring
        return this.#giveUp(
          parts,
          decision.fail === undefined
            ? error.message
            : coordinatorError('MR-O01', `${decision.fail}: ${error.message}`).message,
        )
      }
      this.#options.observer?.restarting?.({
        message: error.message,
        inMs: decision.restartInMs,
        tasks: failover.length,
      })
      environment.log('warn', 'restarting', {
        tasks: failover.length,
        inMs: decision.restartInMs,
        error: error.message,
      })
      const ended = await this.#interruptions.waitOut(decision.restartInMs, environment.clock)
      if (ended !== undefined) return this.#end(parts, ended)
      const answer = await parts.keeper.update(countRestart)
      if (answer.outcome !== 'won') return overtakenOutcome(answer)
      scope = failover
    }
  }

  /** Ends what must go together; undefined when the failure is of an earlier life. */
  async #fail(parts: Parts, failure: Failure): Promise<readonly TaskId[] | undefined> {
    const { graph } = this.#options
    const strategy = graph.settings.failoverStrategy
    const scope = failoverScope({ graph, strategy, placement: parts.placement, failed: failure.tasks })
    if (scope.tasks.length === 0) return undefined
    parts.runningSinceMs = undefined
    parts.checkpointing.handle({ type: 'subtasksLost', tasks: scope.tasks })
    // In this turn: while the slots end, another region may come to run, and would find these still running in their old attempts.
    parts.execution.renew(scope.tasks)
    await parts.execution.terminate(scope.slots)
    // Failures that the ended slots still reported belong to this one.
    this.#interruptions.dropFailuresOf(scope.slots)
    return scope.tasks
  }

  /**
   * What time may mend (a store that does not answer, a source's own client) is a failure like another: the restart strategy decides.
   * Anything else ends the coordinator, and leaves HEAD as it is: nothing says that the job is over.
   */
  async #restartOrReport(parts: Parts, tasks: readonly TaskId[]): Promise<void> {
    try {
      await this.#restart(parts, tasks)
    } catch (error) {
      if (error instanceof InvariantError || (error instanceof MillraceError && !error.retry)) throw error
      const slots = new Set(tasks.map((task) => parts.execution.slotNumberOf(task)))
      const failure = { tasks, slots, error: serialize(error), restoring: error }
      this.#interruptions.push({ type: 'failure', failure })
    }
  }

  async #restart(parts: Parts, tasks: readonly TaskId[]): Promise<void> {
    const { graph, job, environment } = this.#options
    // Rule 4: every restore waits for a swap in flight and reads HEAD again.
    await parts.checkpointing.quiet()
    await parts.keeper.settled()
    const head = (await parts.keeper.read())!
    const fenced = head.incarnation !== parts.incarnation && !environment.planted.has('no-fence')
    if (fenced || head.end.kind !== 'none') {
      return this.#interruptions.push({ type: 'overtaken', answer: { outcome: fenced ? 'fenced' : 'ended', head } })
    }
    const plan = await readRestorePoint(this.#options, head)
    // Sinks of wholly finished vertices run no more: what HEAD permits of them is committed here (rule 23).
    await parts.commits.commitWithoutWriters(plan.committablesWithoutWriter)
    parts.commits.restoring(tasks, head, plan)
    await parts.enumerators.restore(tasks, plan)
    parts.checkpointing.setFinalsOfRestorePoint(plan.finals)
    parts.restoredFrom = plan.id
    for (const task of tasks) parts.restoredFromOf.set(taskKey(task), plan.id)
    const deployments = deploymentsOf({
      graph,
      job,
      tasks,
      execution: parts.execution,
      plan,
      newestKnown: parts.newestId(),
    })
    parts.execution.deploy(deployments)
  }

  async #end(parts: Parts, interruption: Exclude<Interruption, { type: 'failure' }>): Promise<JobOutcome> {
    switch (interruption.type) {
      case 'overtaken':
        return overtakenOutcome(interruption.answer)
      case 'broken':
        throw interruption.error
      case 'suspend':
        return this.#close(parts, close, { kind: 'suspended' })
      case 'cancel':
        return this.#close(parts, (head) => cancel(head, { deleted: false }), { kind: 'cancelled' })
      case 'finished':
        return this.#close(parts, finish, { kind: 'finished' })
      default:
        return unreachable(interruption)
    }
  }

  #giveUp(parts: Parts, reason: string): Promise<JobOutcome> {
    return this.#close(parts, (head) => fail(head, reason), { kind: 'failed', reason })
  }

  /** Writes the end into HEAD, after what was on its way there. */
  async #close(parts: Parts, transition: (head: Head) => Head, outcome: JobOutcome): Promise<JobOutcome> {
    parts.checkpointing.close()
    await parts.checkpointing.quiet()
    const answer = await parts.keeper.update(transition)
    return answer.outcome === 'won' ? outcome : overtakenOutcome(answer)
  }

  /** Rules 2 and 5: an ended start runs nothing; it finishes the commits that HEAD permits, as nobody may be there to do it later. */
  async #finishCommits(keeper: HeadKeeper, head: Head): Promise<void> {
    if (head.unconfirmed === undefined) return
    const { graph, job, environment, files } = this.#options
    const unused = () => undefined
    const commits = new Commits({
      graph,
      job,
      environment,
      files,
      keeper,
      onAllConfirmed: unused,
      onOvertaken: unused,
      onBroken: unused,
    })
    await commits.commitWithoutWriters(await readPermittedCommits(this.#options, head.unconfirmed))
    await commits.confirmAmending(head.unconfirmed.id)
  }

  /** The end is written and stays, whatever becomes of the commits: they stand in HEAD, and are tried by whoever is started for it again. */
  async #finishCommitsAfter(keeper: HeadKeeper, outcome: JobOutcome): Promise<void> {
    if (outcome.kind === 'finished' || outcome.kind === 'fenced') return
    try {
      await this.#finishCommits(keeper, (await keeper.read())!)
    } catch (error) {
      this.#options.environment.log('error', 'permitted commits are left in HEAD', {
        end: outcome.kind,
        error: String(error),
      })
    }
  }

  // ---- putting it together ----

  #assemble(keeper: HeadKeeper, head: Head, block: IdBlock): Parts {
    const { graph, job, environment, files, store, slots, snapshotWriter, observer } = this.#options
    const { settings } = graph
    const ids = new ReservedIds()
    ids.add(block)
    const onOvertaken = (answer: Overtaken): void => this.#interruptions.push({ type: 'overtaken', answer })
    const onBroken = (error: unknown): void => this.#interruptions.push({ type: 'broken', error })
    const placement = placeTasks(graph)
    const execution: Execution = new Execution({
      graph,
      job,
      incarnation: head.incarnation,
      environment,
      placement,
      slots,
      onMessage: (message) => this.#receive(message),
      onFailure: (failure) => this.#interruptions.push({ type: 'failure', failure }),
    })
    const enumerators = new Enumerators({
      graph,
      environment,
      files,
      send: (task, message) => execution.send(task, message),
      fail: (vertex, error) =>
        this.#interruptions.push({ type: 'failure', failure: enumeratorFailure(vertex, error, execution) }),
    })
    const commits = new Commits({
      graph,
      job,
      environment,
      files,
      keeper,
      onAllConfirmed: () => this.#finishIfDone(),
      onOvertaken,
      onBroken,
    })
    const core = createCheckpointCoordinator(
      topologyOf(graph),
      {
        intervalMs: settings.checkpointIntervalMs,
        timeoutMs: settings.checkpointTimeoutMs,
        minPauseMs: settings.minPauseMs,
        savepointTimeoutMs,
        tolerableFailures: settings.tolerableFailures,
        maxConcurrent: 1,
      },
      ids,
      environment.planted,
    )
    const quiet = (): Promise<void> => checkpointing.quiet()
    const cleanup = new Cleanup({
      store,
      keeper,
      environment,
      incarnation: head.incarnation,
      commits,
      execution,
      quiet,
    })
    const checkpointing: Checkpointing = new Checkpointing({
      core,
      ids,
      keeper,
      store,
      writer: snapshotWriter,
      environment,
      graph,
      job,
      start: head.start,
      incarnation: head.incarnation,
      execution,
      enumerators,
      onCompleted: (completed) => this.#completed(completed),
      onStepped: () => this.#finishIfDone(),
      onOrphan: (id, snapshot) => cleanup.orphans.add(id, snapshot),
      onAborted: (id) => cleanup.orphans.aborted(id),
      onFailJob: (reason) =>
        this.#interruptions.push({ type: 'failure', failure: checkpointsFailure(reason, placement) }),
      onOvertaken,
      onBroken,
    })
    execution.renew(placement.tasks.map(({ task }) => task))
    observer?.began?.(head, head.restoredFrom)
    return {
      incarnation: head.incarnation,
      keeper,
      placement,
      execution,
      enumerators,
      commits,
      core,
      checkpointing,
      cleanup,
      restartsBefore: head.restarts,
      restoredFrom: undefined,
      restoredFromOf: new Map(),
      runningSinceMs: undefined,
      newestId: () => checkpointing.newestTriggered ?? checkpointId(block.from - 1),
    }
  }

  async #tearDown(parts: Parts): Promise<void> {
    parts.checkpointing.close()
    parts.enumerators.close()
    parts.commits.close()
    parts.cleanup.close()
    await parts.execution.terminateAll()
  }

  // ---- what slots say ----

  #receive(message: FromSlot): void {
    try {
      this.#act(message, this.#parts!)
    } catch (error) {
      // Nobody above could report it: the link only delivers.
      this.#interruptions.push({ type: 'broken', error })
    }
  }

  #act(message: FromSlot, parts: Parts): void {
    switch (message.type) {
      case 'running': {
        // Before it ran it committed what the restore point holds for it (rule 22).
        const from = parts.restoredFromOf.get(taskKey(message.task))
        if (from !== undefined) parts.commits.committed(taskKey(message.task), from)
        parts.enumerators.readerRuns(message.task)
        return this.#startIfAllRun(parts)
      }
      case 'declined':
      case 'waitsForCheckpoint':
        return parts.checkpointing.handle(message)
      // A vertex that was wholly finished in the restore point runs nothing: its final state is the one that is stored, also while it
      // still waits for its end of data to be received. Else the next restore would take its source for one that was never read.
      case 'acknowledged': {
        const snapshot = parts.checkpointing.finalOf(taskKey(message.task)) ?? message.snapshot
        return parts.checkpointing.handle({ ...message, snapshot })
      }
      case 'finished': {
        const snapshot = parts.checkpointing.finalOf(taskKey(message.task)) ?? message.snapshot
        parts.commits.finished(taskKey(message.task))
        parts.checkpointing.handle({ ...message, snapshot })
        this.#startIfAllRun(parts)
        return this.#finishIfDone()
      }
      case 'requestSplit':
        return parts.enumerators.requestSplit(message.task)
      case 'committed':
        return parts.commits.committed(taskKey(message.task), message.id)
      case 'splitFinished':
      case 'registered':
      case 'failed':
      case 'report':
        return undefined
      default:
        return unreachable(message)
    }
  }

  #startIfAllRun(parts: Parts): void {
    if (!parts.execution.allRunning || parts.runningSinceMs !== undefined) return
    parts.runningSinceMs = this.#options.environment.clock.nowMs()
    parts.checkpointing.handle({ type: 'allRunning', attempts: parts.execution.attempts() })
    this.#options.observer?.running?.()
    void parts.cleanup.sweep()
  }

  #completed(completed: CompletedSnapshot): void {
    const parts = this.#parts!
    this.#options.observer?.checkpointCompleted?.(completed)
    if (completed.collected.kind === 'savepoint') return
    parts.enumerators.completed(completed.manifest.id)
    parts.commits.permitted(completed.collected, completed.head)
    void parts.cleanup.afterCompleted(completed, objectsOfCollected(completed.collected))
  }

  #finishIfDone(): void {
    if (this.#parts !== undefined && this.#isDone(this.#parts)) this.#interruptions.push({ type: 'finished' })
  }

  #isDone({ execution, commits, core }: Parts): boolean {
    return execution.allFinished && commits.allConfirmed && core.pending === undefined
  }
}

interface IdBlock {
  readonly from: number
  readonly to: number
}

interface Parts {
  readonly incarnation: Incarnation
  readonly keeper: HeadKeeper
  readonly placement: Placement
  readonly execution: Execution
  readonly enumerators: Enumerators
  readonly commits: Commits
  readonly core: CheckpointCoordinator
  readonly checkpointing: Checkpointing
  readonly cleanup: Cleanup
  readonly restartsBefore: number
  readonly newestId: () => CheckpointId
  /** The restore point of the last restart; undefined: empty. */
  restoredFrom: CheckpointId | undefined
  /** That of each subtask's current attempt. */
  readonly restoredFromOf: Map<TaskKey, CheckpointId | undefined>
  runningSinceMs: number | undefined
}

function overtakenOutcome({ outcome, head }: Overtaken): JobOutcome {
  return { kind: outcome, head }
}

/** All of the job: what holds its checkpoints back may be anywhere. */
function checkpointsFailure(reason: string, { tasks }: Placement): Failure {
  return {
    tasks: tasks.map(({ task }) => task),
    slots: new Set(tasks.map(({ slot }) => slot)),
    error: serialize(coordinatorError('MR-O02', `${reason}.`)),
  }
}

function enumeratorFailure(vertex: VertexId, error: unknown, execution: Execution): Failure {
  const entries = [...execution.tasks.values()].filter(({ task }) => task.vertex === vertex)
  return {
    tasks: entries.map(({ task }) => task),
    slots: new Set(entries.map(({ slot }) => slot)),
    error: serialize(error),
  }
}

function serialize(error: unknown): SerializedError {
  const known = error instanceof Error ? error : new Error(String(error))
  const row =
    known instanceof MillraceError ? { code: known.code, retry: known.retry } : { code: undefined, retry: true }
  return { name: known.name, message: known.message, stack: known.stack, ...row }
}
