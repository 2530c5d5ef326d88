// The object store, HEAD's store, the file system, and the stores of one job: contracts. One conformance suite holds every object store to
// this text.

import type { Brand } from '../base/ids.ts'

/**
 * A key is a relative path of `/`-separated segments [A-Za-z0-9._=-]+, or absolute (`scheme:`) for an object outside of the job's own
 * store; only paths.ts makes them.
 */
export type ObjectKey = Brand<string, 'ObjectKey'>

/** Every object but HEAD is created once under a name never used again (rule 6). */
export interface ObjectStore {
  /** Creates the object; durable when it resolves. `exists`: the name was taken; nothing was written. Throws MR-S… (retryable or not) when unclear. */
  create(key: ObjectKey, bytes: Uint8Array): Promise<'created' | 'exists'>
  /** Whole object; undefined only if the store positively says that it does not exist. */
  read(key: ObjectKey): Promise<Uint8Array | undefined>
  /** Bytes [offset, offset + length); undefined only if the object positively does not exist; a short object is an error. */
  readRange(key: ObjectKey, offset: number, length: number): Promise<Uint8Array | undefined>
  /** Idempotent: deleting what is not there succeeds. */
  delete(keys: readonly ObjectKey[]): Promise<void>
  /** All keys that begin with `prefix` (whole segments or not), sorted. */
  list(prefix: string): Promise<ObjectKey[]>
}

/**
 * Objects outside of the job's own store, by absolute keys: a savepoint or a checkpoint that another job made. They are somebody
 * else's, so there is nothing here to write or delete with. Throws MR-S04 for a key of a scheme that it does not serve.
 */
export type ForeignObjects = Pick<ObjectStore, 'read' | 'readRange'>

export interface HeadVersion {
  /** Opaque: an ETag, or the number of a file. */
  readonly token: string
}

export interface VersionedHead {
  readonly version: HeadVersion
  readonly bytes: Uint8Array
}

/** Compare-and-swap of one object (rule 1). */
export interface HeadStore {
  /** Durable, whoever wrote it; undefined only if there positively is none. Throws when unclear. */
  read(): Promise<VersionedHead | undefined>
  /**
   * `expected` undefined: only if there is none yet.
   * won: durable, and the newest. lost: somebody else's write is there instead. unclear: it may or may not have landed, or may land later.
   */
  swap(expected: HeadVersion | undefined, bytes: Uint8Array): Promise<SwapAnswer>
}

export type SwapAnswer =
  | { readonly outcome: 'won'; readonly version: HeadVersion }
  | { readonly outcome: 'lost' }
  | { readonly outcome: 'unclear'; readonly cause: unknown }

/** The file system as sources, file sinks and the directory store see it. Paths are the platform's. Errors carry Node's codes (ENOENT, ENOSPC …). */
export interface FileSystem {
  readFile(path: string): Promise<Uint8Array>
  /** Fewer bytes than asked for only where the file ends. */
  readRange(path: string, offset: number, length: number): Promise<Uint8Array>
  sizeOf(path: string): Promise<number>
  /** Names of the direct children, sorted; throws ENOENT, or ENOTDIR for a file. */
  list(path: string): Promise<string[]>
  /** With its parents; succeeds if it is there. Its entry in the parent is durable once the parent is synced. */
  makeDirectory(path: string): Promise<void>
  /** Creates exclusively (EEXIST); not durable before fsync. */
  writeNew(path: string, bytes: Uint8Array): Promise<void>
  /** Creates the file if there is none. */
  append(path: string, bytes: Uint8Array): Promise<void>
  truncate(path: string, length: number): Promise<void>
  /** Makes the file's (or directory's) content durable. */
  sync(path: string): Promise<void>
  /** Hard link; EEXIST if `to` exists. */
  link(from: string, to: string): Promise<void>
  /** Replaces a file at `to`; the file is under one of the two names at every moment, also after a crash. */
  rename(from: string, to: string): Promise<void>
  /** A file or an empty folder (else ENOTEMPTY). Idempotent. */
  remove(path: string): Promise<void>
  exists(path: string): Promise<boolean>
}

/** A file's content, read when it is needed and never logged. Absolute path. */
export type SecretFile = string

export interface StorageConfig {
  /** The job's prefix: s3://bucket/prefix or file:///folder. The job's id is appended by whoever renders the config, not here. */
  readonly checkpoints: string
  /** Where savepoints are written, likewise the job's alone; it may be another bucket of the same server. Absent: beside the checkpoints. */
  readonly savepoints?: string
  readonly s3?: S3Config
}

export interface S3Config {
  /** Such as http://127.0.0.1:7070; absent: AWS by its region. */
  readonly endpoint?: string
  readonly region?: string
  readonly forcePathStyle?: boolean
  /** Absent: the SDK's chain (environment, shared files, web identity). Files of a mounted Secret. */
  readonly accessKeyIdFile?: SecretFile
  readonly secretAccessKeyFile?: SecretFile
  readonly sessionTokenFile?: SecretFile
}

/** A place of their own for savepoints. Keys in it are as in the job's store: `savepoint-<id>/…`. */
export interface SavepointStore {
  readonly objects: ObjectStore
  /** How HEAD names what lies there: absolutely, as the place may be another one in a later revision of the job. */
  readonly nameOf: (key: ObjectKey) => ObjectKey
}

export interface OwnedSavepointStore extends SavepointStore {
  /** Whether a coordinator of this job has begun with it; false: it is nobody's. Throws MR-S40 for another job's. */
  readonly isClaimed: () => Promise<boolean>
}

/** Stores of one job at its storage address (storage/open-stores.ts). */
export interface OpenedStores {
  readonly objects: ObjectStore
  /** undefined: they lie beside the checkpoints. */
  readonly savepoints: OwnedSavepointStore | undefined
  readonly head: HeadStore
  /** Reads restore points of other jobs: file:// and s3:// keys. */
  readonly foreign: ForeignObjects
  /** A manifest's folder as a person names it: s3://bucket/prefix/chk-7 or an absolute path. */
  locate(manifest: ObjectKey): string
  /** Takes away what earlier lives left half-written (multipart uploads, temporaries), once the job is owned. Never rejects. */
  removeLeftovers(): Promise<void>
  /** Resolves if the store answers; rejects with what it said. For health. */
  ping(): Promise<void>
  close(): Promise<void>
}
