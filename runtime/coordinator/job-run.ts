// One incarnation of a job: restore, deploy, run, restart what failed, until something ends it.

import { InvariantError, MillraceError, unreachable } from '../base/errors.ts'
import { taskKey } from '../base/ids.ts'
import type { TaskId } from '../base/ids.ts'
import type { FromSlot } from '../control/contract.ts'
import { serializeError } from '../control/serialized-error.ts'
import { isCommitRefused } from '../operators/commit-with-retry.ts'
import { cancel, close, countRestart, fail, finish } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper } from '../storage/head-keeper.ts'
import { objectsOfCollected } from './checkpointing.ts'
import type { CompletedSnapshot } from './coordinator-contract.ts'
import type { Overtaken } from './commits.ts'
import type { JobCoordinatorOptions, JobOutcome } from './coordinator-contract.ts'
import { deploymentsOf } from './deployment.ts'
import { coordinatorError } from './errors.ts'
import type { Failure } from './execution.ts'
import { failoverScope } from './failover.ts'
import type { Interruption, Interruptions } from './interruptions.ts'
import { assembleParts, takeDownParts } from './job-parts.ts'
import type { IdBlock, Parts } from './job-parts.ts'
import { readRestorePoint } from './restore.ts'
import { createRestartStrategy } from './restart-strategy.ts'
import type { RestartDecision, RestartStrategy } from './restart-strategy.ts'
import { SlotMessages } from './slot-messages.ts'

export interface JobRunOptions {
  readonly options: JobCoordinatorOptions
  readonly keeper: HeadKeeper
  /** As this incarnation wrote it. */
  readonly head: Head
  readonly block: IdBlock
  readonly interruptions: Interruptions
}

export class JobRun {
  readonly parts: Parts
  readonly #options: JobCoordinatorOptions
  readonly #interruptions: Interruptions
  readonly #head: Head
  readonly #messages: SlotMessages

