// A store of S3 in memory, for tests: it answers in a later turn, and fails, stays silent and loses answers as told.

import { createHash } from 'node:crypto'
import type { Clock } from '../../base/environment.ts'
import type { S3Place } from '../paths.ts'
import { S3Failure } from './failures.ts'
import type { FailureKind } from './failures.ts'
import type { PutCondition, S3Object, S3Requests, Try, UploadedPart } from './requests.ts'

/** What becomes of one request. `landed`: it was carried out all the same. */
export type Fault =
  | { readonly fails: FailureKind; readonly landed?: boolean }
  | { readonly silent: true; readonly landed?: boolean }
  /** Success is answered, and nothing is done. */
  | { readonly pretends: true }

export type RequestName = Exclude<keyof S3Requests, 'close'>

interface Stored {
  readonly bytes: Uint8Array
  readonly etag: string
  readonly mark: string
  readonly modifiedMs: number
}

interface OpenUpload {
  readonly at: string
  readonly mark: string
  readonly begunMs: number
  readonly parts: Map<number, Uint8Array>
}

export class FakeRequests implements S3Requests {
  readonly objects = new Map<string, Stored>()
  readonly uploads = new Map<string, OpenUpload>()
  readonly asked: RequestName[] = []
  /** Of a page of a listing. */
  pageSize = 1000
  ignoresConditions = false
  /** Keys that cannot be deleted, with the store's code. */
  readonly undeletable = new Map<string, string>()
  /** Requests under way, and the most there ever were. */
  underWay = 0
  underWayMost = 0
  closed = false
  readonly #clock: Pick<Clock, 'wallMs'>
  readonly #faults = new Map<RequestName, (Fault | undefined)[]>()
  #uploads = 0

  constructor(clock: Pick<Clock, 'wallMs'>) {
    this.#clock = clock
  }

  /** For the next requests of that name, in order; undefined: nothing is wrong. */
  next(name: RequestName, ...faults: (Fault | undefined)[]): void {
    this.#faults.set(name, [...(this.#faults.get(name) ?? []), ...faults])
  }

  count(name: RequestName): number {
    return this.asked.filter((asked) => asked === name).length
  }

