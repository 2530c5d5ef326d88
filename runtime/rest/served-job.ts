// What REST is given of the job that it serves.

import type { Clock, Random } from '../base/environment.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Head } from '../storage/head-contract.ts'
import type { ControlledJob } from './controlled-job.ts'
import type { Ping } from './health.ts'
import type { JobHistory } from './job-history.ts'
import type { Locate } from './job-views.ts'

export interface ServedJob {
  readonly job: ControlledJob
  readonly graph: JobGraph
  readonly history: JobHistory
  /** Random, of this process: tells it from another one that got its address. */
  readonly instance: string
  readonly readHead: () => Promise<Head>
  readonly locate: Locate
  readonly clock: Clock
  readonly random: Random
  /** What it waits for before it can begin, for anybody to read; undefined: nothing. */
  readonly waitsFor?: () => string | undefined
  readonly pings: { readonly storage?: Ping; readonly nats?: Ping }
  /** Every change must name its start and its request; else it may (a local job has one user). */
  readonly identified: boolean
}
