import { createServer, connect } from 'node:tls'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { X509Certificate } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { issueCertificate, newAuthority, renewalOf, renewed } from './certificates.ts'
import type { HeldCertificates } from './certificates.ts'

const dayMs = 86_400_000
const nowMs = Date.parse('2026-03-01T12:00:00Z')
const hosts = ['flights-coordinator.analytics.svc', 'flights-coordinator']

async function fresh(atMs = nowMs, names: readonly string[] = hosts): Promise<HeldCertificates> {
  return renewed(undefined, { renew: 'authority', why: 'new' }, { name: 'flights', hosts: names, nowMs: atMs })
}

const renewal = (held: HeldCertificates | undefined, atMs = nowMs, names = hosts) =>
  renewalOf(held, { hosts: names, nowMs: atMs })

describe('whether certificates are renewed', () => {
  it('fresh ones are not, also an hour before they were made', async () => {
    const held = await fresh()
    expect(renewal(held)).toEqual({ renew: 'nothing' })
    expect(renewal(held, nowMs - 3_000_000)).toEqual({ renew: 'nothing' })
  })

  it('a month before the end, and not before', async () => {
    const held = await fresh()
    expect(renewal(held, nowMs + 59 * dayMs)).toEqual({ renew: 'nothing' })
    expect(renewal(held, nowMs + 61 * dayMs)).toEqual({ renew: 'certificate', why: 'it ends soon' })
    expect(renewal(held, nowMs + 9.5 * 365 * dayMs)).toEqual({ renew: 'authority', why: 'the authority ends soon' })
  })

  it('whatever is missing, broken, or does not belong together is', async () => {
    const [held, other] = [await fresh(), await fresh()]
    expect(renewal(undefined).renew).toBe('authority')
    expect(renewal({ ...held, authority: '' }).renew).toBe('authority')
    expect(renewal({ ...held, authorityKey: 'no key' }).renew).toBe('authority')
    expect(renewal({ ...held, authorityKey: other.authorityKey }).renew).toBe('authority')
    expect(renewal({ ...held, certificate: 'no certificate' }).renew).toBe('certificate')
    expect(renewal({ ...held, certificateKey: other.certificateKey }).renew).toBe('certificate')
    expect(renewal({ ...held, certificate: other.certificate, certificateKey: other.certificateKey })).toEqual({
      renew: 'certificate',
      why: 'it is of another authority',
    })
    expect(renewal(held, nowMs, [...hosts, 'another.svc'])).toEqual({
      renew: 'certificate',
      why: 'it is not for another.svc',
    })
  })
})

describe('a renewal', () => {
  it('of the certificate keeps the authority', async () => {
    const held = await fresh()
    const next = await renewed(held, { renew: 'certificate', why: 'it ends soon' }, { name: 'x', hosts, nowMs })
    expect(next).toMatchObject({ authority: held.authority, authorityKey: held.authorityKey })
    expect(next.certificate).not.toBe(held.certificate)
    expect(renewal(next)).toEqual({ renew: 'nothing' })
  })

  it('of the authority goes on to trust the one before it, and no older one', async () => {
    const first = await fresh()
    const again = (held: HeldCertificates) =>
      renewed(held, { renew: 'authority', why: 'the authority ends soon' }, { name: 'x', hosts, nowMs })
    const second = await again(first)
    expect(second.authority).toContain(first.authority.trim())
    expect(renewal(second)).toEqual({ renew: 'nothing' })
    const third = await again(second)
    expect(third.authority.match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
    expect(third.authority).not.toContain(first.authority.trim())
  })

  it('names addresses as addresses, which hosts are not checked against', async () => {
    const names = ['flights-coordinator', 'localhost', '127.0.0.1', '::1']
    const held = await fresh(nowMs, names)
    const certificate = new X509Certificate(held.certificate)
    for (const address of ['127.0.0.1', '::1']) expect(certificate.checkIP(address)).toBe(address)
    expect(certificate.subjectAltName).not.toContain('DNS:127.0.0.1')
    expect(renewal(held, nowMs, names)).toEqual({ renew: 'nothing' })
    expect(renewal(await fresh(), nowMs, [...hosts, '::1'])).toEqual({
      renew: 'certificate',
      why: 'it is not for ::1',
    })
  })

  it('names a host that is longer than a common name may be', async () => {
    const long = `${'a'.repeat(60)}.${'b'.repeat(60)}.svc`
    const held = await fresh(nowMs, [long])
    expect(new X509Certificate(held.certificate).checkHost(long)).toBe(long)
    expect(renewal(held, nowMs, [long])).toEqual({ renew: 'nothing' })
  })
})

it('a client that trusts the authority is let in by the names of the certificate, and by no other', async () => {
  const held = await fresh(Date.now(), [...hosts, '127.0.0.1'])
  const stranger = await newAuthority('stranger', Date.now())
  const server = createServer({ cert: held.certificate, key: held.certificateKey }, (socket) => socket.end())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const meet = async (ca: string, servername?: string): Promise<string> => {
    const socket = connect({ host: '127.0.0.1', port, ca, ...(servername !== undefined && { servername }) })
    try {
      await once(socket, 'secureConnect')
      return 'in'
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'error'
    } finally {
      socket.destroy()
    }
  }
  try {
    for (const host of hosts) expect(await meet(held.authority, host)).toBe('in')
    expect(await meet(held.authority)).toBe('in')
    expect(await meet(held.authority, 'another.svc')).toBe('ERR_TLS_CERT_ALTNAME_INVALID')
    expect(await meet(stranger.certificate, hosts[0])).toMatch(/UNABLE_TO_VERIFY|SELF_SIGNED|UNABLE_TO_GET/)
  } finally {
    server.close()
  }
})

it('what an authority signs cannot sign', async () => {
  const authority = await newAuthority('a', nowMs)
  const issued = await issueCertificate(authority, { hosts, nowMs })
  expect(new X509Certificate(issued.certificate).ca).toBe(false)
  expect(new X509Certificate(authority.certificate).ca).toBe(true)
})
