// Objects on S3 or whatever speaks its protocol. An object is created by a write on the condition that there is none (rule 6).

import type { Environment } from '../../base/environment.ts'
import type { ObjectKey, ObjectStore } from '../contract.ts'
import { storageError } from '../errors.ts'
import { joinPath, parseS3ObjectKey, s3Key, s3ObjectsPrefix } from '../paths.ts'
import type { S3Place } from '../paths.ts'
import type { Ask, Calls } from './calls.ts'
import { failureOf, mayTryAgain, S3Failure } from './failures.ts'
import { describeObject, readObject, readObjectRange } from './reading.ts'
import { createInParts, SINGLE_BYTES_MAX } from './upload.ts'

/** Of one object, when the store contradicts itself. */
const WRITES_MAX = 3
/** What one request may name. */
export const DELETES_MAX = 1000

export interface S3StoreOptions {
  readonly calls: Calls
  readonly bucket: string
  /** The job's, without a slash at its ends; '' for the bucket itself. */
  readonly prefix: string
  readonly environment: Pick<Environment, 'random' | 'log'>
}

export class S3Store implements ObjectStore {
  readonly #calls: Calls
  readonly #bucket: string
  readonly #prefix: string
  readonly #environment: Pick<Environment, 'random' | 'log'>

  constructor({ calls, bucket, prefix, environment }: S3StoreOptions) {
    this.#calls = calls
    this.#bucket = bucket
    this.#prefix = prefix
    this.#environment = environment
  }

  /** `bytes` are looked at no more once it has settled, whatever became of the requests. */
  async create(key: ObjectKey, bytes: Uint8Array): Promise<'created' | 'exists'> {
    const at = this.#place(key)
    const mark = this.#environment.random.id()
    for (let writes = 1; ; writes++) {
      if ((await this.#write(at, bytes, mark)) === 'created') return 'created'
      const found = await describeObject(this.#calls, at)
      if (found?.mark === mark && found.size === bytes.length) return 'created'
      if (found?.mark === mark) throw storageError('MR-S03', `${s3Key(at)} has ${found.size} of ${bytes.length} bytes.`)
      if (found !== undefined) return 'exists'
      // The store said that it is there, or refused it as taken, and it is not.
      if (writes === WRITES_MAX)
        throw storageError('MR-S01', `Creating ${s3Key(at)}: what the store answered was not so, ${writes} times.`)
    }
  }

  async read(key: ObjectKey): Promise<Uint8Array | undefined> {
    return (await readObject(this.#calls, this.#place(key)))?.bytes
  }

  async readRange(key: ObjectKey, offset: number, length: number): Promise<Uint8Array | undefined> {
    return readObjectRange(this.#calls, this.#place(key), { offset, length })
  }

  async delete(keys: readonly ObjectKey[]): Promise<void> {
    for (let from = 0; from < keys.length; from += DELETES_MAX)
      await deleteKeys(this.#calls, {
        bucket: this.#bucket,
        keys: keys.slice(from, from + DELETES_MAX).map((key) => this.#place(key).key),
      })
  }

  async list(prefix: string): Promise<ObjectKey[]> {
    const keys: ObjectKey[] = []
    const under = { bucket: this.#bucket, prefix: `${s3ObjectsPrefix(this.#prefix)}${prefix}` }
    for await (const { key } of listed(this.#calls, under)) {
      // What others put there, such as the folder marks of a console, is no object of the job.
      const own = parseS3ObjectKey(this.#prefix, key)
      if (own !== undefined) keys.push(own)
    }
    return keys.toSorted()
  }

  /**
   * `look`: who created what is there, if something is, shows in the object alone. A name that is taken may be taken by an earlier try
   * whose answer was lost, or by a request that something on the way repeated. And when the request that puts parts together was
   * cut off, its repeat may be called a success without an object (versitygw after a kill).
   */
  async #write(at: S3Place, bytes: Uint8Array, mark: string): Promise<'created' | 'look'> {
    try {
      if (bytes.length < SINGLE_BYTES_MAX) {
        await this.#put(at, bytes, mark)
        return 'created'
      }
      await createInParts({ calls: this.#calls, at, bytes, mark, environment: this.#environment })
    } catch (error) {
      if (!(error instanceof S3Failure)) throw error
    }
    return 'look'
  }

  async #put(at: S3Place, bytes: Uint8Array, mark: string): Promise<void> {
    await this.#calls.call(
      `Creating ${s3Key(at)}`,
      (requests, once) => requests.put({ at, bytes, condition: 'absent', mark }, once),
      { bytes: bytes.length, expected: ['precondition'] },
    )
  }

  #place(key: ObjectKey): S3Place {
    return { bucket: this.#bucket, key: joinPath(s3ObjectsPrefix(this.#prefix).slice(0, -1), key) }
  }
}

export interface ListedObject {
  readonly key: string
  readonly modifiedMs: number
}

/** Every object of the bucket whose key begins with `prefix`. */
export async function* listed(
  calls: Calls,
  { bucket, prefix }: { readonly bucket: string; readonly prefix: string },
): AsyncGenerator<ListedObject> {
  let after: string | undefined
  do {
    const asked = after
    const page = await calls.call(`Listing ${s3Key({ bucket, key: prefix })}`, (requests, once) =>
      requests.list({ bucket, prefix, after: asked }, once),
    )
    yield* page.objects
    after = page.next
  } while (after !== undefined)
}

/** At most DELETES_MAX. Those that the store could not delete just now are asked for again; others are an error that names one. */
export async function deleteKeys(
  calls: Calls,
  {
    bucket,
    keys,
    deadlineMs,
  }: { readonly bucket: string; readonly keys: readonly string[]; readonly deadlineMs?: number },
): Promise<void> {
  let left = keys
  const ask: Ask<void> = async (requests, once) => {
    const refused = await requests.deleteMany({ bucket, keys: left }, once)
    const failed = refused
      .map(({ key, code, message }) => ({ key, failure: failureOf({ code, message, status: undefined }) }))
      .filter(({ failure }) => failure.kind !== 'absent')
    left = failed.map(({ key }) => key)
    const told = failed.find(({ failure }) => !mayTryAgain(failure, 1)) ?? failed[0]
    if (told !== undefined) {
      const where = `${s3Key({ bucket, key: told.key })}, one of ${failed.length} that stay`
      throw new S3Failure(told.failure.kind, `${where}: ${told.failure.message}`)
    }
  }
  await calls.call(`Deleting in ${s3Key({ bucket, key: '' })}`, ask, {
    isDeletion: true,
    ...(deadlineMs !== undefined && { deadlineMs }),
  })
}
