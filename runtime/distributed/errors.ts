// Errors of a job's processes before they are a job: their config, their secrets, their addresses.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const distributedErrors = {
  'MR-D30': {
    meaning: 'The process config cannot be read.',
    who: 'user',
    retry: false,
    remedy: 'Give the path of a JSON or YAML file to --config.',
  },
  'MR-D31': {
    meaning: 'The process config is wrong.',
    who: 'user',
    retry: false,
    remedy:
      'Mend each field that is named; docs/workers.md has all of them. Secrets stand in files that the config names.',
  },
  'MR-D32': {
    meaning: 'A file with a secret cannot be used.',
    who: 'user',
    retry: false,
    remedy: 'See that the file that the config names is there, can be read by this process, and is not empty.',
  },
  'MR-D33': {
    meaning: 'The coordinator cannot listen for its workers.',
    who: 'user',
    retry: true,
    remedy:
      'See that nothing else uses the port of coordinator.workersAddress, and that coordinator.listenHost is an address of this machine.',
  },
  'MR-D34': {
    meaning: "The coordinator's certificate cannot be used.",
    who: 'user',
    retry: false,
    remedy: 'Give a PEM certificate and the key that belongs to it in coordinator.tls.',
  },
  'MR-D35': {
    meaning: 'The process config gives the job an argument that it does not have.',
    who: 'user',
    retry: false,
    remedy: 'Mend its name in job.args; a misspelt one would silently give way to its default.',
  },
} as const satisfies Record<string, ErrorRow>

export const distributedError = errorsOf(distributedErrors)
