// Errors of running a job on one machine.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const localErrors = {
  'MR-L01': {
    meaning: 'The job file could not be loaded.',
    who: 'user',
    retry: false,
    remedy:
      'Mend what the message says; a job file is plain TypeScript without enums, namespaces and parameter properties. It imports millrace, millrace/connectors, zod, packages installed beside it, and files by their whole name with its .ts.',
  },
  'MR-L02': {
    meaning: 'A slot thread ended with an error outside any subtask.',
    who: 'user',
    retry: true,
    remedy: 'Look for timers, event handlers or promises in the job that nobody awaits; the thread is started again.',
  },
  'MR-L03': {
    meaning: "The file with a running job's address cannot be read.",
    who: 'user',
    retry: false,
    remedy: 'Look at the file; where the job does not run any more, it can be removed.',
  },
  'MR-L04': {
    meaning: 'A slot thread did not end.',
    who: 'user',
    retry: true,
    remedy:
      'Code of the job blocks it in a call that nothing interrupts, such as execFileSync, a read from a pipe, or a native addon. The command leaves as if it were killed; the same command goes on from the last checkpoint.',
  },
} as const satisfies Record<string, ErrorRow>

export const localError = errorsOf(localErrors)
