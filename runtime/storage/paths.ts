// The only place that formats object keys, HEAD's file names, transaction names and the folders of local stores.
//
//   <job's prefix>/head/head-<number>          HEAD on a directory (rule 1)
//   <job's prefix>/objects/chk-<id>/…          what dies with a checkpoint: `_metadata` and few data objects
//   <job's prefix>/objects/savepoint-<id>/…    self-contained, owned by the user; or in a place of their own:
//   <job's prefix for savepoints>/objects/…    savepoint-<id>/… alone, and `owner`
//   <job's prefix>/objects/shared/…            what a later checkpoint may use (rule 18)
//   <job's prefix>/objects/history/…           what REST remembers of the job (rest/history-keeper.ts)

import { checkpointId, incarnation, jobId, subtaskIndex } from '../base/ids.ts'
import type { Attempt, CheckpointId, Incarnation, JobId, SubtaskIndex } from '../base/ids.ts'
import type { SnapshotKind } from '../record/element.ts'
import type { ObjectKey } from './contract.ts'
import { storageError } from './errors.ts'

const SEGMENT = /^[A-Za-z0-9_=-][A-Za-z0-9._=-]{0,127}$/

/** Where local jobs keep their stores, under the working folder. */
export const LOCAL_ROOT = '.millrace'

/** Throws MR-S04 unless `value` is a key of the job's own store: segments of letters, digits and `._=-`, none beginning with a dot. */
export function parseObjectKey(value: string): ObjectKey {
  for (const segment of value.split('/')) {
    if (!SEGMENT.test(segment)) throw storageError('MR-S04', `Object key ${JSON.stringify(value)}.`)
  }
  return value as ObjectKey
}

// ---- objects of snapshots ----

/** Keys of whatever belongs to checkpoints begin so. */
export const CHECKPOINTS_PREFIX = 'chk-'
/** And those of savepoints. */
export const SAVEPOINTS_PREFIX = 'savepoint-'
/** And those of data that later checkpoints may use. */
export const SHARED_PREFIX = 'shared/'
const METADATA = '_metadata'

/** The folder of one snapshot; ids rise strictly over both kinds, so it belongs to one snapshot for ever (rule 6). */
export function snapshotFolder(id: CheckpointId, kind: SnapshotKind): string {
  return kind === 'checkpoint' ? `${CHECKPOINTS_PREFIX}${id}` : `${SAVEPOINTS_PREFIX}${id}`
}

/** The checkpoint to whose folder an object belongs, or undefined. */
export function checkpointOfKey(key: string): CheckpointId | undefined {
  const match = /^chk-(\d+)\//.exec(key)
  return match === null ? undefined : checkpointId(Number(match[1]))
}

/** The savepoint in whose folder an object lies, or undefined. */
export function savepointOfKey(key: string): CheckpointId | undefined {
  const match = /^savepoint-(\d+)\//.exec(key)
  return match === null ? undefined : checkpointId(Number(match[1]))
}

export function isCheckpointManifest(key: ObjectKey): boolean {
  const id = checkpointOfKey(key)
  return id !== undefined && key === manifestKey(id, 'checkpoint')
}

/** Whether it is the manifest of a savepoint, under the name that it was written under or another that begins so. */
export function isSavepointManifest(key: string): boolean {
  return /^savepoint-[^/]+\/_metadata$/.test(key)
}

export function manifestKey(id: CheckpointId, kind: SnapshotKind): ObjectKey {
  return manifestKeyOfFolder(snapshotFolder(id, kind))
}

/** `folder`: a snapshot's own name, or what a copy of a savepoint was named. */
export function manifestKeyOfFolder(folder: string): ObjectKey {
  return parseObjectKey(`${folder}/${METADATA}`)
}

/** Data that dies with its snapshot. `unique`: never used before. */
export function snapshotDataKey(id: CheckpointId, kind: SnapshotKind, unique: string): ObjectKey {
  return parseObjectKey(`${snapshotFolder(id, kind)}/${unique}`)
}

/** Data that later checkpoints may use. `unique`: never used before. */
export function sharedDataKey(unique: string): ObjectKey {
  return parseObjectKey(`${SHARED_PREFIX}${unique}`)
}

/** Keys of what coordinators remember of the job begin so. */
export const HISTORY_PREFIX = 'history/'

