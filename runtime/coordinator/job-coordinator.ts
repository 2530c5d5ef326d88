// One job's coordinator: takes HEAD, restores, deploys, checkpoints, and restarts what failed, until the job ends.
//
//   begin ─▶ restore ─▶ deploy ─▶ run ──all finished, all confirmed──▶ finished
//              ▲                   │
//              └──── restart ◀─────┴─ failure      run ──suspend──▶ suspended      anything ──another incarnation──▶ fenced
//
// Whatever the end but fenced: the tasks are ended first, and then what HEAD permits is committed without them (rules 2, 5).

import type { CheckpointCoordinator } from '../checkpoint/coordinator.ts'
import { HeadKeeper } from '../storage/head-keeper.ts'
import { beginJob } from './begin.ts'
import { idBlockSize } from './checkpoint-ids.ts'
import type { JobCoordinatorOptions, JobOutcome } from './coordinator-contract.ts'
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
    const { head: headStore, store, environment, graph, start, job, observer } = this.#options
    const keeper = await HeadKeeper.open(headStore, environment)
    const begun = await beginJob({ keeper, store, graph, job, start })
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

  get execution(): Execution | undefined {
    return this.#run?.parts.execution
  }

  get checkpoints(): CheckpointCoordinator | undefined {
    return this.#run?.parts.core
  }

  async #ended(keeper: HeadKeeper, outcome: JobOutcome): Promise<JobOutcome> {
    await finishCommitsAfter(this.#options, keeper, outcome)
    return outcome
  }
}
