// What can go wrong with stores, names and HEAD.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow, MillraceError } from '../base/errors.ts'

export const storageErrors = {
  'MR-S01': {
    meaning: 'The store did not answer, or answered with an error.',
    who: 'external system',
    retry: true,
    remedy: 'Look at the store; the call is repeated and nothing is taken for absent meanwhile.',
  },
  'MR-S02': {
    meaning: 'The store is full.',
    who: 'user',
    retry: true,
    remedy: 'Free space or raise the quota; the job goes on by itself then.',
  },
  'MR-S03': {
    meaning: 'A stored object is shorter than what was written.',
    who: 'user',
    retry: false,
    remedy: 'Restore the object in the store from a copy; the job never starts from an older checkpoint by itself.',
  },
  'MR-S04': {
    meaning: 'A name cannot be used in the store.',
    who: 'user',
    retry: false,
    remedy: 'Use letters, digits and . _ = - in each part of it, 128 at most, not beginning with a dot.',
  },
  'MR-S05': {
    meaning: 'A transaction name would be longer than external systems take.',
    who: 'user',
    retry: false,
    remedy: 'Shorten the job id or the uid of the sink.',
  },
  'MR-S06': {
    meaning: 'The store does not do what exactness needs: it failed its probe.',
    who: 'user',
    retry: false,
    remedy:
      'Use a store that creates an object only if there is none and swaps only what is unchanged (on disks: one with hard links).',
  },
  'MR-S07': {
    meaning: 'A new object has the name of an old one.',
    who: 'millrace',
    retry: false,
    remedy: 'Report this; the object was not written and the old one is unchanged.',
  },
  'MR-S08': {
    meaning: 'The store refuses access.',
    who: 'user',
    retry: false,
    remedy: 'Give this process the rights to read and write there.',
  },
  'MR-S10': {
    meaning: 'HEAD, the pointer to the state of the job, cannot be read.',
    who: 'user',
    retry: false,
    remedy:
      'Nothing was started. Put back an undamaged HEAD (a directory keeps the earlier ones beside it), or begin a new job under another name.',
  },
  'MR-S11': {
    meaning: 'HEAD was written in a format that this version does not read.',
    who: 'user',
    retry: false,
    remedy: 'Run the version that wrote it, or one that is at most one format newer.',
  },
  'MR-S12': {
    meaning: 'The outcome of a write of HEAD stayed unclear up to the deadline.',
    who: 'external system',
    retry: true,
    remedy: 'Look at the store; until a later write is clear nothing is restored, aborted or deleted.',
  },
  'MR-S13': {
    meaning: 'Too many savepoint requests wait.',
    who: 'user',
    retry: true,
    remedy: 'Wait for earlier ones to be answered.',
  },
  'MR-S15': {
    meaning: 'A start from a given restore point is refused while HEAD has unconfirmed commits.',
    who: 'user',
    retry: false,
    remedy: 'Run the job as it is until its commits are confirmed, then start it again from there.',
  },
  'MR-S16': {
    meaning:
      'HEAD is gone, and the job has begun before: its folder was removed, or emptied in part; or the storage is another now.',
    who: 'user',
    retry: false,
    remedy:
      'Nothing is begun from empty unasked. Put the folder, whole, or the address in storage back, and give the same command again; or take the rest of it away, with what the job wrote, to begin anew; a savepoint that lies there may be moved out first and begun from with --from.',
  },
  'MR-S17': {
    meaning: 'The path given to begin from is no savepoint or checkpoint.',
    who: 'user',
    retry: false,
    remedy:
      'Name the folder of a savepoint (savepoint-<id>, or a whole copy of it), a folder objects/chk-<id>, or the _metadata in it.',
  },
  'MR-S18': {
    meaning: 'A checkpoint can be begun from only while HEAD of its job retains it.',
    who: 'user',
    retry: false,
    remedy:
      'Name a checkpoint that the job still lists, where it lies: its files belong to the job, which takes them away when it drops it. To keep or copy state, take a savepoint.',
  },
  'MR-S19': {
    meaning: 'The job goes on from its HEAD, which was seen before, and there is none at this place.',
    who: 'user',
    retry: false,
    remedy:
      'Nothing is begun from empty unasked, at an empty place neither. Bring back what was there, or the address in storage. Else say where the job begins, once what it wrote there is taken away or moved: a StreamJob with a path in restoreFrom and another restoreNonce, or from nothing with upgradeMode stateless and another restartNonce, or as a new StreamJob; a process config with job.restore.from or job.restore.empty instead of goesOn.',
  },
  'MR-S30': {
    meaning: 'The store does not accept the credentials.',
    who: 'user',
    retry: false,
    remedy:
      'Check access key id, secret key and session token (the files that storage.s3 names, else what the AWS SDK finds: environment, shared files, web identity).',
  },
  'MR-S31': {
    meaning: 'The credentials for the store have expired.',
    who: 'user',
    retry: true,
    remedy: 'Renew them where they come from; files are read again, and the job goes on by itself then.',
  },
  'MR-S32': {
    meaning: 'The bucket does not exist.',
    who: 'user',
    retry: false,
    remedy:
      'Create it, or correct the bucket in storage.checkpoints or storage.savepoints, or the endpoint in storage.s3.',
  },
  'MR-S33': {
    meaning: 'The bucket is in another region than the one asked.',
    who: 'user',
    retry: false,
    remedy: 'Set storage.s3.region to the region of the bucket.',
  },
  'MR-S34': {
    meaning: 'The endpoint of the store cannot be reached.',
    who: 'user',
    retry: true,
    remedy:
      'Check storage.s3.endpoint, the name service, and that this process may connect there (network policies, firewalls).',
  },
  'MR-S35': {
    meaning: 'The certificate of the store is not trusted.',
    who: 'user',
    retry: false,
    remedy: 'Use a certificate of a known authority for that host, or name the authority in NODE_EXTRA_CA_CERTS.',
  },
  'MR-S36': {
    meaning: 'The clocks of this machine and of the store differ too much.',
    who: 'user',
    retry: false,
    remedy: 'Synchronise the clock of this machine (NTP); the store refuses signatures of another time.',
  },
  'MR-S37': {
    meaning: 'What the store gave differs from its checksum, also when asked again.',
    who: 'user',
    retry: false,
    remedy: 'Restore the object in the store from a copy; the job never starts from an older checkpoint by itself.',
  },
  'MR-S38': {
    meaning: 'The store refuses a request as invalid.',
    who: 'user',
    retry: false,
    remedy: 'Look at what the store says; nothing was written.',
  },
  'MR-S39': {
    meaning: 'The settings of the store cannot be used.',
    who: 'user',
    retry: false,
    remedy:
      'storage.checkpoints and storage.savepoints are s3://bucket/prefix or file:///folder; storage.s3 names endpoint, region and the files of the credentials.',
  },
  'MR-S40': {
    meaning: "The place for savepoints is another job's.",
    who: 'user',
    retry: false,
    remedy:
      'Give each job a place of its own in storage.savepoints. If it is this job, and its store was moved, take objects/owner away there; savepoints stay as they are.',
  },
} as const satisfies Readonly<Record<string, ErrorRow>>

export const storageError = errorsOf(storageErrors)

/** The error of a failed call of a file system or store; Node's codes say which. */
export function storageFailure(doing: string, cause: unknown): MillraceError {
  const code = errorCodeOf(cause)
  if (code === 'ENOSPC' || code === 'EDQUOT') return storageError('MR-S02', `${doing}.`, cause)
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return storageError('MR-S08', `${doing}.`, cause)
  return storageError('MR-S01', `${doing}: ${cause instanceof Error ? cause.message : String(cause)}.`, cause)
}

/** Node's error code (`ENOENT` …), if the error has one. */
export function errorCodeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}
