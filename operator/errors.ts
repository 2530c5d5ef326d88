// Errors of the operator's process. What concerns one job is a condition of that job.

import type { ErrorRow } from '../runtime/base/errors.ts'

export const operatorErrors = {
  'MR-P01': {
    meaning: 'The command line of the operator is wrong.',
    who: 'user',
    retry: false,
    remedy: 'See `node operator/main.ts --help`.',
  },
  'MR-P02': {
    meaning: 'The config of the operator cannot be used.',
    who: 'user',
    retry: false,
    remedy: 'Mend the values of the chart and upgrade the release; the chart README lists them.',
  },
  'MR-P03': {
    meaning: 'There is no cluster to connect to.',
    who: 'user',
    retry: false,
    remedy: 'Run the operator in a pod with a service account, or name a kubeconfig by --kubeconfig.',
  },
  'MR-P04': {
    meaning: 'The operator does not lead any more.',
    who: 'millrace',
    retry: true,
    remedy: 'Nothing needs to be done: another operator leads, or this one will again.',
  },
  'MR-P05': {
    meaning: "The keys that sign a job's credentials for NATS are not there.",
    who: 'user',
    retry: true,
    remedy:
      'Make or mend the Secret that the chart names for them (natsAccess), in the namespace of the operator; the job waits.',
  },
  'MR-P06': {
    meaning: 'An object of another owner has the name of one of the job.',
    who: 'user',
    retry: true,
    remedy: 'Delete or rename it; it is left alone, and the job waits.',
  },
  'MR-P07': {
    meaning: 'A Secret of the operator cannot be used.',
    who: 'user',
    retry: true,
    remedy: 'Put back what the Secret held, or delete it if no job runs by it, and the leader makes it anew.',
  },
  'MR-P08': {
    meaning: 'The operator could not be taken down.',
    who: 'user',
    retry: true,
    remedy: 'Look at why its pods stay, then run `helm uninstall` again; jobs run on meanwhile.',
  },
} as const satisfies Readonly<Record<string, ErrorRow>>
