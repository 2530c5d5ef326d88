import { Buffer } from 'node:buffer'
import { describe, expect, it } from 'vitest'
import { jobId } from '../runtime/base/ids.ts'
import { allowedSubjects } from '../runtime/network/subjects.ts'
import {
  isAccountSeed,
  isSignedBy,
  jobNatsCredentials,
  natsKeysData,
  natsServerConfig,
  newNatsKeys,
  readNatsKeys,
  signerOf,
} from './nats-credentials.ts'

const uid = '0d6f3a52-91b8-4c38-9d0e-7f1f7a2b6c11'
const nowMs = Date.parse('2026-03-01T12:00:00Z')
const keys = newNatsKeys(nowMs)

const bodyOf = (jwt: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(jwt.split('.')[1]!, 'base64url').toString()) as Record<string, unknown>

describe('the keys of a NATS server in operator mode', () => {
  it('come back from their Secret', () => {
    expect(readNatsKeys(natsKeysData(keys))).toEqual(keys)
  })

  it('are none where one is missing or is of another kind', () => {
    const data = natsKeysData(keys)
    const encoded = (text: string): string => Buffer.from(text).toString('base64')
    expect(readNatsKeys(undefined)).toBeUndefined()
    for (const name of Object.keys(data)) {
      const { [name]: _, ...others } = data
      expect(readNatsKeys(others), name).toBeUndefined()
      expect(readNatsKeys({ ...data, [name]: encoded('nonsense') }), name).toBeUndefined()
    }
    expect(readNatsKeys({ ...data, 'signing-seed': data['operator-seed']! })).toBeUndefined()
  })

  it('give the same config whenever it is made, without a seed in it', () => {
    const config = natsServerConfig(keys)
    expect(natsServerConfig(readNatsKeys(natsKeysData(keys))!)).toBe(config)
    for (const seed of [keys.operatorSeed, keys.systemSeed, keys.accountSeed, keys.signingSeed])
      expect(config).not.toContain(seed)
    expect(natsServerConfig(newNatsKeys(nowMs))).not.toBe(config)
  })

  it('allow a job what its subjects are, and nothing else', () => {
    const { account } = signerOf(keys)
    const line = natsServerConfig(keys)
      .split('\n')
      .find((each) => each.trim().startsWith(account))!
    const claims = bodyOf(line.split(': ')[1]!) as {
      nats: {
        signing_keys: { template: { pub: { allow: string[] }; sub: { allow: string[] } } }[]
        default_permissions: object
      }
    }
    const [scope] = claims.nats.signing_keys
    const filled = (allow: readonly string[]) => allow.map((subject) => subject.replace('{{name()}}', uid))
    expect(filled(scope!.template.pub.allow)).toEqual(allowedSubjects(jobId(uid)))
    expect(filled(scope!.template.sub.allow)).toEqual(allowedSubjects(jobId(uid)))
  })
})

describe("a job's credentials", () => {
  const signer = signerOf(keys)

  it('name the job and their signer', () => {
    const credentials = jobNatsCredentials(signer, uid, nowMs)
    expect(bodyOf(credentials.split('\n')[1]!)).toMatchObject({
      name: uid,
      iat: nowMs / 1_000,
      nats: { type: 'user', issuer_account: signer.account },
    })
    expect(isSignedBy(credentials, signer, uid)).toBe(true)
  })

  it('of another signer, of another job, or that are none are told apart', () => {
    const credentials = jobNatsCredentials(signer, uid, nowMs)
    const other = signerOf(newNatsKeys(nowMs))
    expect(isSignedBy(credentials, other, uid)).toBe(false)
    expect(isSignedBy(credentials, { ...signer, account: other.account }, uid)).toBe(false)
    expect(isSignedBy(credentials, signer, 'another')).toBe(false)
    expect(isSignedBy('nonsense', signer, uid)).toBe(false)
    expect(isSignedBy(credentials.replace(/\.[\w-]+\./, '.e30.'), signer, uid)).toBe(false)
  })

  it('are for a uid that is one token of a subject', () => {
    expect(() => jobNatsCredentials(signer, 'a.b', nowMs)).toThrow(/token of a subject/)
    expect(() => jobNatsCredentials(signer, '>', nowMs)).toThrow(/token of a subject/)
  })
})

it('the seed of an account is known from others', () => {
  expect(isAccountSeed(keys.signingSeed)).toBe(true)
  expect(isAccountSeed(keys.operatorSeed)).toBe(false)
  expect(isAccountSeed('SAnonsense')).toBe(false)
})
