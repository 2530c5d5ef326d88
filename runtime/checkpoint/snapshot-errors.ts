// What can go wrong when the bytes of a snapshot are written or read.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const snapshotErrors = {
  'MR-C50': {
    meaning: 'State that a snapshot names is not in the store.',
    who: 'user',
    retry: false,
    remedy: 'Restore the object in the store from a copy; the job never starts from an older checkpoint by itself.',
  },
  'MR-C51': {
    meaning: 'State in the store differs from what was written.',
    who: 'user',
    retry: false,
    remedy: 'Restore the object in the store from a copy; the job never starts from an older checkpoint by itself.',
  },
  'MR-C52': {
    meaning: 'State could not be read from the store in time.',
    who: 'external system',
    retry: true,
    remedy: 'Look at the store; the restart strategy decides when the job tries again.',
  },
  'MR-C53': {
    meaning: 'State could not be written to the store in time.',
    who: 'external system',
    retry: true,
    remedy: 'Look at the store; this checkpoint fails, the next one is tried at its time.',
  },
  'MR-C54': {
    meaning: 'A file of the savepoint or checkpoint to begin from is missing, or shorter than what was written.',
    who: 'user',
    retry: false,
    remedy: 'Copy the whole folder again, or begin from another one; nothing was started.',
  },
} as const satisfies Readonly<Record<string, ErrorRow>>

export const snapshotError = errorsOf(snapshotErrors)
