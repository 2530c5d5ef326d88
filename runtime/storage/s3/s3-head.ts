// HEAD as one object of S3, changed by conditional writes (rule 1). Nothing here is repeated: a repeat could answer for a try
// before it (rule 4). An ETag is a hash of the content, so each write begins with a line that no other has: what was replaced
// once can never be taken for the newest again.
//
//   millrace-head <32 hexadecimal digits>
//   <HEAD's bytes>

import type { Environment } from '../../base/environment.ts'
import { storageError } from '../errors.ts'
import type { HeadStore, HeadVersion, SwapAnswer, VersionedHead } from '../contract.ts'
import { s3Key } from '../paths.ts'
import type { S3Place } from '../paths.ts'
import type { Calls } from './calls.ts'
import { failureError, S3Failure, wantsFreshCredentials } from './failures.ts'

/** Below what the keeper waits, so that the answer it hears is ours. A swap that was refused reads too, in the same time. */
export const HEAD_TRY_DEADLINE_MS = 7_000

export interface S3HeadOptions {
  /** Of its own: HEAD never queues behind data. */
  readonly calls: Calls
  readonly at: S3Place
  readonly environment: Pick<Environment, 'random'>
}

export class S3Head implements HeadStore {
  readonly #calls: Calls
  readonly #at: S3Place
  readonly #environment: Pick<Environment, 'random'>

  constructor({ calls, at, environment }: S3HeadOptions) {
    this.#calls = calls
    this.#at = at
    this.#environment = environment
  }

  async read(): Promise<VersionedHead | undefined> {
    const stored = await this.#readStored()
    return stored === undefined ? undefined : { version: stored.version, bytes: stored.bytes }
  }

  async swap(expected: HeadVersion | undefined, bytes: Uint8Array): Promise<SwapAnswer> {
    const mark = this.#environment.random.id()
    const at = this.#at
    const put = {
      at,
      bytes: withMark(mark, bytes),
      condition: expected === undefined ? ('absent' as const) : { etag: expected.token },
      mark,
    }
    try {
      const { etag } = await this.#calls.once((requests, once) => requests.put(put, once), {
        bytes: put.bytes.length,
        deadlineMs: HEAD_TRY_DEADLINE_MS,
      })
      if (etag === undefined) return this.#unclear(new Error('the store told no ETag'))
      return { outcome: 'won', version: { token: etag } }
    } catch (error) {
      if (!(error instanceof S3Failure)) throw error
      if (error.kind === 'precondition' || (error.kind === 'absent' && expected !== undefined))
        return this.#refused(expected, mark)
      if (wantsFreshCredentials(error)) await this.#calls.refreshCredentials()
      return this.#unclear(failureError(`Swapping HEAD at ${s3Key(at)}`, error))
    }
  }

  /**
   * The condition did not hold. Lost only if something else is there: something on the way may have repeated the request, and then
   * the refusal is of the repeat and our write is there.
   */
  async #refused(expected: HeadVersion | undefined, mark: string): Promise<SwapAnswer> {
    try {
      const stored = await this.#readStored()
      if (stored === undefined && expected !== undefined) return { outcome: 'lost' }
      if (stored === undefined || stored.mark === mark || stored.version.token === expected?.token)
        return this.#unclear(new Error('the store refused the swap, and what is there does not show why'))
      return { outcome: 'lost' }
    } catch (cause) {
      return this.#unclear(cause)
    }
  }

  #unclear(cause: unknown): SwapAnswer {
    return { outcome: 'unclear', cause }
  }

  /** Reading changes nothing, so it may be repeated as long as there is time. */
  async #readStored(): Promise<StoredHead | undefined> {
    const doing = `Reading HEAD at ${s3Key(this.#at)}`
    try {
      const found = await this.#calls.call(doing, (requests, once) => requests.get({ at: this.#at }, once), {
        deadlineMs: HEAD_TRY_DEADLINE_MS,
        expected: ['absent'],
      })
      if (found.etag === undefined) throw storageError('MR-S06', `${doing}: the store told no ETag.`)
      const { mark, bytes } = withoutMark(found.bytes, doing)
      return { version: { token: found.etag }, mark, bytes }
    } catch (error) {
      if (error instanceof S3Failure) return undefined
      throw error
    }
  }
}

interface StoredHead extends VersionedHead {
  readonly mark: string
}

const FIRST_LINE = /^millrace-head ([0-9a-f]{32})\n/
const FIRST_LINE_BYTES = 'millrace-head '.length + 32 + 1

function withMark(mark: string, bytes: Uint8Array): Uint8Array {
  const line = new TextEncoder().encode(`millrace-head ${mark}\n`)
  const all = new Uint8Array(line.length + bytes.length)
  all.set(line)
  all.set(bytes, line.length)
  return all
}

/** What HEAD's object holds. Throws MR-S10 for what no swap wrote. `doing`: for the message. */
export function withoutMark(stored: Uint8Array, doing: string): { readonly mark: string; readonly bytes: Uint8Array } {
  const match = FIRST_LINE.exec(new TextDecoder().decode(stored.subarray(0, FIRST_LINE_BYTES)))
  if (match === null)
    throw storageError('MR-S10', `${doing}: it does not begin with the line that each write of it has.`)
  return { mark: match[1]!, bytes: stored.slice(FIRST_LINE_BYTES) }
}
