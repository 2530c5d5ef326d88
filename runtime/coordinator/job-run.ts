// One incarnation of a job: restore, deploy, run, restart what failed, until something ends it.

import { mayPass, unreachable } from '../base/errors.ts'
import { checkpointId, taskKey } from '../base/ids.ts'
import type { TaskId } from '../base/ids.ts'
import type { FromSlot, SurvivingSlot } from '../control/contract.ts'
import { serializeError } from '../control/serialized-error.ts'
import { isCommitRefused } from '../operators/commit-with-retry.ts'
import type { JobGraph } from '../job/contract.ts'
import { cancel, close, countRestart, deploySlots, fail, finish } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import type { HeadKeeper, Overtaken } from '../storage/head-keeper.ts'
import { objectsOfCollected } from './checkpointing.ts'
import type { CompletedSnapshot, ReportedRestart } from './coordinator-contract.ts'
import { askingForCommit } from './commits.ts'
import type { JobCoordinatorOptions, JobOutcome } from './coordinator-contract.ts'
import { deploymentsOf } from './deployment.ts'
import { coordinatorError } from './errors.ts'
import type { Failure } from './execution.ts'
import { decideAdoption, isComplete } from './adoption.ts'
import type { Adoption } from './adoption.ts'
import { failoverScope } from './failover.ts'
import type { FailoverScope } from './failover.ts'
import type { Interruption, Interruptions } from './interruptions.ts'
import { assembleParts, moveFailure, takeDownParts } from './job-parts.ts'
import type { IdBlock, Parts } from './job-parts.ts'
import { readRestorePoint } from './restore.ts'
import { createRestartStrategy } from './restart-strategy.ts'
import type { RestartDecision, RestartStrategy } from './restart-strategy.ts'
import type { WaitingForSavepoints } from './savepoints.ts'
import { SlotMessages } from './slot-messages.ts'

/**
 * How long slots that run on are waited for: they find their new coordinator within a second or two once they have lost the one before, which
 * they notice after 10 s if it is silent and not gone.
 */
const adoptionDeadlineMs = 15_000
const reasonsLogged = 5

/** rescaled: the same start goes on in a run of its own, at another parallelism. */
export type RunOutcome = JobOutcome | { readonly kind: 'rescaled'; readonly parallelism: number }

export interface JobRunOptions {
  readonly options: JobCoordinatorOptions
  readonly keeper: HeadKeeper
  /** As this incarnation wrote it. */
  readonly head: Head
  readonly block: IdBlock
  /** What ran in an earlier incarnation of this start may run on. */
  readonly resumed: boolean
  readonly interruptions: Interruptions
  readonly waiting: WaitingForSavepoints
}

export class JobRun {
  readonly parts: Parts
  readonly #options: JobCoordinatorOptions
  readonly #interruptions: Interruptions
  readonly #head: Head
  readonly #block: IdBlock
  readonly #resumed: boolean
  readonly #messages: SlotMessages

