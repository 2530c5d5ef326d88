import { describe, expect, it } from 'vitest'
import { failureError, failureOf, S3Failure } from './failures.ts'

describe('a failure', () => {
  it('of the certificate, the name service or the way is told apart', () => {
    const kindOf = (code: string) => failureOf({ code, message: '', status: undefined }).kind
    expect(kindOf('DEPTH_ZERO_SELF_SIGNED_CERT')).toBe('certificate')
    expect(kindOf('UNABLE_TO_VERIFY_LEAF_SIGNATURE')).toBe('certificate')
    expect(kindOf('ERR_TLS_CERT_ALTNAME_INVALID')).toBe('certificate')
    expect(kindOf('ENOTFOUND')).toBe('unreachable')
    expect(kindOf('ECONNRESET')).toBe('unclear')
    expect(kindOf('RegionMissing')).toBe('region')
    expect(kindOf('constructor')).toBe('unclear')
  })

  it('of a malformed authorization is a matter of the region only if the store says so', () => {
    const code = 'AuthorizationHeaderMalformed'
    const wrongRegion = "the region 'us-east-1' is wrong; expecting 'eu-west-1'"
    expect(failureOf({ code, message: wrongRegion, status: 400 }).kind).toBe('region')
    expect(failureOf({ code, message: 'a non-empty Access Key must be provided', status: 400 }).kind).toBe(
      'credentials',
    )
  })

  it('is told with what was done, how often, and what the store said', () => {
    const failure = failureOf({ code: 'SlowDown', message: 'Please reduce your request rate.', status: 503 })
    const error = failureError('Reading s3://bucket/a', failure, 4)
    expect(error.message).toContain(
      'Reading s3://bucket/a (4 tries): SlowDown: Please reduce your request rate. (HTTP 503).',
    )
    expect(error).toMatchObject({ code: 'MR-S01', retry: true })
    expect(error.cause).toBe(failure)
  })

  it('is told without what the SDK says to its programmers', () => {
    const message =
      '@aws-sdk XML parse error: unexpected content.\n  Deserialization error: to see the raw response, inspect the hidden field {error}.$response on this object.'
    expect(failureOf({ code: 'Error', message, status: 503 }).message).toBe(
      'Error: @aws-sdk XML parse error: unexpected content. (HTTP 503)',
    )
  })

  it('that needs a person says what the person does', () => {
    const remedyOf = (kind: S3Failure['kind']) => failureError('Reading', new S3Failure(kind, 'as told')).remedy
    expect(remedyOf('bucket')).toContain('bucket')
    expect(remedyOf('region')).toContain('storage.s3.region')
    expect(remedyOf('clock')).toContain('clock')
    expect(remedyOf('certificate')).toContain('NODE_EXTRA_CA_CERTS')
  })
})
