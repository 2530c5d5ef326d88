// Certificates for tests of TLS: an authority and what it signs, made anew for each test.

import { webcrypto } from 'node:crypto'

/** The library asks for it at its import, for decorators that none of what is used here has. */
const reflect = Reflect as unknown as Record<string, unknown>
reflect['getMetadata'] ??= () => undefined
reflect['getOwnMetadata'] ??= () => undefined
reflect['defineMetadata'] ??= () => undefined
reflect['hasOwnMetadata'] ??= () => false
reflect['metadata'] ??= () => () => undefined

const x509 = await import('@peculiar/x509')

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' }
const dayMs = 86_400_000

export interface TestCertificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

export interface TestAuthority {
  /** PEM. */
  readonly ca: string
  /** For these host names and addresses. */
  issue(names: readonly string[], validity?: { readonly notAfter: Date }): Promise<TestCertificate>
}

export async function testAuthority(name = 'test authority'): Promise<TestAuthority> {
  const keys = await newKeys()
  const authority = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: '01',
    name: `CN=${name}`,
    notBefore: new Date(Date.now() - dayMs),
    notAfter: new Date(Date.now() + dayMs),
    signingAlgorithm: algorithm,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign, true),
    ],
  })
  return {
    ca: authority.toString('pem'),
    issue: async (names, validity) => {
      const own = await newKeys()
      const certificate = await x509.X509CertificateGenerator.create({
        serialNumber: '02',
        subject: `CN=${names[0]}`,
        issuer: authority.subject,
        notBefore: new Date(Date.now() - dayMs),
        notAfter: validity?.notAfter ?? new Date(Date.now() + dayMs),
        signingKey: keys.privateKey,
        publicKey: own.publicKey,
        signingAlgorithm: algorithm,
        extensions: [
          new x509.SubjectAlternativeNameExtension(
            names.map((name) => ({ type: /^[\d.]+$|:/.test(name) ? 'ip' : 'dns', value: name })),
          ),
        ],
      })
      const key = await webcrypto.subtle.exportKey('pkcs8', own.privateKey)
      return { cert: certificate.toString('pem'), key: x509.PemConverter.encode(key, 'PRIVATE KEY') }
    },
  }
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])
}
