// Certificates of a job's coordinator and of the webhook: an authority of its own for each, and one certificate that it signed. Keys come
// from the platform's own randomness: nothing may be able to repeat them.

import './certificates-reflect.ts'
import { Buffer } from 'node:buffer'
import { createPrivateKey, webcrypto, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import * as x509 from '@peculiar/x509'
import { invariant } from '../runtime/base/errors.ts'

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }

const dayMs = 86_400_000
const authorityDays = 3_650
const certificateDays = 90
/** Renewed when less is left. Whoever reads the files has weeks to notice. */
const authorityLeftDays = 365
const certificateLeftDays = 30
/** Clocks of a cluster differ. */
const earlyMs = 3_600_000

/** Both PEM. */
export interface KeyAndCertificate {
  readonly certificate: string
  readonly key: string
}

/** `name`: who it is, for those who look at it. */
export async function newAuthority(name: string, nowMs: number): Promise<KeyAndCertificate> {
  const keys = await newKeys()
  const certificate = await x509.X509CertificateGenerator.createSelfSigned(
    {
      serialNumber: newSerial(),
      name: [{ CN: [name] }],
      notBefore: new Date(nowMs - earlyMs),
      notAfter: new Date(nowMs + authorityDays * dayMs),
      signingAlgorithm: algorithm,
      keys,
      extensions: [
        new x509.BasicConstraintsExtension(true, 0, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    },
    webcrypto,
  )
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) }
}

/** A server's certificate for these host names and addresses; the first is its common name where it has room. */
export async function issueCertificate(
  authority: KeyAndCertificate,
  { hosts, nowMs }: { readonly hosts: readonly string[]; readonly nowMs: number },
): Promise<KeyAndCertificate> {
  const keys = await newKeys()
  const signer = new x509.X509Certificate(firstOf(authority.certificate))
  const signingKey = await webcrypto.subtle.importKey('pkcs8', derOf(authority.key), algorithm, false, ['sign'])
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: newSerial(),
      // 64 characters are all that X.520 has for it.
      subject: [{ CN: [(hosts[0] ?? '').slice(0, 64)] }],
      issuer: signer.subjectName,
      notBefore: new Date(nowMs - earlyMs),
      notAfter: new Date(Math.min(nowMs + certificateDays * dayMs, signer.notAfter.getTime())),
      signingKey,
      publicKey: keys.publicKey,
      signingAlgorithm: algorithm,
      extensions: [
        new x509.BasicConstraintsExtension(false, undefined, true),
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
        new x509.SubjectAlternativeNameExtension(
          hosts.map((value) => ({ type: isIP(value) === 0 ? 'dns' : 'ip', value })),
        ),
        await x509.AuthorityKeyIdentifierExtension.create(signer, false, webcrypto),
      ],
    },
    webcrypto,
  )
  return { certificate: certificate.toString('pem'), key: await pemOf(keys.privateKey) }
}

export interface HeldCertificates {
  /** PEM; after a change of the authority the current one first, and the one before it. */
  readonly authority: string
  readonly authorityKey: string
  readonly certificate: string
  readonly certificateKey: string
}

/** authority: it and the certificate; certificate: that alone. */
export type Renewal =
  | { readonly renew: 'nothing' }
  | { readonly renew: 'certificate' | 'authority'; readonly why: string }

/** Pure. What cannot be read is made anew. */
export function renewalOf(
  held: HeldCertificates | undefined,
  { hosts, nowMs }: { readonly hosts: readonly string[]; readonly nowMs: number },
): Renewal {
  const authority = held && parsed(firstOf(held.authority), held.authorityKey)
  if (held === undefined || authority === undefined)
    return { renew: 'authority', why: 'there is no authority with its key' }
  if (endsWithin(authority, nowMs, authorityLeftDays)) return { renew: 'authority', why: 'the authority ends soon' }
  const certificate = parsed(held.certificate, held.certificateKey)
  if (certificate === undefined) return { renew: 'certificate', why: 'there is no certificate with its key' }
  if (!certificate.checkIssued(authority) || !certificate.verify(authority.publicKey))
    return { renew: 'certificate', why: 'it is of another authority' }
  if (endsWithin(certificate, nowMs, certificateLeftDays)) return { renew: 'certificate', why: 'it ends soon' }
  const missing = hosts.find((host) => !isFor(certificate, host))
  return missing === undefined ? { renew: 'nothing' } : { renew: 'certificate', why: `it is not for ${missing}` }
}

function isFor(certificate: X509Certificate, host: string): boolean {
  return (isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host)) !== undefined
}

interface CertificateWords {
  readonly name: string
  readonly hosts: readonly string[]
  readonly nowMs: number
}

/** The very ones that are held while nothing is due. */
export async function keptOrRenewed(
  held: HeldCertificates | undefined,
  words: CertificateWords,
): Promise<HeldCertificates> {
  const renewal = renewalOf(held, words)
  if (renewal.renew !== 'nothing') return renewed(held, renewal, words)
  invariant(held !== undefined, 'what there is not is made')
  return held
}

/** Carries a renewal out. Whoever trusts the authority of before goes on to do so. */
export async function renewed(
  held: HeldCertificates | undefined,
  renewal: Exclude<Renewal, { renew: 'nothing' }>,
  { name, hosts, nowMs }: CertificateWords,
): Promise<HeldCertificates> {
  const isKept = renewal.renew === 'certificate' && held !== undefined
  const authority = isKept ? { certificate: held.authority, key: held.authorityKey } : await newAuthority(name, nowMs)
  const issued = await issueCertificate(authority, { hosts, nowMs })
  const before = held === undefined || isKept ? undefined : trustedOf(held.authority, nowMs)
  return {
    authority: before === undefined ? authority.certificate : `${authority.certificate.trimEnd()}\n${before}`,
    authorityKey: authority.key,
    certificate: issued.certificate,
    certificateKey: issued.key,
  }
}

/** Of a bundle the first, if it has not ended. */
function trustedOf(bundle: string, nowMs: number): string | undefined {
  const first = firstOf(bundle)
  const certificate = certificateOf(first)
  return certificate === undefined || endsWithin(certificate, nowMs, 0) ? undefined : first
}

function firstOf(bundle: string): string {
  return /-----BEGIN CERTIFICATE-----[\s\S]+?-----END CERTIFICATE-----/.exec(bundle)?.[0] ?? ''
}

/** undefined: one of them is not what it should be, or they do not belong together. */
function parsed(certificate: string, key: string): X509Certificate | undefined {
  const read = certificateOf(certificate)
  try {
    return read?.checkPrivateKey(createPrivateKey(key)) === true ? read : undefined
  } catch {
    return undefined
  }
}

function certificateOf(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem)
  } catch {
    return undefined
  }
}

function endsWithin(certificate: X509Certificate, nowMs: number, days: number): boolean {
  return Date.parse(certificate.validTo) <= nowMs + days * dayMs
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
}

/** Of 127 bits, not negative. */
function newSerial(): string {
  const bytes = webcrypto.getRandomValues(new Uint8Array(16))
  bytes[0]! &= 0x7f
  return Buffer.from(bytes).toString('hex')
}

async function pemOf(key: webcrypto.CryptoKey): Promise<string> {
  return x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', key), 'PRIVATE KEY')
}

function derOf(pem: string): ArrayBuffer {
  return x509.PemConverter.decodeFirst(pem)
}
