// Errors of manifests and of restoring from them. MR-C50 and above: reading and writing the state itself.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const checkpointErrors = {
  'MR-C01': {
    meaning: 'This object is not the manifest of a checkpoint or savepoint.',
    who: 'user',
    retry: false,
    remedy:
      'Restore the object in the store: it must be the _metadata object of a checkpoint or savepoint, as Millrace wrote it.',
  },
  'MR-C02': {
    meaning: 'A manifest is damaged: its content does not fit its checksum.',
    who: 'external system',
    retry: true,
    remedy:
      'It is read again; if that does not help, restore the object in the store from a copy and give the same command again.',
  },
  'MR-C03': {
    meaning: 'A manifest has a format that this version does not read.',
    who: 'user',
    retry: false,
    remedy: 'Run the version that wrote it, or one whose format is at most one newer.',
  },
  'MR-C04': {
    meaning: 'A manifest contradicts itself; nothing was restored from it.',
    who: 'millrace',
    retry: false,
    remedy: 'Restore the object in the store from a copy, and report the manifest and this message.',
  },
  'MR-C05': {
    meaning: 'A snapshot holds something that cannot be written as JSON.',
    who: 'user',
    retry: false,
    remedy: 'Let the sink put only JSON values into the payload of its transactions.',
  },
  'MR-C06': {
    meaning: 'Subtasks of a source or sink contradict each other in what they give to a snapshot.',
    who: 'user',
    retry: false,
    remedy:
      'Let the sink name its transactions so that no other subtask, attempt and checkpoint gives the same name, and its writers give their state one redistribution.',
  },
  'MR-C10': {
    meaning: 'The max parallelism differs from the one that the state was written with.',
    who: 'user',
    retry: false,
    remedy:
      'Set it back to the recorded number: keys would fall into other key groups and their state would not be found.',
  },
  'MR-C11': {
    meaning:
      'The restore point holds state that no operator of the job takes: its uid is missing, or of another kind of operator.',
    who: 'user',
    retry: false,
    remedy:
      'Give the operator its uid back, and one of another kind a uid of its own, or allow that the state is dropped (--allow-non-restored-state; in a process config job.restore.allowNonRestoredState): it never is unasked.',
  },
  'MR-C12': {
    meaning:
      'The restore point holds transactions that no sink of the job commits: its uid is missing, or of another kind of operator. They are not confirmed and are never dropped.',
    who: 'user',
    retry: false,
    remedy: 'Start the revision that wrote them until its commits are confirmed, then remove the sink.',
  },
  'MR-C13': {
    meaning: 'Two operators of the job have the same uid.',
    who: 'user',
    retry: false,
    remedy: 'Give each operator a uid of its own.',
  },
  'MR-C14': {
    meaning: 'An operator without a given uid would take over state.',
    who: 'user',
    retry: false,
    remedy: 'Give it the uid under which the state is stored, or set autoUid if its generated uid may be trusted.',
  },
  'MR-C15': {
    meaning: 'Operators of one chain hold state that was written with different max parallelisms.',
    who: 'user',
    retry: false,
    remedy: 'Keep them in different vertices (disableChaining), as they were when the state was written.',
  },
  'MR-C16': {
    meaning: 'A vertex had finished in the restore point, but would now get new data.',
    who: 'user',
    retry: false,
    remedy: 'Give the operators behind the new input new uids, or begin a new job under another name.',
  },
  'MR-C17': {
    meaning: 'The savepoint was taken with drain: its event time has ended, and its windows have fired.',
    who: 'user',
    retry: false,
    remedy:
      'Begin from a savepoint without drain, or allow it (--allow-drained; in a process config job.restore.allowDrained) if every record still to come may count as late.',
  },
  'MR-C18': {
    meaning: 'The restore point holds keyed state of an operator that is not keyed in the job.',
    who: 'user',
    retry: false,
    remedy: 'Put the operator behind its keyBy again, or give it a new uid: state is never dropped unasked.',
  },
  'MR-C19': {
    meaning:
      'A source had finished in the restore point, which does not say what it had read, and other operators are chained behind it now: it would be read again.',
    who: 'user',
    retry: false,
    remedy:
      'Chain behind it what was chained before, or give the source a new uid, under which it is read from its beginning.',
  },
} as const satisfies Record<string, ErrorRow>

export const checkpointError = errorsOf(checkpointErrors)
