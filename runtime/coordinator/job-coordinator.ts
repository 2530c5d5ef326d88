// One job's coordinator: takes HEAD, restores, deploys, checkpoints, and restarts what failed, until the job ends.
//
//   begin ─▶ restore ─▶ deploy ─▶ run ──all finished, all confirmed──▶ finished
//              ▲                   │
//              └──── restart ◀─────┴─ failure      run ──suspend──▶ suspended      anything ──another incarnation──▶ fenced
//
// Whatever the end but fenced: the tasks are ended first, and then what HEAD permits is committed without them (rules 2, 5).

import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import { MillraceError } from '../base/errors.ts'
import { requestId } from '../base/ids.ts'
import type { RequestId, Start } from '../base/ids.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Head, SavepointRequest } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { beginJob } from './begin.ts'
import { idBlockSize } from './checkpoint-ids.ts'
import type { JobCoordinatorOptions, JobOutcome, SavepointAnswer } from './coordinator-contract.ts'
import { coordinatorError } from './errors.ts'
import type { Execution } from './execution.ts'
import { Interruptions } from './interruptions.ts'
import { JobRun, overtakenOutcome } from './job-run.ts'
import { discardLeftovers } from './leftovers.ts'
import { finishCommits, finishCommitsAfter } from './permitted-commits.ts'
import { endWaiting } from './savepoints.ts'
import type { WaitingForSavepoints } from './savepoints.ts'

export class JobCoordinator {
  readonly #options: JobCoordinatorOptions
  readonly #interruptions = new Interruptions()
  readonly #waiting: WaitingForSavepoints = new Map()
  #run: JobRun | undefined
  /** Settles when `#run` is another one, or the job has ended. */
  #handedOver = Promise.withResolvers<void>()

  constructor(options: JobCoordinatorOptions) {
    this.#options = options
  }