  put({ at, bytes, condition, mark }: Parameters<S3Requests['put']>[0], once: Try) {
    return this.#answer('put', once, () => {
      this.#demand(at, condition)
      return { etag: this.#store(at, bytes, mark) }
    })
  }

  get({ at, range }: Parameters<S3Requests['get']>[0], once: Try): Promise<S3Object> {
    return this.#answer('get', once, () => {
      const found = this.objects.get(nameOf(at))
      if (found === undefined) throw new S3Failure('absent', 'NoSuchKey')
      const size = found.bytes.length
      if (range === undefined) return { ...found, bytes: found.bytes.slice(), size }
      if (range.offset >= size) throw new S3Failure('range', 'InvalidRange')
      return { ...found, bytes: found.bytes.slice(range.offset, range.offset + range.length), size }
    })
  }

  list({ bucket, prefix, after }: Parameters<S3Requests['list']>[0], once: Try) {
    return this.#answer('list', once, () => {
      const begin = `${bucket}/${prefix}`
      const names = [...this.objects.keys()].filter((name) => name.startsWith(begin)).toSorted()
      const left = names.filter((name) => after === undefined || name > after)
      const page = left.slice(0, this.pageSize)
      const objects = page.map((name) => ({
        key: name.slice(bucket.length + 1),
        modifiedMs: this.objects.get(name)!.modifiedMs,
      }))
      return { objects, next: left.length > page.length ? page.at(-1) : undefined }
    })
  }

  deleteMany({ bucket, keys }: Parameters<S3Requests['deleteMany']>[0], once: Try) {
    return this.#answer('deleteMany', once, () => {
      const refused: { key: string; code: string; message: string }[] = []
      for (const key of keys) {
        const code = this.undeletable.get(key)
        if (code === undefined) this.objects.delete(`${bucket}/${key}`)
        else refused.push({ key, code, message: 'as told' })
      }
      return refused
    })
  }

  beginUpload({ at, mark }: Parameters<S3Requests['beginUpload']>[0], once: Try): Promise<string> {
    return this.#answer('beginUpload', once, () => {
      const upload = `upload-${++this.#uploads}`
      this.uploads.set(upload, { at: nameOf(at), mark, begunMs: this.#clock.wallMs(), parts: new Map() })
      return upload
    })
  }

  uploadPart({ upload, number, bytes }: Parameters<S3Requests['uploadPart']>[0], once: Try): Promise<UploadedPart> {
    return this.#answer('uploadPart', once, () => {
      this.#upload(upload).parts.set(number, new Uint8Array(bytes))
      return { number, etag: hashOf(bytes), crc32: undefined }
    })
  }

  completeUpload({ at, upload, parts }: Parameters<S3Requests['completeUpload']>[0], once: Try): Promise<void> {
    return this.#answer('completeUpload', once, () => {
      const { mark, parts: uploaded } = this.#upload(upload)
      this.#demand(at, 'absent')
      this.#store(at, Buffer.concat(parts.map(({ number }) => uploaded.get(number)!)), mark)
      this.uploads.delete(upload)
    })
  }

  abortUpload({ upload }: Parameters<S3Requests['abortUpload']>[0], once: Try): Promise<void> {
    return this.#answer('abortUpload', once, () => {
      this.#upload(upload)
      this.uploads.delete(upload)
    })
  }

  listUploads({ bucket, prefix, after }: Parameters<S3Requests['listUploads']>[0], once: Try) {
    return this.#answer('listUploads', once, () => {
      const all = [...this.uploads].map(([upload, { at, begunMs }]) => ({
        key: at.slice(bucket.length + 1),
        upload,
        begunMs,
      }))
      const left = all.filter(
        ({ key, upload }) => key.startsWith(prefix) && (after === undefined || upload > after.upload!),
      )
      const page = left.slice(0, this.pageSize)
      const last = page.at(-1)
      return {
        uploads: page,
        next: left.length > page.length && last !== undefined ? { key: last.key, upload: last.upload } : undefined,
      }
    })
  }

  refreshCredentials(): Promise<void> {
    this.asked.push('refreshCredentials')
    return Promise.resolve()
  }

  close(): void {
    this.closed = true
  }

  async #answer<T>(name: RequestName, { signal }: Try, act: () => T): Promise<T> {
    this.asked.push(name)
    const fault = this.#faults.get(name)?.shift()
    this.underWay++
    this.underWayMost = Math.max(this.underWayMost, this.underWay)
    try {
      await Promise.resolve()
      if (signal.aborted) throw new S3Failure('unclear', 'AbortError')
      if (fault === undefined) return act()
      if ('pretends' in fault) return undefined as T
      if (fault.landed === true) act()
      if ('fails' in fault) throw new S3Failure(fault.fails, 'as told')
      return await new Promise<never>(() => undefined)
    } finally {
      this.underWay--
    }
  }

  #demand(at: S3Place, condition: PutCondition): void {
    if (this.ignoresConditions) return
    const there = this.objects.get(nameOf(at))
    if (condition === 'absent') {
      if (there !== undefined) throw new S3Failure('precondition', 'PreconditionFailed')
    } else if (there === undefined) throw new S3Failure('absent', 'NoSuchKey')
    else if (there.etag !== condition.etag) throw new S3Failure('precondition', 'PreconditionFailed')
  }

  #store(at: S3Place, bytes: Uint8Array, mark: string): string {
    const etag = hashOf(bytes)
    this.objects.set(nameOf(at), { bytes: new Uint8Array(bytes), etag, mark, modifiedMs: this.#clock.wallMs() })
    return etag
  }

  #upload(upload: string): OpenUpload {
    const found = this.uploads.get(upload)
    if (found === undefined) throw new S3Failure('upload gone', 'NoSuchUpload')
    return found
  }
}

const nameOf = ({ bucket, key }: S3Place): string => `${bucket}/${key}`

/** As S3 makes ETags: of the content alone. */
const hashOf = (bytes: Uint8Array): string => `"${createHash('md5').update(bytes).digest('hex')}"`
