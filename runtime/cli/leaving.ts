// What Ctrl-C and SIGTERM do to a run. Each step is quicker than the one before, and none loses anything:
//
//   runs ──first──▶ stopping with a savepoint ──second──▶ suspending ──third──▶ leaves at once
//     │                       └─ failed: runs on ──next──▶ suspending
//     └─ not all of it runs ──first──▶ suspending
//
// Only `millrace cancel` ends a job for good: two keys pressed must not cost what a job has gathered.

import { requestId } from '../base/ids.ts'
import type { Random } from '../base/environment.ts'
import type { JobId } from '../base/ids.ts'
import type { JobCoordinator } from '../coordinator/job-coordinator.ts'
import type { Head } from '../storage/head-contract.ts'

export type LeavingJob = Pick<JobCoordinator, 'stop' | 'suspend'> & {
  readonly execution: { readonly allRunning: boolean } | undefined
}

export interface LeavingOptions {
  readonly id: JobId
  readonly job: LeavingJob
  readonly readHead: () => Promise<Head | undefined>
  readonly random: Random
  readonly say: (text: string) => void
}

export class Leaving {
  readonly #options: LeavingOptions
  #state: 'runs' | 'stopping' | 'runs on' | 'suspending' = 'runs'

  constructor(options: LeavingOptions) {
    this.#options = options
  }

  /** Whether the job is on its way to its end. */
  get isLeaving(): boolean {
    return this.#state === 'stopping' || this.#state === 'suspending'
  }

  /** One more signal. false: there is nothing to wait for; leave at once. */
  signal(): boolean {
    const { id, job, say } = this.#options
    if (this.#state === 'suspending') return false
    const isFirst = this.#state === 'runs'
    if (isFirst && job.execution?.allRunning === true) {
      this.#state = 'stopping'
      say(`Stopping ${id} with a savepoint. Once more suspends it at its last checkpoint; a third time leaves at once.`)
      void this.#stop()
      return true
    }
    this.#state = 'suspending'
    say(
      `Suspending ${id}${isFirst ? ', which does not run in all its parts now' : ''}. Once more leaves at once, which loses nothing either.`,
    )
    job.suspend()
    return true
  }

  /** Never rejects. */
  async #stop(): Promise<void> {
    const { job, readHead, random } = this.#options
    const request = requestId(random.id())
    try {
      const answer = await job.stop({ drain: false, request })
      if (answer.outcome === 'completed') return
      // A job that has ended meanwhile answers so too, and tells its end itself; a savepoint that failed stands in HEAD.
      const head = await readHead()
      const failed = head?.savepointResults.some((result) => result.request === request) === true
      if (failed && head.end.kind === 'none') this.#runsOn(answer.detail)
    } catch (error) {
      this.#runsOn(error instanceof Error ? error.message : String(error))
    }
  }

  #runsOn(why: string): void {
    if (this.#state !== 'stopping') return
    this.#state = 'runs on'
    const { id, say } = this.#options
    say(`${id} could not be stopped with a savepoint and runs on: ${why}. Ctrl-C suspends it.`)
  }
}
