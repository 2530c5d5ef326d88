// What an answer that is none means: may the same be asked again, is it known that nothing was written, and what are people told.

import type { MillraceError } from '../../base/errors.ts'
import { storageError } from '../errors.ts'

export type FailureKind =
  /** The condition of a write does not hold (412). */
  | 'precondition'
  /** Another write of the same object is under way (409). */
  | 'conflict'
  /** The store says that there is no such object. */
  | 'absent'
  /** The store says that there is no such upload. */
  | 'upload gone'
  /** The object ends before the range begins. */
  | 'range'
  /** No answer, half an answer, or one that says "later": a write may have landed, or may land later. */
  | 'unclear'
  /** No connection came about. */
  | 'unreachable'
  | 'full'
  | 'expired'
  | 'credentials'
  | 'denied'
  | 'bucket'
  | 'region'
  | 'certificate'
  | 'clock'
  /** What came differs from the store's checksum. */
  | 'checksum'
  /** The store does not know what was asked of it. */
  | 'unsupported'
  | 'refused'
  /** The stores were closed. */
  | 'closed'

/** Never holds what the SDK or the store said in full: that has signatures and key ids in it. */
export class S3Failure extends Error {
  override readonly name = 'S3Failure'
  readonly kind: FailureKind

  constructor(kind: FailureKind, message: string) {
    super(message)
    this.kind = kind
  }
}

interface Handling {
  /** How often the same is asked in all, time permitting. */
  readonly triesMax: number
  /** Whether the credentials are taken anew before the next try. */
  readonly refresh?: boolean
  readonly code: Parameters<typeof storageError>[0]
}

const often = { triesMax: Number.POSITIVE_INFINITY }
const once = { triesMax: 1 }

const handling: Readonly<Record<FailureKind, Handling>> = {
  precondition: { ...once, code: 'MR-S38' },
  conflict: { ...often, code: 'MR-S01' },
  absent: { ...once, code: 'MR-S38' },
  'upload gone': { ...once, code: 'MR-S01' },
  range: { ...once, code: 'MR-S03' },
  unclear: { ...often, code: 'MR-S01' },
  unreachable: { ...often, code: 'MR-S34' },
  full: { ...often, code: 'MR-S02' },
  expired: { ...often, refresh: true, code: 'MR-S31' },
  // Files that were just replaced may have been read half before, half after.
  credentials: { triesMax: 2, refresh: true, code: 'MR-S30' },
  denied: { ...once, code: 'MR-S08' },
  bucket: { ...once, code: 'MR-S32' },
  region: { ...once, code: 'MR-S33' },
  certificate: { ...once, code: 'MR-S35' },
  // The SDK takes the store's time from such an answer and signs the next request with it.
  clock: { triesMax: 2, code: 'MR-S36' },
  // Bytes may be damaged on the way; what is damaged in the store stays so.
  checksum: { triesMax: 3, code: 'MR-S37' },
  unsupported: { ...once, code: 'MR-S06' },
  refused: { ...once, code: 'MR-S38' },
  closed: { ...once, code: 'MR-S01' },
}

export function mayTryAgain({ kind }: S3Failure, tries: number): boolean {
  return tries < handling[kind].triesMax
}

export function wantsFreshCredentials({ kind }: S3Failure): boolean {
  return handling[kind].refresh === true
}

/** `doing` is a phrase such as `Reading s3://bucket/key`. */
export function failureError(doing: string, failure: S3Failure, tries = 1): MillraceError {
  const said = failure.message.replace(/[.\s]+$/, '')
  const often = tries > 1 ? ` (${tries} tries)` : ''
  return storageError(handling[failure.kind].code, `${doing}${often}: ${said}.`, failure)
}

/** An error that the store, the SDK or Node gave, reduced to what may be told. */
export interface RawFailure {
  /** The store's code (`SlowDown`), the SDK's name (`TimeoutError`) or Node's code (`ECONNRESET`). */
  readonly code: string
  readonly message: string
  /** HTTP; undefined when there was no answer. */
  readonly status: number | undefined
  /** Said by whoever gives the credentials out, as STS does for a web identity, and not by the store. */
  readonly byIssuer?: boolean
}