  constructor({ options, keeper, head, block, resumed, interruptions, waiting }: JobRunOptions) {
    this.#options = options
    this.#block = block
    this.#resumed = resumed
    this.#interruptions = interruptions
    this.#head = head
    this.parts = assembleParts({
      options,
      keeper,
      head,
      block,
      interruptions,
      waiting,
      hooks: {
        onMessage: (message) => this.#receive(message),
        onCompleted: (completed, newest) => this.#completed(completed, newest),
        onProgress: () => this.#finishIfDone(),
      },
    })
    this.#messages = new SlotMessages(this.parts, {
      onRunning: () => this.#startIfAllRun(),
      onProgress: () => this.#finishIfDone(),
    })
  }

  get graph(): JobGraph {
    return this.#options.graph
  }

  /** The size of HEAD's last rescale, for which the graph was built. */
  get rescaledTo(): number | undefined {
    return this.#head.rescaledTo
  }

  /** Resolves with how it ended; the tasks are gone then, or left to the next coordinator. */
  async toItsEnd(): Promise<RunOutcome> {
    try {
      const outcome = await this.#lifecycle()
      // Slots that have not found the other coordinator yet are its to adopt.
      if (outcome.kind === 'fenced') this.#options.slots.abandon?.()
      return outcome
    } catch (thrown) {
      // Commits that the coordinator carries out itself, of sinks that run no more, are refused like those of a slot: the job stops and asks.
      const error = askingForCommit('MR-O23', thrown)
      // Trouble outside, such as a HEAD that stays unclear or a source's client that does not connect while its enumerator begins again, is
      // this coordinator's end and no reason to stop the data: the next one settles it by raising the incarnation (rule 4), and adopts what runs.
      if (mayPass(error)) this.#options.slots.abandon?.()
      throw error
    } finally {
      await takeDownParts(this.parts)
    }
  }

  async #lifecycle(): Promise<RunOutcome> {
    const { environment, graph } = this.#options
    const strategy = createRestartStrategy(
      graph.settings.restartStrategy,
      environment.random,
      this.parts.restartsBefore,
    )
    this.parts.headWatch.start()
    this.parts.savepoints.resume(this.#head)
    let scope = await this.#adopt()
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
      const workers = this.#workersOf(failure)
      strategy.onRunning(this.parts.runningSinceMs, environment.clock.nowMs())
      const failover = await this.#fail(failure)
      if (failover === undefined) continue
      // Not `failed`: a new job would write again what this one is not allowed to forget (rule 23). Whether it runs or only begins again: the
      // commit is the same, and is tried again by whoever comes next.
      if (isCommitRefused(error.code)) throw coordinatorError('MR-O23', error.message)
      // Likewise: the same command would begin a new job, from empty, for a job that only could not begin again.
      if (!error.retry && beginning && this.parts.restoredFrom !== undefined)
        throw coordinatorError('MR-O20', error.message)
      const decision = this.#decide(failure, strategy)
      if ('fail' in decision) {
        this.#options.observer?.gaveUp?.({ message: error.message, code: error.code, failed: failure.tasks, workers })
        if (failure.restoring !== undefined) throw failure.restoring
        // HEAD keeps what happened. What to do depends on who starts the job again, and each says it himself.
        return this.#giveUp(
          decision.fail === undefined
            ? error.message
            : coordinatorError('MR-O01', `${decision.fail}: ${error.message}`).description,
        )
      }
      this.#tellRestarting({
        message: error.message,
        code: error.code,
        failed: failure.tasks,
        workers,
        inMs: decision.restartInMs,
        tasks: failover.length,
      })
      const ended = await this.#interruptions.waitOut(decision.restartInMs, environment.clock)
      if (ended !== undefined) return this.#end(ended)
      if (failure.halted !== true) {
        const answer = await this.parts.keeper.update((head) => this.#deploying(countRestart(head)))
        if (answer.outcome !== 'won') return overtakenOutcome(answer)
      }
      scope = failover
    }
  }

  #tellRestarting(restart: ReportedRestart): void {
    const { environment, observer } = this.#options
    observer?.restarting?.(restart)
    const { tasks, inMs, message, workers } = restart
    environment.log('warn', 'restarting', { tasks, inMs, error: message, workers })
  }

  #workersOf({ tasks }: Failure): readonly string[] | undefined {
    const { slots } = this.#options
    const { tasks: all, slotCount } = this.parts.placement
    // Of the job as a whole, such as its checkpoints: that would name every worker, and none is meant.
    if (tasks.length === all.length && slotCount > 1) return undefined
    const names = tasks.flatMap((task) => slots.workerOf?.(this.parts.execution.slotOf(task)) ?? [])
    return names.length === 0 ? undefined : [...new Set(names)].toSorted()
  }

  #decide({ error, halted }: Failure, strategy: RestartStrategy): RestartDecision | { readonly fail: undefined } {
    if (halted === true) return { restartInMs: 0 }
    return error.retry ? strategy.onFailure(this.#options.environment.clock.nowMs()) : { fail: undefined }
  }

  /** Ends what must go together; undefined when the failure is of an earlier life. */
  async #fail(failure: Failure): Promise<readonly TaskId[] | undefined> {
    const scope = this.#scopeOf(failure.tasks)
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

  /** Readers of adopted sources restart together, and whatever that draws in. */
  #scopeOf(failed: readonly TaskId[]): FailoverScope {
    const { graph } = this.#options
    const strategy = graph.settings.failoverStrategy
    const { placement, enumerators } = this.parts
    let scope = failoverScope({ graph, strategy, placement, failed })
    for (;;) {
      const wider = failoverScope({
        graph,
        strategy,
        placement,
        failed: [...scope.tasks, ...enumerators.bound(scope.tasks)],
      })
      if (wider.tasks.length === scope.tasks.length) return wider
      scope = wider
    }
  }

  /**
   * Takes over what runs on from the incarnation before this one, and gives the subtasks that have to begin again (rule 25). Losing a
   * coordinator stops no data.
   */
  async #adopt(): Promise<readonly TaskId[]> {
    const { graph, slots, environment, observer } = this.#options
    const { placement, execution, enumerators, commits, checkpointing } = this.parts
    const all = placement.tasks.map(({ task }) => task)
    if (slots.survivors === undefined) return all
    const deployed = environment.planted.has('given-up-adopted') ? undefined : this.#head.deployed
    environment.failpoints.hit('coordinator.adopt.before')
    const survivors = await slots.survivors({
      incarnation: this.parts.incarnation,
      enough: (found) => !this.#resumed || isComplete(placement, found, deployed),
      slotsNeeded: placement.slotCount,
      deadlineMs: this.#resumed ? adoptionDeadlineMs : 0,
    })
    const strategy = graph.settings.failoverStrategy
    const { planted } = environment
    const adoption = decideAdoption({
      graph,
      placement,
      strategy,
      deployed,
      survivors: this.#resumed ? survivors : [],
    })
    const given = this.#resumed ? adoption.given : survivors
    await this.#endAll(given)
    const why = Object.fromEntries([...adoption.unfit].slice(0, reasonsLogged))
    if (adoption.tasks.length === 0) {
      if (this.#resumed && survivors.length > 0)
        environment.log('info', 'nothing that runs on from an earlier coordinator can be taken over', { why })
      this.#reportLost(adoption)
      return all
    }
    const head = await this.#headToRestoreFrom()
    if (typeof head === 'string') {
      // Fenced, they are the other coordinator's.
      if (head === 'ended') await this.#endAll(adoption.slots.map(({ survivor }) => survivor))
      return []
    }
    const plan = await readRestorePoint(this.#options, head)
    await commits.commitWithoutWriters(plan.committablesWithoutWriter)
    commits.restoring([], head, plan)
    execution.adopt(adoption)
    await enumerators.adopt(adoption.tasks, plan)
    checkpointing.setFinalsOfRestorePoint(plan.finals)
    this.parts.restoredFrom = plan.id
    environment.failpoints.hit('coordinator.adopt.middle')
    execution.broadcast({ type: 'adopt', newestKnown: checkpointId(this.#block.from - 1) })
    // The coordinator before may have died between its swap and this word (rule 3).
    const completed = planted.has('complete-repeated-too-high') ? checkpointId(this.#block.from - 1) : plan.id
    if (completed !== undefined) execution.broadcast({ type: 'complete', id: completed })
    observer?.adopted?.({ tasks: adoption.tasks.length, restarting: adoption.restart.length })
    environment.log('info', 'subtasks run on from an earlier coordinator', {
      adopted: adoption.tasks.length,
      restarting: adoption.restart.length,
      why,
    })
    for (const { task, attempt, final, waitsForCheckpoint } of adoption.tasks) {
      if (final !== undefined) {
        const snapshot = planted.has('final-state-forgotten') ? { ...final, operators: {} } : final
        this.#receive({ type: 'finished', task, attempt, snapshot })
      } else if (waitsForCheckpoint) this.#receive({ type: 'waitsForCheckpoint', task, attempt })
    }
    execution.listenTo(adoption)
    this.#reportLost(adoption)
    environment.failpoints.hit('coordinator.adopt.after')
    this.#startIfAllRun()
    this.#finishIfDone()
    return adoption.restart
  }

  async #endAll(survivors: readonly SurvivingSlot[]): Promise<void> {
    const { slots } = this.#options
    for (const { link } of survivors) link.close()
    await Promise.all(survivors.map(({ slot }) => slots.terminate(slot)))
  }

  /** What ran under the coordinator before this one and begins again is a restart for whoever watches, though no restart strategy was asked. */
  #reportLost({ restart, unfit }: Adoption): void {
    const hasRun = this.#resumed && (this.#head.deployed ?? []).length > 0
    if (!hasRun || restart.length === 0) return
    const failed = restart.filter((task) => unfit.has(taskKey(task)))
    const reasons = failed.slice(0, reasonsLogged).map((task) => `${taskKey(task)}: ${unfit.get(taskKey(task))}`)
    const { code, message } = coordinatorError(
      'MR-O29',
      `${reasons.join('; ')}${failed.length > reasonsLogged ? '; …' : ''}.`,
    )
    this.#tellRestarting({ message, code, failed, inMs: 0, tasks: restart.length })
  }

  /**
   * What time may mend (a store that does not answer, a source's own client) is a failure like another: the restart strategy decides.
   * Anything else ends the coordinator, and leaves HEAD as it is: nothing says that the job is over.
   */
  async #restartOrReport(tasks: readonly TaskId[]): Promise<void> {
    try {
      await this.#restart(tasks)
    } catch (error) {
      if (!mayPass(error)) throw error
      const slots = new Set(tasks.map((task) => this.parts.execution.slotNumberOf(task)))
      const failure = { tasks, slots, error: serializeError(error), restoring: error }
      this.#interruptions.push({ type: 'failure', failure })
    }
  }

  /** Rule 4: every restore waits for a swap in flight and reads HEAD again. A text: it is not this incarnation's to run any more. */
  async #headToRestoreFrom(): Promise<Head | Overtaken['outcome']> {
    await this.parts.checkpointing.quiet()
    await this.parts.keeper.settled()
    const head = await this.parts.keeper.readBegun()
    const fenced = head.incarnation !== this.parts.incarnation && !this.#options.environment.planted.has('no-fence')
    if (!fenced && head.end.kind === 'none') return head
    const outcome = fenced ? 'fenced' : 'ended'
    this.#interruptions.push({ type: 'overtaken', answer: { outcome, head } })
    return outcome
  }

  async #restart(tasks: readonly TaskId[]): Promise<void> {
    const { graph, job } = this.#options
    const head = await this.#headToRestoreFrom()
    if (typeof head === 'string') return
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
    if (!(await this.#nameSlots(head))) return
    this.parts.execution.deploy(deployments)
  }

  /** Before a slot starts HEAD names it, and the life before it no more: that one is not adopted, wherever it runs on (rule 25). */
  async #nameSlots(head: Head): Promise<boolean> {
    const { execution, keeper } = this.parts
    const named = this.#deploying(head).deployed
    if (named?.every((slot) => head.deployed?.includes(slot)) === false) {
      const answer = await keeper.update((newest) => this.#deploying(newest))
      if (answer.outcome !== 'won') {
        this.#interruptions.push({ type: 'overtaken', answer })
        return false
      }
    }
    execution.givenUp()
    return true
  }

  /** Slots that die with their coordinator are adopted by nobody. */
  #deploying(head: Head): Head {
    const { slots } = this.#options
    return slots.survivors === undefined ? head : deploySlots(head, this.parts.execution.slotNames)
  }

  async #end(interruption: Exclude<Interruption, { type: 'failure' }>): Promise<RunOutcome> {
    switch (interruption.type) {
      case 'rescaled':
        this.parts.savepoints.goOn()
        return { kind: 'rescaled', parallelism: interruption.parallelism }
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
    const { failpoints } = this.#options.environment
    failpoints.hit('coordinator.end.before')
    const answer = await this.parts.keeper.update(transition)
    failpoints.hit('coordinator.end.after')
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
    this.#options.observer?.running?.()
    // To those that run already too: which of them an earlier coordinator has told, nobody knows. Before any trigger, on the same links.
    this.parts.execution.broadcast({ type: 'begin' })
    this.parts.checkpointing.handle({ type: 'allRunning', attempts: this.parts.execution.attempts() })
    void this.parts.cleanup.sweep()
  }

  #completed(completed: CompletedSnapshot, head: Head): void {
    this.#options.observer?.checkpointCompleted?.(completed)
    const { manifest, collected } = completed
    if (collected.request !== undefined) this.parts.savepoints.completed(collected.request, manifest)
    if (collected.halt !== undefined) return this.#halted(completed, head)
    if (collected.kind === 'savepoint') return
    this.parts.enumerators.completed(completed.manifest.id)
    this.parts.commits.permitted(completed.collected)
    // Begins before the sinks are told to commit, which harms nothing: what HEAD names, and what it permits, is never taken away (rules 7, 24).
    void this.parts.cleanup.afterCompleted(completed, objectsOfCollected(completed.collected))
  }

  /** Behind a stop barrier: the job has ended, or goes on in new attempts, which begin at this very snapshot. */
  #halted({ manifest, collected }: CompletedSnapshot, head: Head): void {
    if (collected.kind === 'savepoint') return this.#interruptions.push({ type: 'stopped', savepoint: manifest })
    this.parts.enumerators.completed(manifest.id)
    this.parts.commits.permitted(collected)
    const { rescaledTo } = head
    if (collected.request !== undefined && rescaledTo !== undefined)
      return this.#interruptions.push({ type: 'rescaled', parallelism: rescaledTo })
    return this.#interruptions.push({ type: 'failure', failure: moveFailure(this.parts.placement) })
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