  constructor({ options, keeper, head, block, interruptions }: JobRunOptions) {
    this.#options = options
    this.#interruptions = interruptions
    this.#head = head
    this.parts = assembleParts({
      options,
      keeper,
      head,
      block,
      interruptions,
      hooks: {
        onMessage: (message) => this.#receive(message),
        onCompleted: (completed) => this.#completed(completed),
        onProgress: () => this.#finishIfDone(),
      },
    })
    this.#messages = new SlotMessages(this.parts, {
      onRunning: () => this.#startIfAllRun(),
      onProgress: () => this.#finishIfDone(),
    })
  }

  /** Resolves with how it ended; the tasks are gone then. */
  async toItsEnd(): Promise<JobOutcome> {
    try {
      return await this.#lifecycle()
    } finally {
      await takeDownParts(this.parts)
    }
  }

  async #lifecycle(): Promise<JobOutcome> {
    const { environment, graph } = this.#options
    const strategy = createRestartStrategy(
      graph.settings.restartStrategy,
      environment.random,
      this.parts.restartsBefore,
    )
    this.parts.savepoints.resume(this.#head)
    let scope: readonly TaskId[] = this.parts.placement.tasks.map(({ task }) => task)
    for (;;) {
      if (scope.length > 0) await this.#restartOrReport(scope)
      scope = []
      const interruption = await this.#interruptions.next()
      // It may have been said before something failed that had to run again.
      if (interruption.type === 'finished' && !this.#isDone()) continue
      if (interruption.type !== 'failure') return this.#end(interruption)
      const { failure } = interruption
      const { error } = failure
      const beginning = this.parts.execution.someDeploying(failure.tasks)
      strategy.onRunning(this.parts.runningSinceMs, environment.clock.nowMs())
      const failover = await this.#fail(failure)
      if (failover === undefined) continue
      // Not `failed`: that would let the same command begin a new job, from empty, for a job that only could not begin again.
      if (!error.retry && beginning && this.parts.restoredFrom !== undefined)
        throw coordinatorError('MR-O20', error.message)
      // Likewise: a new job would write again what this one is not allowed to forget (rule 23).
      if (isCommitRefused(error.code)) throw coordinatorError('MR-O23', error.message)
      const decision = this.#decide(failure, strategy)
      if ('fail' in decision) {
        if (failure.restoring !== undefined) throw failure.restoring
        return this.#giveUp(
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
      if (ended !== undefined) return this.#end(ended)
      if (failure.halted !== true) {
        const answer = await this.parts.keeper.update(countRestart)
        if (answer.outcome !== 'won') return overtakenOutcome(answer)
      }
      scope = failover
    }
  }

  #decide({ error, halted }: Failure, strategy: RestartStrategy): RestartDecision | { readonly fail: undefined } {
    if (halted === true) return { restartInMs: 0 }
    return error.retry ? strategy.onFailure(this.#options.environment.clock.nowMs()) : { fail: undefined }
  }

  /** Ends what must go together; undefined when the failure is of an earlier life. */
  async #fail(failure: Failure): Promise<readonly TaskId[] | undefined> {
    const { graph } = this.#options
    const strategy = graph.settings.failoverStrategy
    const scope = failoverScope({ graph, strategy, placement: this.parts.placement, failed: failure.tasks })
    if (scope.tasks.length === 0) return undefined
    this.parts.runningSinceMs = undefined
    this.parts.checkpointing.handle({ type: 'subtasksLost', tasks: scope.tasks })
    // In this turn: while the slots end, another region may come to run, and would find these still running in their old attempts.
    this.parts.execution.renew(scope.tasks)
    await this.parts.execution.terminate(scope.slots)
    // Failures that the ended slots still reported belong to this one.
    this.#interruptions.dropFailuresOf(scope.slots)
    return scope.tasks
  }

  /**
   * What time may mend (a store that does not answer, a source's own client) is a failure like another: the restart strategy decides.
   * Anything else ends the coordinator, and leaves HEAD as it is: nothing says that the job is over.
   */
  async #restartOrReport(tasks: readonly TaskId[]): Promise<void> {
    try {
      await this.#restart(tasks)
    } catch (error) {
      if (error instanceof InvariantError || (error instanceof MillraceError && !error.retry)) throw error
      const slots = new Set(tasks.map((task) => this.parts.execution.slotNumberOf(task)))
      const failure = { tasks, slots, error: serializeError(error), restoring: error }
      this.#interruptions.push({ type: 'failure', failure })
    }
  }

  async #restart(tasks: readonly TaskId[]): Promise<void> {
    const { graph, job, environment } = this.#options
    // Rule 4: every restore waits for a swap in flight and reads HEAD again.
    await this.parts.checkpointing.quiet()
    await this.parts.keeper.settled()
    const head = await this.parts.keeper.readBegun()
    const fenced = head.incarnation !== this.parts.incarnation && !environment.planted.has('no-fence')
    if (fenced || head.end.kind !== 'none') {
      return this.#interruptions.push({ type: 'overtaken', answer: { outcome: fenced ? 'fenced' : 'ended', head } })
    }
    const plan = await readRestorePoint(this.#options, head)
    // Sinks of wholly finished vertices run no more: what HEAD permits of them is committed here (rule 23).
    await this.parts.commits.commitWithoutWriters(plan.committablesWithoutWriter)
    this.parts.commits.restoring(tasks, head, plan)
    await this.parts.enumerators.restore(tasks, plan)
    this.parts.checkpointing.setFinalsOfRestorePoint(plan.finals)
    this.parts.restoredFrom = plan.id
    for (const task of tasks) this.parts.restoredFromOf.set(taskKey(task), plan.id)
    const deployments = deploymentsOf({
      graph,
      job,
      tasks,
      execution: this.parts.execution,
      plan,
      newestKnown: this.parts.newestId(),
    })
    this.parts.execution.deploy(deployments)
  }

  async #end(interruption: Exclude<Interruption, { type: 'failure' }>): Promise<JobOutcome> {
    switch (interruption.type) {
      case 'overtaken':
        return overtakenOutcome(interruption.answer)
      case 'broken':
        throw interruption.error
      case 'stopped':
        return { kind: 'stopped', savepoint: interruption.savepoint }
      case 'suspend':
        return this.#close(close, { kind: 'suspended' })
      case 'cancel':
        return this.#close((head) => cancel(head, { deleted: false }), { kind: 'cancelled' })
      case 'finished':
        return this.#close(finish, { kind: 'finished' })
      default:
        return unreachable(interruption)
    }
  }

  #giveUp(reason: string): Promise<JobOutcome> {
    return this.#close((head) => fail(head, reason), { kind: 'failed', reason })
  }

  /** Writes the end into HEAD, after what was on its way there. */
  async #close(transition: (head: Head) => Head, outcome: JobOutcome): Promise<JobOutcome> {
    this.parts.savepoints.close('the job has ended')
    this.parts.checkpointing.close()
    await this.parts.checkpointing.quiet()
    const answer = await this.parts.keeper.update(transition)
    if (answer.outcome !== 'won') return overtakenOutcome(answer)
    const { end } = answer.head
    // A savepoint to stop with was on its way to HEAD: that end stays.
    return end.kind === 'stopped' ? { kind: 'stopped', savepoint: end.savepoint } : outcome
  }

  #receive(message: FromSlot): void {
    try {
      this.#messages.act(message)
    } catch (error) {
      // Nobody above could report it: the link only delivers.
      this.#interruptions.push({ type: 'broken', error })
    }
  }

  #startIfAllRun(): void {
    if (!this.parts.execution.allRunning || this.parts.runningSinceMs !== undefined) return
    this.parts.runningSinceMs = this.#options.environment.clock.nowMs()
    this.parts.checkpointing.handle({ type: 'allRunning', attempts: this.parts.execution.attempts() })
    this.#options.observer?.running?.()
    void this.parts.cleanup.sweep()
  }

  #completed(completed: CompletedSnapshot): void {
    this.#options.observer?.checkpointCompleted?.(completed)
    const { manifest, collected } = completed
    if (collected.request !== undefined) this.parts.savepoints.completed(collected.request, manifest)
    if (collected.halt !== undefined) return this.#interruptions.push({ type: 'stopped', savepoint: manifest })
    if (collected.kind === 'savepoint') return
    this.parts.enumerators.completed(completed.manifest.id)
    this.parts.commits.permitted(completed.collected)
    void this.parts.cleanup.afterCompleted(completed, objectsOfCollected(completed.collected))
  }

  #finishIfDone(): void {
    if (this.#isDone()) this.#interruptions.push({ type: 'finished' })
  }

  #isDone(): boolean {
    const { execution, commits, core } = this.parts
    return execution.allFinished && commits.allConfirmed && core.pending === undefined
  }
}

export function overtakenOutcome({ outcome, head }: Overtaken): JobOutcome {
  return { kind: outcome, head }
}