/** `number` rises from 1 within an incarnation, so that a name is never used again (rule 6). */
export function historyKey(by: Incarnation, number: number): ObjectKey {
  return parseObjectKey(`${HISTORY_PREFIX}${by}-${number}`)
}

/** undefined: not a name that historyKey made. */
export function parseHistoryKey(
  key: string,
): { readonly incarnation: Incarnation; readonly number: number } | undefined {
  const match = /^history\/([1-9]\d*)-([1-9]\d*)$/.exec(key)
  return match === null ? undefined : { incarnation: incarnation(Number(match[1])), number: Number(match[2]) }
}

/** What probe.ts writes to find out whether the store honours conditions. */
export function probeKey(unique: string): ObjectKey {
  return parseObjectKey(`probe/${unique}`)
}

/** What says, in a place that is for savepoints alone, whose they are (savepoint-place.ts). */
export const OWNER_KEY = parseObjectKey('owner')

/** Whether an object lies in a savepoint's folder: the user's, who may take it away at any time. */
export function isOfSavepoint(key: string): boolean {
  return key.startsWith(SAVEPOINTS_PREFIX)
}

// ---- objects outside of the job's own store ----

const FILE_SCHEME = 'file://'

/** Whether a key names its object wherever it is read (`scheme:`); else it lies in the store of the job that wrote it. */
export function isAbsoluteKey(key: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/.test(key)
}

/** The key of a file; `path` is absolute. */
export function fileKey(path: string): ObjectKey {
  return `${FILE_SCHEME}${path}` as ObjectKey
}

/** The file that a key names. Throws MR-S04 for any other key. */
export function parseFileKey(key: ObjectKey): string {
  if (!key.startsWith(`${FILE_SCHEME}/`))
    throw storageError('MR-S04', `${JSON.stringify(key)} is not the key of a file.`)
  return key.slice(FILE_SCHEME.length)
}

/**
 * Where an object lies that a manifest names, told by where the manifest lies: what is in the snapshot's own folder moves and is renamed
 * with it, anything else lies in the store around that folder.
 */
export function absoluteKey(
  key: string,
  { manifest, folder }: { readonly manifest: ObjectKey; readonly folder: string },
): ObjectKey {
  if (isAbsoluteKey(key)) return key as ObjectKey
  const around = parentOf(manifest)
  const own = `${folder}/`
  const found = key.startsWith(own) ? joinPath(around, key.slice(own.length)) : joinPath(parentOf(around), key)
  return found as ObjectKey
}

/** A snapshot named by its folder, or by the manifest in it: an absolute path, file:///path, or s3://bucket/key. `folder` is its last part. */
export interface SnapshotPlace {
  readonly manifest: ObjectKey
  readonly folder: string
  /** Of the job's store that it lies in, a path or s3://bucket/prefix; undefined: it lies elsewhere (a savepoint that was copied). */
  readonly storeFolder: string | undefined
}

/** Throws MR-S04 for a file:// of another host. */
export function snapshotPlace(named: string): SnapshotPlace {
  const path = named.startsWith(FILE_SCHEME) ? parseFileKey(named as ObjectKey) : named
  const trimmed = path.length > 1 ? path.replace(/\/+$/, '') : path
  const folder = trimmed.endsWith(`/${METADATA}`) ? parentOf(trimmed) : trimmed
  const objects = parentOf(folder)
  const store = parentOf(objects)
  const manifest = joinPath(folder, METADATA)
  return {
    manifest: isAbsoluteKey(manifest) ? (manifest as ObjectKey) : fileKey(manifest),
    folder: folder.slice(folder.lastIndexOf('/') + 1),
    storeFolder: objects === objectsFolder(store) && store !== S3_SCHEME.slice(0, -1) ? store : undefined,
  }
}

/** How HEAD of the job whose store is `storeFolder` names the manifest: by its key if it lies there under its own name. */
export function manifestKeyIn(storeFolder: string, place: SnapshotPlace): ObjectKey {
  const inPlace = place.storeFolder === storeFolder && isSnapshotFolder(place.folder)
  return inPlace ? parseObjectKey(joinPath(place.folder, METADATA)) : place.manifest
}

