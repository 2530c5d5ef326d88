// Why an admin command does not do what it was asked for.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const adminErrors = {
  'MR-A01': {
    meaning: 'HEAD is at another start of the job than the one that was named.',
    who: 'user',
    retry: false,
    remedy:
      'Nothing was changed. Look at what that start is, by millrace admin restore-point, and name it if it is meant.',
  },
  'MR-A02': {
    meaning: 'The job has not ended, and may be running.',
    who: 'user',
    retry: false,
    remedy:
      'Stop it, or close it by millrace admin close; or give --job-is-down where you know that neither its coordinator nor its workers run.',
  },
  'MR-A03': {
    meaning: 'Another process began to run the job while this command looked at it.',
    who: 'user',
    retry: false,
    remedy: 'Nothing was deleted. Give the command again once the job has ended.',
  },
  'MR-A04': {
    meaning: 'The savepoint is needed.',
    who: 'user',
    retry: false,
    remedy:
      'Nothing was deleted. Let the job complete a checkpoint, or end what needs it, and give the command again; a job that is deleted for good needs nothing after millrace admin close --deleted.',
  },
  'MR-A05': {
    meaning: 'The savepoint was made by another job.',
    who: 'user',
    retry: false,
    remedy: 'Nothing was deleted. Name the job that made it, or give --foreign if it may go all the same.',
  },
  'MR-A06': {
    meaning: 'This is no savepoint that can be disposed of.',
    who: 'user',
    retry: false,
    remedy:
      'Nothing was deleted. Name the folder of a savepoint, or the _metadata in it. Checkpoints belong to their job; what neither is goes by millrace admin sweep.',
  },
  'MR-A07': {
    meaning:
      'The checkpoints of a job are taken away only when it is over for good and everything permitted is committed.',
    who: 'user',
    retry: false,
    remedy: 'Nothing was deleted. Give millrace admin close --deleted and millrace admin commit first.',
  },
  'MR-A08': {
    meaning: 'Not everything could be deleted.',
    who: 'external system',
    retry: true,
    remedy: 'HEAD remembers what is left. Look at the store and give the command again.',
  },
  'MR-A09': {
    meaning: 'The code is of an earlier start than the one that permitted the commits: it may mean other transactions.',
    who: 'user',
    retry: false,
    remedy: 'Nothing was committed. Give the config of that start, or of a later one.',
  },
  'MR-A10': {
    meaning:
      'A savepoint in the store of the job cannot be read: which transactions a start from it would commit is unknown.',
    who: 'user',
    retry: false,
    remedy:
      'Nothing was deleted. Bring its _metadata back, use the version that wrote it, or take the savepoint away by millrace admin dispose, and give the command again. Without the code of the job a sweep looks at objects alone.',
  },
} as const satisfies Record<string, ErrorRow>

export const adminError = errorsOf(adminErrors)
