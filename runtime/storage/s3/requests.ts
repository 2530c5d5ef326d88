// What is asked of S3, one request each. The SDK stands behind it (platform/sdk-requests.ts), a fake in tests.

import type { S3Place } from '../paths.ts'

/** `absent`: If-None-Match: *. A string: If-Match with that ETag. */
export type PutCondition = 'absent' | { readonly etag: string }

export interface S3Object {
  readonly bytes: Uint8Array
  /** The store's, with its quotes. */
  readonly etag: string | undefined
  /** Of the whole object, when a range of it was read. */
  readonly size: number
  /** The mark that `put` or `beginUpload` gave it. */
  readonly mark: string | undefined
}

export interface UploadedPart {
  /** From 1. */
  readonly number: number
  readonly etag: string
  /** Base64, as the store's; undefined when it told none. */
  readonly crc32: string | undefined
}

/** One try of a request. */
export interface Try {
  /** After this nothing more is sent, and the answer is nobody's. */
  readonly signal: AbortSignal
  /** This many bytes come; they may take their time. */
  expect(bytes: number): void
}

/** Every call rejects with an S3Failure (failures.ts) and nothing else. None is repeated here. */
export interface S3Requests {
  /** `mark` says later who wrote the object: a random word. */
  put(
    put: { readonly at: S3Place; readonly bytes: Uint8Array; readonly condition: PutCondition; readonly mark: string },
    once: Try,
  ): Promise<{ readonly etag: string | undefined }>
  /** The whole object when no range is given, checked by the store's checksum if it has one. */
  get(
    get: { readonly at: S3Place; readonly range?: { readonly offset: number; readonly length: number } },
    once: Try,
  ): Promise<S3Object>
  /** One page. */
  list(
    list: { readonly bucket: string; readonly prefix: string; readonly after: string | undefined },
    once: Try,
  ): Promise<{
    readonly objects: readonly { readonly key: string; readonly modifiedMs: number }[]
    readonly next: string | undefined
  }>
  /** At most 1000. Resolves to those that it could not delete. */
  deleteMany(
    remove: { readonly bucket: string; readonly keys: readonly string[] },
    once: Try,
  ): Promise<readonly { readonly key: string; readonly code: string; readonly message: string }[]>
  beginUpload(begin: { readonly at: S3Place; readonly mark: string }, once: Try): Promise<string>
  uploadPart(
    part: {
      readonly at: S3Place
      readonly upload: string
      readonly number: number
      readonly bytes: Uint8Array
    },
    once: Try,
  ): Promise<UploadedPart>
  /** Only if there is no object yet. `crc32`: of the whole object, base64. */
  completeUpload(
    complete: {
      readonly at: S3Place
      readonly upload: string
      readonly parts: readonly UploadedPart[]
      readonly crc32: string
    },
    once: Try,
  ): Promise<void>
  abortUpload(abort: { readonly at: S3Place; readonly upload: string }, once: Try): Promise<void>
  /** One page of the uploads that are neither completed nor aborted. */
  listUploads(
    list: { readonly bucket: string; readonly prefix: string; readonly after: UploadsPage | undefined },
    once: Try,
  ): Promise<{
    readonly uploads: readonly { readonly key: string; readonly upload: string; readonly begunMs: number }[]
    readonly next: UploadsPage | undefined
  }>
  /** Takes the credentials anew from where they come from. */
  refreshCredentials(): Promise<void>
  /** Ends the connections. */
  close(): void
}

export interface UploadsPage {
  readonly key: string
  readonly upload: string | undefined
}
