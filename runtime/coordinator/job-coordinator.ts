// One job's coordinator: takes HEAD, restores, deploys, checkpoints, and restarts what failed, until the job ends.
//
//   begin ─▶ restore ─▶ deploy ─▶ run ──all finished, all confirmed──▶ finished
//              ▲                   │
//              └──── restart ◀─────┴─ failure      run ──suspend──▶ suspended      anything ──another incarnation──▶ fenced
//
// Whatever the end but fenced: the tasks are ended first, and then what HEAD permits is committed without them (rules 2, 5).

import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import { requestId } from '../base/ids.ts'
import type { RequestId } from '../base/ids.ts'
import type { SavepointRequest } from '../storage/head-contract.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { beginJob } from './begin.ts'
import { idBlockSize } from './checkpoint-ids.ts'
import type { JobCoordinatorOptions, JobOutcome, SavepointAnswer } from './coordinator-contract.ts'
import type { Execution } from './execution.ts'
import { Interruptions } from './interruptions.ts'
import { JobRun, overtakenOutcome } from './job-run.ts'
import { finishCommits, finishCommitsAfter } from './permitted-commits.ts'

export class JobCoordinator {
  readonly #options: JobCoordinatorOptions
  readonly #interruptions = new Interruptions()
  #run: JobRun | undefined

  constructor(options: JobCoordinatorOptions) {
    this.#options = options
  }

  /** Runs the job to its end. Rejects when HEAD or the restore point cannot be read, or the job cannot begin. */
  async run(): Promise<JobOutcome> {
    const { head: headStore, environment, observer } = this.#options
    const keeper = await HeadKeeper.open(headStore, environment)
    const begun = await beginJob({ ...this.#options, keeper })
    if (begun.outcome === 'ended') {
      await finishCommits(this.#options, keeper, begun.head)
      return { kind: 'ended', head: begun.head }
    }
    if (begun.outcome === 'fenced') return { kind: 'fenced', head: begun.head }
    const { head } = begun
    const block = await keeper.reserveIds(idBlockSize)
    if (block.outcome !== 'won') return this.#ended(keeper, overtakenOutcome(block))
    this.#run = new JobRun({ options: this.#options, keeper, head, block, interruptions: this.#interruptions })
    observer?.began?.(head, head.restoredFrom)
    return this.#ended(keeper, await this.#run.toItsEnd())
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
   * answered as the first time. Default: one of its own. Rejects when HEAD cannot be written.
   */
  savepoint(request?: RequestId): Promise<SavepointAnswer> {
    return this.#ask({ request: request ?? this.#newRequest(), mode: 'savepoint' })
  }

  /**
   * Ends the job with a savepoint: nothing is emitted behind it, and everything before it is committed. With drain event time ends
   * first, so that all timers fire and windows close; the job is then finished. A failed one leaves the job running.
   */
  stop(options: { readonly drain: boolean; readonly request?: RequestId }): Promise<SavepointAnswer> {
    return this.#ask({ request: options.request ?? this.#newRequest(), mode: options.drain ? 'drain' : 'stop' })
  }

  get execution(): Execution | undefined {
    return this.#run?.parts.execution
  }

  get checkpoints(): CheckpointCoordinator | undefined {
    return this.#run?.parts.core
  }

  async #ask(asked: SavepointRequest): Promise<SavepointAnswer> {
    const savepoints = this.#run?.parts.savepoints
    return savepoints === undefined ? { outcome: 'failed', detail: 'the job does not run yet' } : savepoints.ask(asked)
  }

  #newRequest(): RequestId {
    return requestId(this.#options.environment.random.id())
  }

  async #ended(keeper: HeadKeeper, outcome: JobOutcome): Promise<JobOutcome> {
    await finishCommitsAfter(this.#options, keeper, outcome)
    return outcome
  }
}
