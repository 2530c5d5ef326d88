// The requests by the AWS SDK. Its own repeats are off; what it and the store say is reduced to what may be told.

import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  S3ServiceException,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import type { GetObjectCommandOutput } from '@aws-sdk/client-s3'
import type { Clock } from '../../../base/environment.ts'
import type { FileSystem, S3Config } from '../../contract.ts'
import { errorCodeOf } from '../../errors.ts'
import { readCredentialFiles } from '../credential-files.ts'
import { failureOf, S3Failure } from '../failures.ts'
import type { RawFailure } from '../failures.ts'
import type { S3Object, S3Requests, Try } from '../requests.ts'

/** Until a connection stands; a network that swallows everything is found before a try is over. */
const CONNECT_DEADLINE_MS = 5_000
/** Files are looked at again after this, and when the store says that what was in them is over. */
const CREDENTIALS_REREAD_MS = 60_000
/** The SDK takes credentials for expired this long before they are. */
const SDK_EXPIRY_MARGIN_MS = 300_000
/** S3's names for metadata are lower case. */
const MARK = 'millrace-mark'
/** Stores that know nothing of regions take this one. */
const REGION_OF_ENDPOINTS = 'us-east-1'

export interface SdkRequestsOptions {
  /** Checked by s3-settings.ts. */
  readonly config: S3Config
  readonly files: FileSystem
  readonly clock: Pick<Clock, 'wallMs'>
}

export function sdkRequests({ config, files, clock }: SdkRequestsOptions): S3Requests {
  const { endpoint, region, forcePathStyle } = config
  const known = region ?? (endpoint === undefined ? undefined : REGION_OF_ENDPOINTS)
  const fromFiles = async () => ({
    ...(await readCredentialFiles(files, config)),
    expiration: new Date(clock.wallMs() + CREDENTIALS_REREAD_MS + SDK_EXPIRY_MARGIN_MS),
  })
  const client = new S3Client({
    ...(endpoint !== undefined && { endpoint }),
    ...(known !== undefined && { region: known }),
    forcePathStyle: forcePathStyle ?? endpoint !== undefined,
    ...(config.accessKeyIdFile !== undefined && { credentials: fromFiles }),
    maxAttempts: 1,
    requestChecksumCalculation: 'WHEN_SUPPORTED',
    responseChecksumValidation: 'WHEN_SUPPORTED',
    // It would wait six seconds for stores that do not answer it, and make a connection for each request.
    expectContinueHeader: false,
    requestHandler: { connectionTimeout: CONNECT_DEADLINE_MS },
  })
  return new SdkRequests(client)
}

class SdkRequests implements S3Requests {
  readonly #client: S3Client

  constructor(client: S3Client) {
    this.#client = client
  }

