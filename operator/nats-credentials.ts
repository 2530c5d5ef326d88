// NATS in operator mode, so that one job can neither read nor disturb another: an operator, a system account, and one account for all jobs
// whose scoped signing key lets a user of a name touch only that name's subjects (runtime/network/subjects.ts). JWTs as nats-server reads
// them (format version 2 of nats-io/jwt): header, claims, Ed25519 signature.
//
// Keys come from the library's own randomness: nothing may be able to repeat them.

import { Buffer } from 'node:buffer'
import { createHash } from 'node:crypto'
import { nkeys } from '@nats-io/transport-node'
import { invariant } from '../runtime/base/errors.ts'

type KeyPair = ReturnType<typeof nkeys.createUser>

/** Everything that the leader makes once and keeps in a Secret. Seeds: whoever has one can sign. */
export interface NatsKeys {
  readonly operatorSeed: string
  readonly systemSeed: string
  readonly accountSeed: string
  /** Of the account; signs the users of jobs. */
  readonly signingSeed: string
  /** Seconds since the epoch; makes the server's config the same whenever it is made again. */
  readonly madeAt: number
}

/** Lets users into an account. */
export interface NatsSigner {
  readonly signingSeed: string
  /** The account's public key. */
  readonly account: string
}

export function newNatsKeys(nowMs: number): NatsKeys {
  return {
    operatorSeed: seedOf(nkeys.createOperator()),
    systemSeed: seedOf(nkeys.createAccount()),
    accountSeed: seedOf(nkeys.createAccount()),
    signingSeed: seedOf(nkeys.createAccount()),
    madeAt: Math.floor(nowMs / 1_000),
  }
}

export function signerOf({ signingSeed, accountSeed }: NatsKeys): NatsSigner {
  return { signingSeed, account: pairOf(accountSeed).getPublicKey() }
}

/** What the server's config file includes: who signs, and the accounts that there are. Holds no seed. */
export function natsServerConfig(keys: NatsKeys): string {
  const [operator, system, account] = [keys.operatorSeed, keys.systemSeed, keys.accountSeed].map(pairOf) as [
    KeyPair,
    KeyPair,
    KeyPair,
  ]
  const [systemKey, accountKey] = [system.getPublicKey(), account.getPublicKey()]
  const signed = (name: string, subject: KeyPair, nats: object): string =>
    jwt({ name, subject: subject.getPublicKey(), nats, issuer: operator, issuedAt: keys.madeAt })
  const operatorJwt = signed('millrace', operator, { type: 'operator', version: 2, system_account: systemKey })
  const systemJwt = signed('SYS', system, {
    type: 'account',
    version: 2,
    limits: { ...unlimited, imports: 0, exports: 0 },
  })
  const accountJwt = signed('JOBS', account, {
    type: 'account',
    version: 2,
    limits: unlimited,
    default_permissions: {},
    signing_keys: [jobScope(pairOf(keys.signingSeed).getPublicKey())],
  })
  return [
    `operator: ${operatorJwt}`,
    `system_account: ${systemKey}`,
    'resolver: MEMORY',
    'resolver_preload: {',
    `  ${systemKey}: ${systemJwt}`,
    `  ${accountKey}: ${accountJwt}`,
    '}',
    '',
  ].join('\n')
}

/** A .creds file for a job. It has no end: the uid is never used again, and with the job the subjects are nobody's. */
export function jobNatsCredentials({ signingSeed, account }: NatsSigner, uid: string, nowMs: number): string {
  invariant(/^[A-Za-z0-9_-]+$/.test(uid), `the uid ${uid} is not one token of a subject`)
  const user = nkeys.createUser()
  const token = jwt({
    name: uid,
    subject: user.getPublicKey(),
    nats: { type: 'user', version: 2, issuer_account: account },
    issuer: pairOf(signingSeed),
    issuedAt: Math.floor(nowMs / 1_000),
  })
  return [
    '-----BEGIN NATS USER JWT-----',
    token,
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    seedOf(user),
    '------END USER NKEY SEED------',
    '',
  ].join('\n')
}