export function failureOf(raw: RawFailure): S3Failure {
  const byIssuer = raw.byIssuer === true
  const said = kindOf(raw)
  const kind = byIssuer && (said === 'denied' || said === 'refused') ? 'credentials' : said
  const code = byIssuer ? `${raw.code}, said by the issuer of the credentials` : raw.code
  // Messages about credentials may quote them.
  const quotes = kind === 'credentials' || kind === 'expired'
  const message = quotes ? code : `${code}${raw.message === '' ? '' : `: ${whatMayBeTold(raw.message)}`}`
  return new S3Failure(kind, raw.status === undefined ? message : `${message} (HTTP ${raw.status})`)
}

function whatMayBeTold(message: string): string {
  return message
    .replace(sdkHint, '')
    .replaceAll(/\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{8,}\b/g, '…')
    .slice(0, messageMax)
}

/** To whoever programs with the SDK. */
const sdkHint = /\s*Deserialization error: to see the raw response, [^\n]* on this object\.?/

/** Some stores answer with a page of HTML. */
const messageMax = 500

function kindOf({ code, message, status }: RawFailure): FailureKind {
  // The same code for a region and for a key id that is none.
  if (code === 'AuthorizationHeaderMalformed') return /region/i.test(message) ? 'region' : 'credentials'
  const known = byCode.get(code)
  if (known !== undefined) return known
  if (/CERT|SELF_SIGNED|UNABLE_TO_(?:VERIFY|GET)/.test(code)) return 'certificate'
  if (status === undefined || status < 300) return 'unclear'
  return byStatus[status] ?? (status >= 500 ? 'unclear' : 'refused')
}

/** 404 without a code that says what is missing may come from anything on the way: unknown is not absent. */
const byStatus: Readonly<Record<number, FailureKind>> = {
  301: 'region',
  307: 'unclear',
  403: 'denied',
  404: 'unclear',
  408: 'unclear',
  409: 'conflict',
  412: 'precondition',
  416: 'range',
  425: 'unclear',
  429: 'unclear',
  501: 'unsupported',
  507: 'full',
}

const byCode: ReadonlyMap<string, FailureKind> = new Map(
  Object.entries({
    PreconditionFailed: 'precondition',
    ConditionalRequestConflict: 'conflict',
    OperationAborted: 'conflict',
    NoSuchKey: 'absent',
    NoSuchUpload: 'upload gone',
    InvalidRange: 'range',
    // 400, but about the way here.
    RequestTimeout: 'unclear',
    IncompleteBody: 'unclear',
    BadDigest: 'unclear',
    InvalidDigest: 'unclear',
    XAmzContentChecksumMismatch: 'unclear',
    XAmzContentSHA256Mismatch: 'unclear',
    SlowDown: 'unclear',
    Throttling: 'unclear',
    ThrottlingException: 'unclear',
    RequestLimitExceeded: 'unclear',
    InternalError: 'unclear',
    ServiceUnavailable: 'unclear',
    TimeoutError: 'unclear',
    AbortError: 'unclear',
    ECONNREFUSED: 'unreachable',
    ENOTFOUND: 'unreachable',
    EAI_AGAIN: 'unreachable',
    EHOSTUNREACH: 'unreachable',
    ENETUNREACH: 'unreachable',
    EADDRNOTAVAIL: 'unreachable',
    ConnectTimeout: 'unreachable',
    InsufficientStorage: 'full',
    QuotaExceeded: 'full',
    InsufficientCapacity: 'full',
    XMinioStorageFull: 'full',
    XMinioAdminBucketQuotaExceeded: 'full',
    ExpiredToken: 'expired',
    ExpiredTokenException: 'expired',
    TokenRefreshRequired: 'expired',
    RequestExpired: 'clock',
    InvalidAccessKeyId: 'credentials',
    InvalidClientTokenId: 'credentials',
    UnrecognizedClientException: 'credentials',
    SignatureDoesNotMatch: 'credentials',
    InvalidToken: 'credentials',
    InvalidSecurity: 'credentials',
    NotSignedUp: 'credentials',
    // What versitygw calls an unknown key id, with 404.
    XAdminUserNotFound: 'credentials',
    CredentialsProviderError: 'credentials',
    AccessDenied: 'denied',
    AllAccessDisabled: 'denied',
    AccountProblem: 'denied',
    NoSuchBucket: 'bucket',
    InvalidBucketName: 'bucket',
    PermanentRedirect: 'region',
    RegionMissing: 'region',
    IllegalLocationConstraintException: 'region',
    RequestTimeTooSkewed: 'clock',
    NotImplemented: 'unsupported',
    ChecksumMismatch: 'checksum',
  } as const),
)
