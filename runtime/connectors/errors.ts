// The error table of sources and sinks (MR-N…).

import { errorsOf, type ErrorRow } from '../base/errors.ts'

export const connectorErrors = {
  'MR-N01': {
    meaning: 'An input file does not exist.',
    who: 'user',
    retry: false,
    remedy: 'Give the path of an existing file; paths are relative to the folder in which the command runs.',
  },
  'MR-N02': {
    meaning: 'An input file could not be read.',
    who: 'external system',
    retry: true,
    remedy: 'Check the disk and the rights on the file; the job tries again by its restart strategy.',
  },
  'MR-N03': {
    meaning: 'An input file changed while the job was reading it.',
    who: 'user',
    retry: false,
    remedy: 'Put the old content back, or start the job anew: positions in a changed file mean nothing.',
  },
  'MR-N04': {
    meaning: 'A record of the input is malformed.',
    who: 'user',
    retry: false,
    remedy: "Mend the input or the schema, or choose malformed: 'skip' or 'side output'.",
  },
  'MR-N05': {
    meaning: 'An input file is not in the expected format.',
    who: 'user',
    retry: false,
    remedy: 'Check that the file is whole and that the source fits its format.',
  },
  'MR-N06': {
    meaning: 'The configuration of a source or sink cannot work.',
    who: 'user',
    retry: false,
    remedy: 'Change the named option.',
  },
  'MR-N07': {
    meaning: 'A record of the input has no end within the limit.',
    who: 'user',
    retry: false,
    remedy: 'Check the file for a missing line end or an unclosed quote.',
  },
  'MR-N08': {
    meaning: 'Reading an input file took longer than the deadline.',
    who: 'external system',
    retry: true,
    remedy: 'Check the disk; the job tries again by its restart strategy.',
  },
  'MR-N09': {
    meaning: 'The event time of a record is not an integer number of milliseconds.',
    who: 'user',
    retry: false,
    remedy:
      'Let the timestamp function of the watermark strategy, or the source where there is none, give integer milliseconds since the epoch.',
  },
  'MR-N10': {
    meaning: 'A sink could not write.',
    who: 'external system',
    retry: true,
    remedy:
      'Mend what the message says: the folder, the rights on it, or the disk and its room. Nothing is lost: the job restarts from its last checkpoint by its restart strategy.',
  },
  'MR-N11': {
    meaning: 'A sink got records faster than its disk takes them, beyond the limit of its buffer.',
    who: 'external system',
    retry: true,
    remedy: 'Use a faster disk or a higher parallelism for the sink.',
  },
  'MR-N12': {
    meaning: 'A transaction that must be committed is unknown to the external system.',
    who: 'user',
    retry: false,
    remedy:
      'Look whether its records arrived, and bring the transaction back: the job never counts them as written unasked.',
  },
  'MR-N13': {
    meaning: 'The name of an output file is taken by a file with other content.',
    who: 'user',
    retry: false,
    remedy: 'Move that file away: the job never overwrites one.',
  },
  'MR-N14': {
    meaning: 'A commit did not succeed.',
    who: 'external system',
    retry: true,
    remedy: 'The commit is tried again; check the disk or the external system if it stays so.',
  },
  'MR-N15': {
    meaning: 'A column of the schema is not in the file.',
    who: 'user',
    retry: false,
    remedy: 'Name the column as the file does, or make the field optional.',
  },
  'MR-N16': {
    meaning: 'A pre-committed file is not what was pre-committed.',
    who: 'external system',
    retry: false,
    remedy: 'Restore the named file below .pending, or check its records by hand: the disk lost what it had promised.',
  },
  'MR-N17': {
    meaning: 'A stored split, source state or transaction cannot be read.',
    who: 'user',
    retry: false,
    remedy: 'Run the job with the version that wrote it.',
  },
  'MR-N18': {
    meaning: 'A record of the ledger does not carry the magic number.',
    who: 'millrace',
    retry: false,
    remedy: 'A byte was shifted or changed on the way; report it with the seed.',
  },
  'MR-N19': {
    meaning: 'A record cannot be written in the format of its sink.',
    who: 'user',
    retry: false,
    remedy:
      'Emit a value that has such a form: instead of a Map its entries, of a Set an array, of bytes a text such as base64, of NaN and infinity null; a function of map that returns nothing gives undefined.',
  },
  'MR-N20': {
    meaning: 'A file source has other paths today than in the restore point that the job begins at.',
    who: 'user',
    retry: false,
    remedy:
      'Give the paths of before, and read new files by a source of their own with its own uid; or give this source a new uid and the command --allow-non-restored-state, and it reads all its paths from the beginning.',
  },
  'MR-N21': {
    meaning: 'A source or watermark generator of the job did what its contract does not allow.',
    who: 'user',
    retry: false,
    remedy:
      'Mend its code by what the message says; the conformance tests of sources find most of what such a contract asks for.',
  },
  'MR-N30': {
    meaning: 'The ledger server did not answer.',
    who: 'external system',
    retry: true,
    remedy:
      'Check that it runs and can be reached at this address; nothing is lost: what has no answer is sent again, or written anew from the last checkpoint.',
  },
  'MR-N31': {
    meaning: 'The ledger server refused a call.',
    who: 'external system',
    retry: true,
    remedy:
      'Read what it says; the job goes on from its last checkpoint. If it stays so, look whether another server or folder answers at this address.',
  },
} as const satisfies Readonly<Record<`MR-N${string}`, ErrorRow>>

export const connectorError = errorsOf(connectorErrors)

/** The message of anything thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