  async put({ at, bytes, condition, mark }: Parameters<S3Requests['put']>[0], once: Try) {
    const command = new PutObjectCommand({
      Bucket: at.bucket,
      Key: at.key,
      Body: bytes,
      Metadata: { [MARK]: mark },
      ...(condition === 'absent' ? { IfNoneMatch: '*' } : { IfMatch: condition.etag }),
    })
    const answer = await plainly(() => this.#client.send(command, { abortSignal: once.signal }))
    return { etag: answer.ETag }
  }

  async get({ at, range }: Parameters<S3Requests['get']>[0], once: Try): Promise<S3Object> {
    const command = new GetObjectCommand({
      Bucket: at.bucket,
      Key: at.key,
      ...(range === undefined
        ? { ChecksumMode: 'ENABLED' }
        : { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` }),
    })
    return plainly(async () => {
      const answer = await this.#client.send(command, { abortSignal: once.signal })
      if (range === undefined) once.expect(answer.ContentLength ?? 0)
      const size = range === undefined ? undefined : sizeTold(answer, range.offset)
      const bytes = await bodyOf(answer)
      return { bytes, etag: answer.ETag, size: size ?? bytes.length, mark: answer.Metadata?.[MARK] }
    })
  }

  async list({ bucket, prefix, after }: Parameters<S3Requests['list']>[0], once: Try) {
    const command = new ListObjectsV2Command({
      Bucket: bucket,
      Prefix: prefix,
      ...(after !== undefined && { ContinuationToken: after }),
    })
    const answer = await plainly(() => this.#client.send(command, { abortSignal: once.signal }))
    const objects = (answer.Contents ?? []).flatMap(({ Key, LastModified }) =>
      Key === undefined ? [] : [{ key: Key, modifiedMs: LastModified?.getTime() ?? Number.NaN }],
    )
    const next = answer.IsTruncated === true ? answer.NextContinuationToken : undefined
    if (answer.IsTruncated === true && (next === undefined || next === after))
      throw new S3Failure('refused', 'a page of the listing does not say where the next begins')
    return { objects, next }
  }

  async deleteMany({ bucket, keys }: Parameters<S3Requests['deleteMany']>[0], once: Try) {
    const command = new DeleteObjectsCommand({
      Bucket: bucket,
      Delete: { Objects: keys.map((key) => ({ Key: key })), Quiet: true },
    })
    const answer = await plainly(() => this.#client.send(command, { abortSignal: once.signal }))
    return (answer.Errors ?? []).map(({ Key, Code, Message }) => ({
      key: Key ?? '(unnamed)',
      code: Code ?? 'unknown',
      message: Message ?? '',
    }))
  }

  async beginUpload({ at, mark }: Parameters<S3Requests['beginUpload']>[0], once: Try) {
    const command = new CreateMultipartUploadCommand({
      Bucket: at.bucket,
      Key: at.key,
      Metadata: { [MARK]: mark },
      ChecksumAlgorithm: 'CRC32',
      ChecksumType: 'FULL_OBJECT',
    })
    const answer = await plainly(() => this.#client.send(command, { abortSignal: once.signal }))
    if (answer.UploadId === undefined) throw new S3Failure('refused', 'it told no id of the upload')
    return answer.UploadId
  }

  async uploadPart({ at, upload, number, bytes }: Parameters<S3Requests['uploadPart']>[0], once: Try) {
    const command = new UploadPartCommand({
      Bucket: at.bucket,
      Key: at.key,
      UploadId: upload,
      PartNumber: number,
      Body: bytes,
    })
    const answer = await plainly(() => this.#client.send(command, { abortSignal: once.signal }))
    if (answer.ETag === undefined) throw new S3Failure('refused', 'it told no ETag of a part')
    return { number, etag: answer.ETag, crc32: answer.ChecksumCRC32 }
  }

  async completeUpload(
    { at, upload, parts, crc32 }: Parameters<S3Requests['completeUpload']>[0],
    once: Try,
  ): Promise<void> {
    const command = new CompleteMultipartUploadCommand({
      Bucket: at.bucket,
      Key: at.key,
      UploadId: upload,
      IfNoneMatch: '*',
      ChecksumCRC32: crc32,
      ChecksumType: 'FULL_OBJECT',
      MultipartUpload: {
        Parts: parts.map((part) => ({
          PartNumber: part.number,
          ETag: part.etag,
          ...(part.crc32 !== undefined && { ChecksumCRC32: part.crc32 }),
        })),
      },
    })
    await plainly(() => this.#client.send(command, { abortSignal: once.signal }))
  }

  async abortUpload({ at, upload }: Parameters<S3Requests['abortUpload']>[0], once: Try): Promise<void> {
    const command = new AbortMultipartUploadCommand({ Bucket: at.bucket, Key: at.key, UploadId: upload })
    await plainly(() => this.#client.send(command, { abortSignal: once.signal }))
  }

  async listUploads({ bucket, prefix, after }: Parameters<S3Requests['listUploads']>[0], once: Try) {
    const command = new ListMultipartUploadsCommand({
      Bucket: bucket,
      Prefix: prefix,
      ...(after !== undefined && { KeyMarker: after.key, UploadIdMarker: after.upload }),
    })
    const answer = await plainly(() => this.#client.send(command, { abortSignal: once.signal }))
    const uploads = (answer.Uploads ?? []).flatMap(({ Key, UploadId, Initiated }) =>
      Key === undefined || UploadId === undefined || Initiated === undefined
        ? []
        : [{ key: Key, upload: UploadId, begunMs: Initiated.getTime() }],
    )
    const key = answer.IsTruncated === true ? answer.NextKeyMarker : undefined
    const upload = answer.NextUploadIdMarker
    if (key !== undefined && key === after?.key && upload === after.upload)
      throw new S3Failure('refused', 'a page of the uploads does not say where the next begins')
    return { uploads, next: key === undefined ? undefined : { key, upload } }
  }

  async refreshCredentials(): Promise<void> {
    // The SDK's own type does not show the option that its memory of credentials has.
    const credentials = this.#client.config.credentials as (options: { forceRefresh: boolean }) => Promise<unknown>
    await plainly(() => credentials({ forceRefresh: true }))
  }

  close(): void {
    this.#client.destroy()
  }
}

/** Copied out of the connection's chunks, whole. */
async function bodyOf({ Body, ContentLength }: GetObjectCommandOutput): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of (Body ?? []) as AsyncIterable<Uint8Array>) {
    chunks.push(chunk)
    length += chunk.length
  }
  if (ContentLength !== undefined && length !== ContentLength)
    throw new S3Failure('unclear', `${length} of ${ContentLength} bytes came`)
  const bytes = new Uint8Array(length)
  let offset = 0
  for (const chunk of chunks) {
    bytes.set(chunk, offset)
    offset += chunk.length
  }
  return bytes
}

/** Of the whole object, as the answer to a range says it. */
function sizeTold({ ContentRange }: GetObjectCommandOutput, offset: number): number {
  const match = /^bytes (\d+)-\d+\/(\d+)$/.exec(ContentRange ?? '')
  if (match === null || Number(match[1]) !== offset)
    throw new S3Failure('unsupported', `it answered another range than was asked (${ContentRange ?? 'none'})`)
  return Number(match[2])
}

/** Rejects with an S3Failure and nothing else. */
async function plainly<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw error instanceof S3Failure ? error : failureOf(rawOf(error))
  }
}

interface SdkError extends Error {
  /** Of what a service has answered. */
  readonly $fault?: string
  readonly $metadata?: { readonly httpStatusCode?: number }
  readonly $response?: { readonly statusCode?: number }
  readonly syscall?: string
}

function rawOf(error: unknown): RawFailure {
  if (!(error instanceof Error)) return { code: 'Error', message: String(error), status: undefined }
  const { name, message, $fault, $metadata, $response, syscall } = error as SdkError
  const status = $metadata?.httpStatusCode ?? $response?.statusCode
  const code = errorCodeOf(error)
  const byIssuer = $fault !== undefined && !(error instanceof S3ServiceException)
  return { code: codeOf({ name, message, code, syscall }), message: textOf(error, message), status, byIssuer }
}

function codeOf(told: {
  readonly name: string
  readonly message: string
  readonly code: string | undefined
  readonly syscall: string | undefined
}): string {
  if (told.message.startsWith('Checksum mismatch')) return 'ChecksumMismatch'
  if (told.message.startsWith('Region is missing')) return 'RegionMissing'
  if (told.message.includes('did not establish a connection')) return 'ConnectTimeout'
  if (told.code === 'ETIMEDOUT' && told.syscall === 'connect') return 'ConnectTimeout'
  return told.code ?? told.name
}

/** An address with several numbers fails with an error for each and no text of its own. */
function textOf(error: Error, message: string): string {
  return error instanceof AggregateError ? error.errors.map((one) => (one as Error).message).join('; ') : message
}
