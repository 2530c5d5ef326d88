// Whole objects and ranges, of the job's own store and of others.

import { storageError } from '../errors.ts'
import { rangeDetail } from '../memory-store.ts'
import { s3Key } from '../paths.ts'
import type { S3Place } from '../paths.ts'
import type { Calls } from './calls.ts'
import { S3Failure } from './failures.ts'
import type { S3Object } from './requests.ts'

/** undefined only if the store says that there is no such object. */
export async function readObject(calls: Calls, at: S3Place): Promise<S3Object | undefined> {
  try {
    return await calls.call(`Reading ${s3Key(at)}`, (requests, once) => requests.get({ at }, once), {
      expected: ['absent'],
    })
  } catch (error) {
    if (error instanceof S3Failure) return undefined
    throw error
  }
}

/** Throws MR-S03 when the object is too short. */
export async function readObjectRange(
  calls: Calls,
  at: S3Place,
  { offset, length }: { readonly offset: number; readonly length: number },
): Promise<Uint8Array | undefined> {
  const found = length === 0 ? await sizeOf(calls, at) : await rangeOf(calls, at, { offset, length })
  if (found === undefined) return undefined
  if (found.size < offset + length || found.bytes.length !== length)
    throw storageError('MR-S03', rangeDetail({ key: s3Key(at), offset, length, size: found.size }))
  return found.bytes
}

interface Found {
  readonly bytes: Uint8Array
  readonly size: number
}

async function rangeOf(
  calls: Calls,
  at: S3Place,
  range: { readonly offset: number; readonly length: number },
): Promise<Found | undefined> {
  try {
    return await calls.call(`Reading ${s3Key(at)}`, (requests, once) => requests.get({ at, range }, once), {
      bytes: range.length,
      expected: ['absent', 'range'],
    })
  } catch (error) {
    if (!(error instanceof S3Failure)) throw error
    return error.kind === 'absent' ? undefined : sizeOf(calls, at)
  }
}

/** By reading a byte: what answers a HEAD request has no text to say whether the object is missing or the bucket. */
async function sizeOf(calls: Calls, at: S3Place): Promise<Found | undefined> {
  const nothing = new Uint8Array(0)
  try {
    const first = await calls.call(
      `Reading ${s3Key(at)}`,
      (requests, once) => requests.get({ at, range: { offset: 0, length: 1 } }, once),
      { expected: ['absent', 'range'] },
    )
    return { bytes: nothing, size: first.size }
  } catch (error) {
    if (!(error instanceof S3Failure)) throw error
    return error.kind === 'absent' ? undefined : { bytes: nothing, size: 0 }
  }
}

/** Of the object that is there; undefined if there is none. */
export async function describeObject(calls: Calls, at: S3Place): Promise<Pick<S3Object, 'mark' | 'size'> | undefined> {
  try {
    const doing = `Asking who wrote ${s3Key(at)}`
    const range = { offset: 0, length: 1 }
    return await calls.call(doing, (requests, once) => requests.get({ at, range }, once), {
      expected: ['absent', 'range'],
    })
  } catch (error) {
    if (!(error instanceof S3Failure)) throw error
    // An empty object has no first byte.
    return error.kind === 'absent' ? undefined : readObject(calls, at)
  }
}