/** Whether a job's credentials are of this signer; else they are made anew. */
export function isSignedBy(credentials: string, { signingSeed, account }: NatsSigner, uid: string): boolean {
  const claims = claimsOf(credentials)
  return (
    claims !== undefined &&
    claims.name === uid &&
    claims.iss === pairOf(signingSeed).getPublicKey() &&
    claims.nats?.issuer_account === account
  )
}

/** Of a Secret's data. undefined: something is missing or is no seed. */
export function readNatsKeys(data: Readonly<Record<string, string>> | undefined): NatsKeys | undefined {
  const seed = (name: string, prefix: string): string | undefined => {
    const text = Buffer.from(data?.[name] ?? '', 'base64')
      .toString()
      .trim()
    return text.startsWith(prefix) && isSeed(text) ? text : undefined
  }
  const madeAt = Number(Buffer.from(data?.['made-at'] ?? '', 'base64').toString())
  const operatorSeed = seed('operator-seed', 'SO')
  const systemSeed = seed('system-seed', 'SA')
  const accountSeed = seed('account-seed', 'SA')
  const signingSeed = seed('signing-seed', 'SA')
  if (operatorSeed === undefined || systemSeed === undefined || accountSeed === undefined || signingSeed === undefined)
    return undefined
  return Number.isSafeInteger(madeAt) && madeAt > 0
    ? { operatorSeed, systemSeed, accountSeed, signingSeed, madeAt }
    : undefined
}

/** For a Secret's data. */
export function natsKeysData(keys: NatsKeys): Readonly<Record<string, string>> {
  const texts = {
    'operator-seed': keys.operatorSeed,
    'system-seed': keys.systemSeed,
    'account-seed': keys.accountSeed,
    'signing-seed': keys.signingSeed,
    'made-at': String(keys.madeAt),
  }
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text).toString('base64')]))
}

/** Whether a text can sign users of an account. */
export function isAccountSeed(text: string): boolean {
  return text.startsWith('SA') && isSeed(text)
}

const unlimited = { subs: -1, data: -1, payload: -1, conn: -1, leaf: 0, imports: -1, exports: -1, wildcards: true }

function jobScope(key: string): object {
  const own = { allow: ['mr.{{name()}}.>', '_INBOX_{{name()}}.>'] }
  return { kind: 'user_scope', key, role: 'job', template: { pub: own, sub: own, subs: -1, data: -1, payload: -1 } }
}

function isSeed(text: string): boolean {
  try {
    pairOf(text)
    return true
  } catch {
    return false
  }
}

function pairOf(seed: string): KeyPair {
  return nkeys.fromSeed(new TextEncoder().encode(seed))
}

function seedOf(pair: KeyPair): string {
  return new TextDecoder().decode(pair.getSeed())
}

interface JwtParts {
  readonly name: string
  readonly subject: string
  readonly nats: object
  readonly issuer: KeyPair
  /** Seconds since the epoch. */
  readonly issuedAt: number
}

function jwt({ name, subject, nats, issuer, issuedAt }: JwtParts): string {
  const claims = { iat: issuedAt, iss: issuer.getPublicKey(), sub: subject, name, nats }
  const jti = createHash('sha256').update(JSON.stringify(claims)).digest('hex')
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part({ ...claims, jti })}`
  return `${signed}.${Buffer.from(issuer.sign(new TextEncoder().encode(signed))).toString('base64url')}`
}

interface Claims {
  readonly iss?: unknown
  readonly name?: unknown
  readonly nats?: { readonly issuer_account?: unknown }
}

/** Not verified: it is our own Secret that is looked at. */
function claimsOf(credentials: string): Claims | undefined {
  const [, body] = /-----BEGIN NATS USER JWT-----\s+[\w-]+\.([\w-]+)\.[\w-]+\s/.exec(credentials) ?? []
  if (body === undefined) return undefined
  try {
    return JSON.parse(Buffer.from(body, 'base64url').toString()) as Claims
  } catch {
    return undefined
  }
}