  /** Runs the job to its end. Rejects when HEAD or the restore point cannot be read, or the job cannot begin. */
  async run(): Promise<JobOutcome> {
    try {
      const outcome = await this.#toItsEnd()
      this.#options.observer?.ended?.(outcome)
      return outcome
    } finally {
      endWaiting(this.#waiting, 'the job has ended')
      this.#handedOver.resolve()
      await this.#options.slots.close?.()
    }
  }

  async #toItsEnd(): Promise<JobOutcome> {
    const { head: headStore, environment, observer } = this.#options
    const keeper = await HeadKeeper.open(headStore, environment)
    let rescaled = false
    for (;;) {
      environment.failpoints.hit('coordinator.begin.before')
      const begun = await beginJob({ ...this.#options, keeper })
      environment.failpoints.hit('coordinator.begin.after')
      if (begun.outcome === 'ended') {
        // Closed while there was no coordinator, its tasks run on.
        await this.#options.slots.endSurvivors?.(begun.head.incarnation)
        await finishCommits(this.#options, keeper, begun.head)
        await discardLeftovers(this.#options, keeper, begun.head.start)
        return { kind: 'ended', head: begun.head }
      }
      if (begun.outcome === 'stale') return { kind: 'ended', head: begun.head }
      if (begun.outcome === 'fenced') return { kind: 'fenced', head: begun.head }
      const { head } = begun
      // What the run before this one, at another size, has left was ended by it: nobody is waited for.
      const resumed = begun.resumed && !rescaled
      const block = await keeper.reserveIds(idBlockSize)
      if (block.outcome !== 'won') return this.#ended(keeper, head.start, overtakenOutcome(block))
      const options = { ...this.#options, graph: this.#graphFor(head) }
      this.#run = new JobRun({
        options,
        keeper,
        head,
        block,
        resumed,
        interruptions: this.#interruptions,
        waiting: this.#waiting,
      })
      this.#handedOver.resolve()
      this.#handedOver = Promise.withResolvers()
      observer?.began?.(head, head.restoredFrom)
      const outcome = await this.#run.toItsEnd()
      if (outcome.kind !== 'rescaled') return this.#ended(keeper, head.start, outcome)
      observer?.rescaled?.(outcome.parallelism)
      // The same start goes on, in an incarnation of its own: names and attempts of the run before are never used again (rule 6).
      this.#interruptions.dropFailures()
      rescaled = true
    }
  }

  /** A rescale of this start outlives the coordinator that was asked for it. */
  #graphFor({ rescaledTo }: Head): JobGraph {
    const { graph, graphAt, environment } = this.#options
    if (rescaledTo === undefined || environment.planted.has('rescale-keeps-old-size')) return graph
    if (graphAt === undefined) throw coordinatorError('MR-O26', `HEAD says parallelism ${rescaledTo}.`)
    return graphAt(rescaledTo)
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
    this.#run?.parts.checkpointing.handle({ type: 'checkpointRequested', request: undefined })
  }

  /**
   * A savepoint; the job runs on. `request` names it: asked for again, by whomever and after a restart of the coordinator too, it is
   * answered as the first time. Default: one of its own. Rejects when HEAD takes it surely not (MR-S13, MR-S16).
   */
  savepoint(request?: RequestId): Promise<SavepointAnswer> {
    return this.#ask({ request: request ?? this.#newRequest(), mode: 'savepoint' })
  }

  /**
   * Ends the job with a savepoint: nothing is emitted behind it, and everything before it is committed. With drain event time ends
   * first, so that its timers fire and its windows close; the job is then finished. A failed one leaves the job running.
   */
  stop(options: { readonly drain: boolean; readonly request?: RequestId }): Promise<SavepointAnswer> {
    return this.#ask({ request: options.request ?? this.#newRequest(), mode: options.drain ? 'drain' : 'stop' })
  }

  /**
   * The same start goes on at another parallelism: subtasks stop behind a checkpoint, and begin again from it (rule 25). A failed one leaves
   * the job as it was; so does one that there is no room for any more when its turn has come.
   */
  rescale(parallelism: number, request?: RequestId): Promise<SavepointAnswer> {
    return this.#ask({ request: request ?? this.#newRequest(), mode: 'rescale', parallelism })
  }

  /** Slots are about to go: subtasks stop behind a checkpoint and begin again from it, in other slots (rule 25). */
  move(): void {
    this.#run?.parts.checkpointing.handle({ type: 'checkpointRequested', request: undefined, halt: 'stop' })
  }

  /** As it runs: a rescale changes it. undefined: it has not begun. */
  get graph(): JobGraph | undefined {
    return this.#run?.graph
  }

  /** Of HEAD, as `graph` was built for it. HEAD may be ahead: it is swapped before the run at the new size begins. */
  get rescaledTo(): number | undefined {
    return this.#run?.rescaledTo
  }

  get execution(): Execution | undefined {
    return this.#run?.parts.execution
  }

  get checkpoints(): CheckpointCoordinator | undefined {
    return this.#run?.parts.core
  }

  /** For as long as it takes: what HEAD may hold will be carried out, so that nobody may hear that it has failed. */
  async #ask(asked: SavepointRequest): Promise<SavepointAnswer> {
    for (;;) {
      const run = this.#run
      if (run === undefined) return { outcome: 'failed', detail: 'the job does not run yet' }
      const handedOver = this.#handedOver.promise
      try {
        const answer = await run.parts.savepoints.ask(asked)
        if (answer !== undefined) return answer
        await handedOver
        if (this.#run === run) return { outcome: 'ended', detail: 'the job has ended' }
      } catch (error) {
        // The keeper has tried for a minute: this loop does not spin.
        if (!isUnclear(error)) throw error
      }
    }
  }

  #newRequest(): RequestId {
    return requestId(this.#options.environment.random.id())
  }

  async #ended(keeper: HeadKeeper, start: Start, outcome: JobOutcome): Promise<JobOutcome> {
    await finishCommitsAfter(this.#options, keeper, { start, outcome })
    if (outcome.kind !== 'fenced') await discardLeftovers(this.#options, keeper, start)
    return outcome
  }
}

function isUnclear(error: unknown): boolean {
  return error instanceof MillraceError && error.code === 'MR-S12'
}
