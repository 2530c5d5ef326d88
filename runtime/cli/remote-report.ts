// All that a coordinator tells of its job.

import { health as healthResource, workers as workersResource } from '../rest/operating-resources.ts'
import type { HealthResource, WorkersResource } from '../rest/operating-resources.ts'
import { checkpoints as checkpointsResource, subtasks as subtasksResource } from '../rest/resources.ts'
import type { JobResource } from '../rest/resources.ts'
import type { ProcessReport } from './job-report.ts'
import type { RemoteJob } from './remote-job.ts'

export interface RemoteReport extends Omit<Extract<ProcessReport, { kind: 'running' }>, 'kind'> {
  readonly address: string
  readonly job: JobResource
  readonly workers: WorkersResource
  readonly health: HealthResource
}

/** Throws MR-L37, MR-L33. */
export async function remoteReport({ client, address, job }: RemoteJob): Promise<RemoteReport> {
  const [{ subtasks }, { counters, pending, completed }, workers, health] = await Promise.all([
    client.get('/v1/subtasks', subtasksResource),
    client.get('/v1/checkpoints', checkpointsResource),
    client.get('/v1/workers', workersResource),
    client.get('/v1/health', healthResource),
  ])
  const checkpoints = { counters, pending, last: completed.at(-1) ?? null }
  return { address, job, subtasks, checkpoints, workers, health }
}
