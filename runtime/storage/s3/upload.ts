// A large object in parts: nothing of it is there before the last request, which is the one with the condition.

import { crc32 } from 'node:zlib'
import type { Environment } from '../../base/environment.ts'
import { s3Key } from '../paths.ts'
import type { S3Place } from '../paths.ts'
import type { Calls } from './calls.ts'
import { S3Failure } from './failures.ts'
import type { UploadedPart } from './requests.ts'

/** From here on an object goes in parts. */
export const SINGLE_BYTES_MAX = 16 * 1024 * 1024
/** Of a part; S3 takes 5 MiB at least, and 10,000 parts. */
const PART_BYTES = 8 * 1024 * 1024
const PARTS_MAX = 10_000
/** Of one object at a time; the store's own limit holds besides. */
const PARTS_AT_ONCE = 4

export interface Upload {
  readonly calls: Calls
  readonly at: S3Place
  readonly bytes: Uint8Array
  readonly mark: string
  readonly environment: Pick<Environment, 'log'>
}

/**
 * Rejects with an S3Failure `precondition` when the name is taken, `upload gone` when a try to complete it may have landed before.
 * Neither that nor success is the last word: look at what is there.
 */
export async function createInParts({ calls, at, bytes, mark, environment }: Upload): Promise<void> {
  const upload = await calls.call(`Beginning the upload of ${s3Key(at)}`, (requests, once) =>
    requests.beginUpload({ at, mark }, once),
  )
  try {
    const parts = await uploadParts({ calls, at, bytes, upload })
    const whole = { at, upload, parts, crc32: base64Crc(bytes) }
    await calls.call(`Completing ${s3Key(at)}`, (requests, once) => requests.completeUpload(whole, once), {
      // The store puts it together.
      bytes: bytes.length,
      expected: ['precondition', 'upload gone'],
    })
  } catch (error) {
    await abort({ calls, at, upload, environment })
    throw error
  }
}

async function uploadParts({
  calls,
  at,
  bytes,
  upload,
}: Pick<Upload, 'calls' | 'at' | 'bytes'> & { readonly upload: string }): Promise<UploadedPart[]> {
  const partBytes = Math.max(PART_BYTES, Math.ceil(bytes.length / PARTS_MAX))
  const parts: UploadedPart[] = []
  let next = 0
  let failed = false
  const workOn = async (): Promise<void> => {
    while (!failed && next * partBytes < bytes.length) {
      const index = next++
      const part = bytes.subarray(index * partBytes, (index + 1) * partBytes)
      const asked = { at, upload, number: index + 1, bytes: part }
      try {
        parts[index] = await calls.call(
          `Uploading part ${index + 1} of ${s3Key(at)}`,
          (requests, once) => requests.uploadPart(asked, once),
          { bytes: part.length },
        )
      } catch (error) {
        failed = true
        throw error
      }
    }
  }
  // All of them, so that none still sends when the upload is aborted and the caller has its bytes back.
  const ends = await Promise.allSettled(Array.from({ length: PARTS_AT_ONCE }, workOn))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
  return parts
}

/** Also after an upload that may have been completed: then there is nothing to abort. Never rejects. */
async function abort({
  calls,
  at,
  upload,
  environment,
}: Pick<Upload, 'calls' | 'at' | 'environment'> & { readonly upload: string }): Promise<void> {
  try {
    await abortUpload(calls, at, upload)
  } catch (error) {
    environment.log('warn', 'an upload in parts could not be aborted; the next start of the job does it', {
      object: s3Key(at),
      error: String(error),
    })
  }
}

/** Idempotent. */
export async function abortUpload(calls: Calls, at: S3Place, upload: string): Promise<void> {
  await calls.call(`Aborting the upload of ${s3Key(at)}`, async (requests, once) => {
    try {
      await requests.abortUpload({ at, upload }, once)
    } catch (error) {
      if (!(error instanceof S3Failure) || error.kind !== 'upload gone') throw error
    }
  })
}

/** S3's form of a CRC-32: four bytes, the highest first. */
function base64Crc(bytes: Uint8Array): string {
  const four = Buffer.alloc(4)
  four.writeUInt32BE(crc32(bytes))
  return four.toString('base64')
}
