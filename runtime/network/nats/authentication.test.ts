import { nkeys } from '@nats-io/transport-node'
import type { Authenticator } from '@nats-io/transport-node'
import { describe, expect, it } from 'vitest'
import type { NatsConfig } from '../../distributed/contract.ts'
import { authenticationFor, checkNatsConfig, readAuthentication } from './authentication.ts'

const servers = ['nats://one:4222', 'nats://two:4222']
const files: Readonly<Record<string, string>> = {
  '/user': 'job-7\n',
  '/password': 'secret\n',
  '/token': 'token',
  '/empty': '\n',
  '/ca': 'authority',
  '/cert': 'certificate',
  '/key': 'key',
}
const read = (file: string): Promise<string> =>
  files[file] === undefined ? Promise.reject(new Error(`no such file ${file}`)) : Promise.resolve(files[file])

describe('the configuration of the connection to NATS', () => {
  it('is refused where it contradicts itself, without showing a secret', () => {
    const wrong: NatsConfig[] = [
      { servers: [] },
      { servers: ['nats://user:secret@host:4222'] },
      { servers: ['wss://host'] },
      { servers: ['nats://one:4222,nats://two:4222'] },
      { servers: ['nats://'] },
      { servers, userFile: '/user' },
      { servers, passwordFile: '/password' },
      { servers, userFile: '/user', passwordFile: '/password', tokenFile: '/token' },
      { servers, credentialsFile: '/creds', tokenFile: '/token' },
      { servers, tls: { certFile: '/cert' } },
    ]
    const said = wrong.map((config) => {
      try {
        checkNatsConfig(config)
        return 'accepted'
      } catch (error) {
        return String(error)
      }
    })
    for (const words of said) {
      expect(words).toMatch(/MR-W37 .* nats\./)
      expect(words).not.toContain('secret')
    }
  })

  it('may leave out everything but the servers', () => {
    const addresses = [
      'host',
      'host:4222',
      'tls://nats.team.svc.cluster.local:4222/',
      '10.0.0.7',
      'nats://[fd00::7]:4222',
    ]
    for (const config of [{ servers }, { servers: addresses }, { servers, tls: { caFile: '/ca' } }])
      expect(() => checkNatsConfig(config)).not.toThrow()
  })
})

describe('the files of the connection to NATS', () => {
  it('are read as a user and password, as a token, and as the parts of TLS', async () => {
    expect(await readAuthentication({ servers }, read)).toEqual({})
    expect(await readAuthentication({ servers, userFile: '/user', passwordFile: '/password' }, read)).toEqual({
      user: 'job-7',
      pass: 'secret',
    })
    const tls = { caFile: '/ca', certFile: '/cert', keyFile: '/key' }
    expect(await readAuthentication({ servers, tokenFile: '/token', tls }, read)).toEqual({
      token: 'token',
      tls: { ca: 'authority', cert: 'certificate', key: 'key' },
    })
    expect(await readAuthentication({ servers: ['tls://host'] }, read)).toEqual({ tls: {} })
  })

  it('are credentials of a user also without an end of their last line', async () => {
    const seed = new TextDecoder().decode(nkeys.createUser().getSeed())
    const block = (name: string, content: string): string =>
      `-----BEGIN ${name}-----\n${content}\n------END ${name}------\n`
    const content = `${block('NATS USER JWT', 'header.claims.signature')}\n${block('USER NKEY SEED', seed)}`
    for (const written of [content, content.trimEnd()]) {
      const { authenticator } = await readAuthentication({ servers, credentialsFile: '/creds' }, () => written)
      expect((authenticator as Authenticator)('a nonce')).toMatchObject({ jwt: 'header.claims.signature' })
    }
  })

  it('are checked against the name in the address, or the IP address', () => {
    const tls = { ca: 'authority' }
    const expected: Readonly<Record<string, object>> = {
      'nats://host:4222': tls,
      '10.0.0.7:4222': { ...tls, host: '10.0.0.7' },
      'tls://[fd00::7]:4222': { ...tls, host: 'fd00::7' },
    }
    for (const [server, wanted] of Object.entries(expected))
      expect(authenticationFor(server, { token: 't', tls })).toEqual({ token: 't', tls: wanted })
    expect(authenticationFor('10.0.0.7', { token: 't' })).toEqual({ token: 't' })
  })

  it('are refused by name when they are missing, empty or something else', async () => {
    const refused = async (config: Partial<NatsConfig>): Promise<string> => {
      const words = String(await readAuthentication({ servers, ...config }, read).catch((error: unknown) => error))
      expect(words).toContain('MR-W38')
      return words
    }
    expect(await refused({ tokenFile: '/missing' })).toContain('/missing cannot be read: no such file')
    expect(await refused({ tokenFile: '/empty' })).toContain('/empty is empty')
    const words = await refused({ credentialsFile: '/password' })
    expect(words).toContain('/password is no credentials file')
    expect(words).not.toContain('secret')
  })
})
