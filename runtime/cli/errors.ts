// Errors of the `millrace` command: what is wrong on its line.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const commandErrors = {
  'MR-L10': {
    meaning: 'The command line is not understood.',
    who: 'user',
    retry: false,
    remedy: 'See millrace --help.',
  },
  'MR-L11': {
    meaning: 'An option has a value that it cannot have.',
    who: 'user',
    retry: false,
    remedy: 'See millrace --help.',
  },
  'MR-L12': {
    meaning: 'The job file does not exist.',
    who: 'user',
    retry: false,
    remedy: 'Give the path of a TypeScript or JavaScript file that exports a job.',
  },
  'MR-L13': {
    meaning: 'The folder to work in does not exist.',
    who: 'user',
    retry: false,
    remedy: 'Make it, or give another one to --folder.',
  },
  'MR-L14': {
    meaning: 'The job has finished, but its summary could not be made.',
    who: 'user',
    retry: false,
    remedy: 'See the cause; the results are complete.',
  },
  'MR-L15': {
    meaning: 'This Node is too old.',
    who: 'user',
    retry: false,
    remedy: 'Run it by npx, which takes the pinned Node on Linux x64, or install a newer Node.',
  },
} as const satisfies Record<string, ErrorRow>

export const commandError = errorsOf(commandErrors)
