// Errors that the coordinator of a job gives.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const coordinatorErrors = {
  'MR-O01': {
    meaning: 'The job failed and its restart strategy allows no further restart.',
    who: 'user',
    retry: false,
    remedy:
      'Mend the cause. What it committed stays. On one machine the job is over, and its run command begins a new one from the beginning; on several machines its next start (a larger job.start; of a StreamJob a change of its spec, or restartNonce) goes on from where it was.',
  },
  'MR-O02': {
    meaning: 'More checkpoints in a row did not complete than are tolerated.',
    who: 'user',
    retry: true,
    remedy:
      'Look at the last reason: raise the timeout for slow ones, mend the store for refused ones, or tolerate more failures.',
  },
  'MR-O10': {
    meaning: 'The stored state of a split enumerator does not fit the source of today.',
    who: 'user',
    retry: false,
    remedy: 'Go back to the source that wrote it, or give the source a new uid to read from the beginning.',
  },
  'MR-O11': {
    meaning: 'A slot was lost.',
    who: 'millrace',
    retry: true,
    remedy:
      'Its subtasks are restarted in a fresh slot; if it is lost again and again, look at the memory and the log of its process.',
  },
  'MR-O12': {
    meaning: 'A slot did not register in time.',
    who: 'external system',
    retry: true,
    remedy: 'It is started again; if that does not help, look at what the job module does while it is loaded.',
  },
  'MR-O13': {
    meaning: 'A slot speaks another version of the control messages.',
    who: 'user',
    retry: false,
    remedy: 'Run coordinator and workers from one release.',
  },
  'MR-O14': {
    meaning: 'A slot built another job graph than the coordinator.',
    who: 'user',
    retry: false,
    remedy:
      'Give all processes the same job file and arguments, and let the graph depend on nothing else (no clock, no randomness, no environment).',
  },
  'MR-O15': {
    meaning: 'No reserved checkpoint ids are left.',
    who: 'external system',
    retry: true,
    remedy:
      'HEAD could not be written for long. Look at the store, then give the same command again: it goes on from the last checkpoint.',
  },
  'MR-O17': {
    meaning: 'The store holds the HEAD of another job.',
    who: 'user',
    retry: false,
    remedy: 'Give each job a prefix or folder of its own.',
  },
  'MR-O18': {
    meaning: 'The manifest that HEAD names is not there.',
    who: 'user',
    retry: true,
    remedy: 'Bring the object back; the job never starts from an older checkpoint, nor from empty, by itself.',
  },
  'MR-O19': {
    meaning: 'The manifest could not be written.',
    who: 'external system',
    retry: true,
    remedy: 'Look at the store: the checkpoint is given up, the job runs on and takes the next one.',
  },
  'MR-O20': {
    meaning: 'The job could not begin from its restore point.',
    who: 'user',
    retry: false,
    remedy:
      'Mend the cause and give the same command again: the restore point stays, and nothing is started from an older one or from empty.',
  },
  'MR-O21': {
    meaning: 'The restore point could not be read in time.',
    who: 'external system',
    retry: true,
    remedy: 'Look at the store; it is tried again.',
  },
  'MR-O22': {
    meaning: 'A split enumerator did not start in time.',
    who: 'external system',
    retry: true,
    remedy:
      'Look at what its source reads from, such as the file system of its paths; the job restarts by its restart strategy.',
  },
  'MR-O23': {
    meaning: 'The job stopped because what it may commit could not be committed.',
    who: 'user',
    retry: true,
    remedy:
      'Mend the cause and give the same command again: it commits first, and goes on from its last checkpoint. Nothing is dropped unasked.',
  },
  'MR-O24': {
    meaning:
      'Subtasks had halted for a snapshot, to stop the job, to rescale it or to move from a worker that is about to end, and it did not complete.',
    who: 'external system',
    retry: true,
    remedy:
      'They restart from the last checkpoint, and this counts as no restart. See why the snapshot failed, and ask again for what was asked for.',
  },
  'MR-O25': {
    meaning: 'Another command changed the job while this one was about to begin it from a given restore point.',
    who: 'user',
    retry: true,
    remedy:
      'Nothing was started by this command. Look at what the other one does, and give this one again if it is still wanted.',
  },
  'MR-O26': {
    meaning: 'HEAD says that the job was rescaled, and it cannot be built at that parallelism here.',
    who: 'user',
    retry: false,
    remedy: 'Start the job with the version and the manifest that it was rescaled with, or begin its next start.',
  },
  'MR-O27': {
    meaning: 'Subtasks have stopped behind a checkpoint and move to other workers.',
    who: 'millrace',
    retry: true,
    remedy: 'Nothing needs to be done: they go on from that checkpoint, and this counts as no restart.',
  },
  'MR-O28': {
    meaning: 'The job has ended, and what it may still commit could not be committed.',
    who: 'user',
    retry: true,
    remedy:
      'Its end stays, nothing of it runs, and HEAD keeps what may be committed: nothing is dropped. Mend the cause and give the same command again, or millrace admin commit: that is committed first.',
  },
  'MR-O29': {
    meaning: 'The coordinator before this one is gone, and not all subtasks that ran under it run on.',
    who: 'millrace',
    retry: true,
    remedy:
      'Nothing needs to be done: what is named, and all that exchanges records with it, begins again from the last checkpoint; this counts as no restart. If it comes often, see why workers end together with their coordinator.',
  },
} as const satisfies Record<string, ErrorRow>

export const coordinatorError = errorsOf(coordinatorErrors)
