// Errors between a worker's process and the coordinator.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const workerErrors = {
  'MR-D01': {
    meaning: 'A message of the direct connection between worker and coordinator is not understood.',
    who: 'millrace',
    retry: true,
    remedy:
      'See that nothing but workers of this job connects to coordinator.workersAddress; the connection is closed.',
  },
  'MR-D02': {
    meaning: 'Worker and coordinator are of different versions.',
    who: 'user',
    retry: false,
    remedy: 'Run the same version of millrace (the same image) in the coordinator and in all workers of a job.',
  },
  'MR-D03': {
    meaning: 'The worker belongs to another job than the coordinator.',
    who: 'user',
    retry: false,
    remedy: 'Give the worker the config of its own job: job.id and coordinator.workersAddress belong together.',
  },
  'MR-D04': {
    meaning: "The worker's token is not the job's.",
    who: 'user',
    retry: false,
    remedy: 'Give coordinator and workers the same file in tokens.workerFile, and start the worker again.',
  },
  'MR-D05': {
    meaning: 'Another worker is registered under the same name.',
    who: 'user',
    retry: true,
    remedy:
      'Give each worker of a job a name of its own by --name; where the other one is gone, it is replaced within seconds.',
  },
  'MR-D06': {
    meaning: 'The coordinator was overtaken by a newer one.',
    who: 'millrace',
    retry: true,
    remedy: 'Nothing: the worker looks for the newer one, and the older one ends by itself.',
  },
  'MR-D07': {
    meaning: 'A worker has offered more than it may.',
    who: 'user',
    retry: false,
    remedy: 'Give worker.slots or --slots a number from 1 to 256, and the worker a name of at most 253 characters.',
  },
  'MR-D09': {
    meaning:
      'A worker was started for another start of the job, or with other code, arguments or settings than the coordinator.',
    who: 'user',
    retry: true,
    remedy:
      'Start it again with the process config and the job file that the coordinator has; it tries again until then.',
  },
  'MR-D08': {
    meaning: 'The coordinator has as many connections as it takes.',
    who: 'user',
    retry: true,
    remedy: 'Run fewer workers with more slots each; the worker tries again.',
  },
  'MR-D10': {
    meaning: 'The coordinator has not begun yet.',
    who: 'external system',
    retry: true,
    remedy:
      'Nothing: the worker looks again, for another coordinator too. What this one waits for is in its log and in GET /readyz, such as the object store.',
  },
} as const satisfies Record<string, ErrorRow>

export const workerError = errorsOf(workerErrors)