/** Whether it is a name that a snapshot was written under. */
export function isSnapshotFolder(name: string): boolean {
  return new RegExp(`^(?:${CHECKPOINTS_PREFIX}|${SAVEPOINTS_PREFIX})\\d+$`).test(name)
}

// ---- S3 ----
//
//   s3://<bucket>/<prefix>/head                HEAD
//   s3://<bucket>/<prefix>/objects/…           as on a directory
//   s3://<bucket>/<prefix>/probe-…             where probe.ts tries swaps

const S3_SCHEME = 's3://'

/** One object of S3. */
export interface S3Place {
  readonly bucket: string
  readonly key: string
}

/** Where a job's store lies. */
export type StorageAddress =
  /** `prefix`: '' for the bucket itself, else without a slash at its ends. */
  | { readonly kind: 's3'; readonly bucket: string; readonly prefix: string }
  /** `folder`: absolute. */
  | { readonly kind: 'file'; readonly folder: string }

/** s3://bucket/prefix or file:///folder. Throws MR-S39 for anything else. */
export function parseStorageAddress(address: string): StorageAddress {
  if (address.startsWith(`${FILE_SCHEME}/`)) {
    const folder = address.slice(FILE_SCHEME.length).replace(/(?<=.)\/+$/, '')
    return { kind: 'file', folder }
  }
  const match = /^s3:\/\/([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(address)
  const prefix = match?.[2]?.replace(/\/+$/, '') ?? ''
  if (match === null || (prefix !== '' && !prefix.split('/').every((segment) => SEGMENT.test(segment))))
    throw storageError('MR-S39', `Storage address ${JSON.stringify(address)}${bucketWords(address)}.`)
  return { kind: 's3', bucket: match[1]!, prefix }
}

/** What is wrong with one, and hard to see. */
function bucketWords(address: string): string {
  const bucket = /^s3:\/\/([^/]*)/.exec(address)?.[1] ?? ''
  if (/[A-Z]/.test(bucket)) return `: names of buckets are lower case, and ${JSON.stringify(bucket)} is not`
  if (bucket !== '' && (bucket.length < 3 || bucket.length > 63))
    return `: the name of a bucket has 3 to 63 characters, and ${JSON.stringify(bucket)} has ${bucket.length}`
  return ''
}

/** As it is compared, and shown. */
export function storageAddressText(address: StorageAddress): string {
  return address.kind === 'file'
    ? fileKey(address.folder)
    : `${S3_SCHEME}${address.bucket}${address.prefix === '' ? '' : `/${address.prefix}`}`
}

/** How an object of the store at the address is named outside of it. */
export function keyOutside(address: StorageAddress, key: ObjectKey): ObjectKey {
  return address.kind === 'file'
    ? fileKey(joinPath(objectsFolder(address.folder), key))
    : s3Key({ bucket: address.bucket, key: `${s3ObjectsPrefix(address.prefix)}${key}` })
}

export function s3Key({ bucket, key }: S3Place): ObjectKey {
  return `${S3_SCHEME}${bucket}/${key}` as ObjectKey
}

/** The bucket and key that an absolute key names, or undefined for one of another scheme. Throws MR-S04 for half of one. */
export function parseS3Key(key: string): S3Place | undefined {
  if (!key.startsWith(S3_SCHEME)) return undefined
  const slash = key.indexOf('/', S3_SCHEME.length)
  if (slash <= S3_SCHEME.length || slash === key.length - 1)
    throw storageError('MR-S04', `${JSON.stringify(key)} names no object of a bucket.`)
  return { bucket: key.slice(S3_SCHEME.length, slash), key: key.slice(slash + 1) }
}

export function s3HeadKey(prefix: string): string {
  return joinPath(prefix, 'head')
}

/** What the keys of all the job's objects begin with. */
export function s3ObjectsPrefix(prefix: string): string {
  return `${joinPath(prefix, 'objects')}/`
}

/** Where probe.ts tries swaps without touching HEAD. */
export function s3ProbeHeadKey(prefix: string, unique: string): string {
  return `${joinPath(prefix, PROBE_HEADS)}${unique}`
}

/** What the keys of whatever probe.ts writes begin with. */
export function s3ProbePrefixes(prefix: string): readonly string[] {
  return [`${s3ObjectsPrefix(prefix)}probe/`, joinPath(prefix, PROBE_HEADS)]
}

const PROBE_HEADS = 'probe-'

/** The job's own key of what lies at `key` of the bucket; undefined: nothing that the job made. */
export function parseS3ObjectKey(prefix: string, key: string): ObjectKey | undefined {
  const objects = s3ObjectsPrefix(prefix)
  const own = key.slice(objects.length)
  return key.startsWith(objects) && own.split('/').every((segment) => SEGMENT.test(segment))
    ? (own as ObjectKey)
    : undefined
}

// ---- HEAD on a directory ----

/** `number` ≥ 1. Padded, so that names sort as numbers do. */
export function headFile(number: number): string {
  return `head-${String(number).padStart(16, '0')}`
}

/** The number of a HEAD file, or undefined for any other name. */
export function parseHeadFile(name: string): number | undefined {
  const match = /^head-(\d{16})$/.exec(name)
  return match === null ? undefined : Number(match[1])
}

// ---- temporaries of a directory ----

/** Folder of half-written files; its leading dot keeps it out of all object keys. */
export const TEMPORARY_FOLDER = '.temporary'

export function temporaryFile(unique: string): string {
  return `write-${unique}`
}

export function joinPath(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`
}

export function parentOf(path: string): string {
  const slash = path.lastIndexOf('/')
  if (slash < 0) return ''
  return slash === 0 ? '/' : path.slice(0, slash)
}

// ---- local jobs ----

/** Which folder holds the folders of all jobs of a name; a name of a namespace has the namespace's. */
export function localJobsFolder(name: string): string {
  return parentOf(joinPath(LOCAL_ROOT, checkedLocalName(name)))
}

/** The address below another, of a place that has the job's name. */
export function addressBelow(address: string, name: string): string {
  return `${address.replace(/\/+$/, '')}/${name}`
}

/** The folder of a local job's store. */
export function localStoreFolder(job: JobId): string {
  return joinPath(LOCAL_ROOT, checkedJobId(job))
}

export function headFolder(storeFolder: string): string {
  return joinPath(storeFolder, 'head')
}

export function objectsFolder(storeFolder: string): string {
  return joinPath(storeFolder, 'objects')
}

/**
 * Where the files of a job lie that came in a ConfigMap; `hash` is of their contents, so that what lies there never changes: a thread
 * that is started again meets the code that the others run. Shared by all jobs of the name.
 */
export function localCodeFolder(name: string, hash: string): string {
  return joinPath(joinPath(LOCAL_ROOT, checkedLocalName(name)), `code-${hash}`)
}

/** Address and token of the process that runs the job. */
export function restFile(storeFolder: string): string {
  return joinPath(storeFolder, 'rest.json')
}

/** Half-written ones, and those on their way out; the leading dot keeps them apart from all jobs. */
export function restTemporaryFile(storeFolder: string, unique: string): string {
  return joinPath(storeFolder, `.rest-${unique}`)
}

/** What lies in a store's folder; a namespace may have the name of a job, and its jobs' folders then lie beside these. */
const STORE_PARTS = /^(head|objects|rest\.json|(probe|code)-.*)$/

/** Where probe.ts tries swaps without touching HEAD. */
export function probeHeadFolder(storeFolder: string, unique: string): string {
  return joinPath(storeFolder, `probe-${unique}`)
}

/** The id of the `number`th local job of a name (rule 28): `<name>`, `<name>.2`, `<name>.3` … */
export function localJobId(name: string, number: number): JobId {
  return checkedJobId(jobId(number === 1 ? checkedLocalName(name) : `${checkedLocalName(name)}.${number}`))
}

/** Which job of `name` a folder in localJobsFolder(name) is, or undefined when it is not one of them. */
export function parseLocalJobFolder(name: string, folder: string): number | undefined {
  const own = name.slice(name.lastIndexOf('/') + 1)
  if (folder === own) return 1
  if (!folder.startsWith(`${own}.`)) return undefined
  const rest = folder.slice(own.length + 1)
  return /^([2-9]|[1-9]\d+)$/.test(rest) ? Number(rest) : undefined
}

/** Throws MR-S04 unless the id is one or more segments as in an object key. */
function checkedJobId(job: JobId): JobId {
  for (const segment of job.split('/')) {
    if (!SEGMENT.test(segment)) throw storageError('MR-S04', `Job id ${JSON.stringify(job)}.`)
  }
  return job
}

/** A name that ends in `.<number>` could be another job's later id; two jobs must never share a folder. */
function checkedLocalName(name: string): string {
  checkedJobId(jobId(name))
  const [, ...inner] = name.split('/')
  const taken = inner.find((segment) => STORE_PARTS.test(segment))
  if (taken !== undefined)
    throw storageError('MR-S04', `Job name ${JSON.stringify(name)}: ${taken} is the name of a folder of stores.`)
  if (/\.\d+$/.test(name))
    throw storageError(
      'MR-S04',
      `Job name ${JSON.stringify(name)} ends in a dot and a number, which marks later jobs of the same name.`,
    )
  return name
}

// ---- transactions ----

/**
 * Escaped job id and uid together. PostgreSQL takes 199 bytes for a prepared transaction; the rest is for the numbers, so that a name
 * fits on the first day or never.
 */
const TRANSACTION_PARTS_LENGTH_MAX = 126

export interface TransactionIdentity {
  readonly job: JobId
  /** Of the sink. */
  readonly uid: string
  readonly attempt: Attempt
  readonly subtask: SubtaskIndex
  readonly checkpoint: CheckpointId
}

/** Rule 24. Letters, digits and `.-_=` only, so that it can be a file name, an id in Kafka, and a name in SQL. Throws MR-S05. */
export function transactionName(identity: TransactionIdentity): string {
  const length = escapePart(identity.job).length + escapePart(identity.uid).length
  if (length > TRANSACTION_PARTS_LENGTH_MAX) {
    throw storageError(
      'MR-S05',
      `Job ${identity.job} and uid ${identity.uid} take ${length} bytes of at most ${TRANSACTION_PARTS_LENGTH_MAX}.`,
    )
  }
  return formatTransaction(identity)
}

/** undefined: not a name that transactionName made, so somebody else's transaction. */
export function parseTransactionName(name: string): TransactionIdentity | undefined {
  const match = /^mr1_([^_]+)_([^_]+)_(\d+)\.(\d+)_(\d+)_(\d+)$/.exec(name)
  if (match === null) return undefined
  const job = unescapePart(match[1]!)
  const uid = unescapePart(match[2]!)
  if (job === undefined || uid === undefined) return undefined
  const identity: TransactionIdentity = {
    job: jobId(job),
    uid,
    attempt: { incarnation: incarnation(Number(match[3])), number: Number(match[4]) },
    subtask: subtaskIndex(Number(match[5])),
    checkpoint: checkpointId(Number(match[6])),
  }
  // A name has one spelling: a foreign one that merely parses must not count as ours.
  return formatTransaction(identity) === name ? identity : undefined
}

/** Whether a name is that of a transaction of this sink of this job; whatever else an external system lists is not ours to touch. */
export function isTransactionOf(name: string, sink: { readonly job: JobId; readonly uid: string }): boolean {
  const identity = parseTransactionName(name)
  return identity !== undefined && identity.job === sink.job && identity.uid === sink.uid
}

function formatTransaction({ job, uid, attempt, subtask, checkpoint }: TransactionIdentity): string {
  return [
    'mr1',
    escapePart(job),
    escapePart(uid),
    `${attempt.incarnation}.${attempt.number}`,
    subtask,
    checkpoint,
  ].join('_')
}

/** `=XX` for each UTF-8 byte outside letters, digits, dot and minus; the separator is thus never part of a part. */
function escapePart(part: string): string {
  let escaped = ''
  for (const byte of new TextEncoder().encode(part)) {
    const character = String.fromCharCode(byte)
    escaped += /[A-Za-z0-9.-]/.test(character) ? character : `=${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return escaped
}

function unescapePart(escaped: string): string | undefined {
  if (!/^(?:[A-Za-z0-9.-]|=[0-9A-F]{2})+$/.test(escaped)) return undefined
  const bytes: number[] = []
  for (let index = 0; index < escaped.length; index++) {
    if (escaped[index] === '=') {
      bytes.push(Number.parseInt(escaped.slice(index + 1, index + 3), 16))
      index += 2
    } else bytes.push(escaped.charCodeAt(index))
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(bytes))
  } catch {
    return undefined
  }
}
