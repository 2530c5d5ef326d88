// The job's graph, the same in the coordinator and in each slot: both build it by this.

import { unknownArguments } from '../job/argument-names.ts'
import { buildGraph } from '../job/build-graph.ts'
import type { JobGraph } from '../job/contract.ts'
import type { Job } from '../job/define-job.ts'
import type { ProcessConfig } from './contract.ts'
import { distributedError } from './errors.ts'
import { jobSettingsOf } from './process-config.ts'

/** `parallelism`: of a rescale in this start; undefined: the config's, else the job's. Throws MR-J…. */
export function graphOf(job: Job, config: ProcessConfig, parallelism: number | undefined): JobGraph {
  const { id, name, args, maxParallelism } = config.job
  const unknown = unknownArguments(job.args, typeof args === 'object' && args !== null ? Object.keys(args) : [])
  if (unknown !== undefined) throw distributedError('MR-D35', unknown)
  return buildGraph(job, {
    args,
    parallelism: parallelism ?? config.job.parallelism,
    maxParallelism,
    settings: jobSettingsOf(config),
    name,
    job: id,
  })
}
