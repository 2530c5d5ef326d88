// One connection to a real NATS server: how it is made, refused, lost and found again.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../runtime/base/environment.ts'
import { CREDIT_BYTES_MAX } from '../../runtime/network/limits.ts'
import { DIAL_TIMEOUT_MS, RETRY_MS_MIN } from '../../runtime/network/nats/limits.ts'
import { testAuthority } from '../support/certificates.ts'
import { jobCredentials } from './support/nats-credentials.ts'
import { addressOf, rejection, TestLinks } from './support/nats-links.ts'
import { heldBytes } from './support/held-bytes.ts'
import { startNats } from './support/nats-server.ts'
import type { NatsServer } from './support/nats-server.ts'
import { startProxy } from './support/proxy.ts'
import { freePorts, until } from './support/server-process.ts'

let links: TestLinks
let servers: NatsServer[]

beforeEach(() => {
  links = new TestLinks()
  servers = []
})

afterEach(async () => {
  for (const server of servers) server.process.thaw()
  await links.close()
  for (const server of servers) await server.stop()
})

async function start(config = ''): Promise<NatsServer> {
  const server = await startNats({ config })
  servers.push(server)
  return server
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)
const bytesOf = (words: string): Uint8Array => new TextEncoder().encode(words)
/** Users by their names, each with the subjects of one job. */
const usersConfig = (jobs: Readonly<Record<string, string>>, password: string): string => {
  const users = Object.entries(jobs).map(
    ([name, job]) =>
      `{ user: ${name}, password: "${password}", permissions: { publish: "mr.${job}.>", subscribe: ["mr.${job}.>", "_INBOX_${job}.>"] } }`,
  )
  return `authorization { users: [ ${users.join(', ')} ] }`
}
const userConfig = (password: string): string => usersConfig({ alice: 'job' }, password)
const userFiles = { userFile: '/user', passwordFile: '/password' }

describe('the first connection', () => {
  it('is tried until its deadline, and then the error names the servers', async () => {
    const [port] = await freePorts(1)
    const url = `nats://127.0.0.1:${port}`
    const { code, words } = await rejection(links.open({ servers: [url] }, { connectDeadlineMs: 700 }))
    expect(code).toBe('MR-W30')
    expect(words).toContain(`No connection within 700 ms at ${url}: connection refused`)
  })

  it('finds a server that starts late, and of several the one that is there', async () => {
    const [port] = await freePorts(1)
    const server = await start()
    await server.process.kill()
    const opening = links.open({ servers: [`nats://127.0.0.1:${port}`, server.url] })
    await server.process.start()
    const link = await opening
    expect(link.connected).toBe(true)
    await link.ping()
  })

  it('leaves no socket behind where a server accepts and says nothing', async () => {
    const sockets = new Set<Socket>()
    const silent = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => undefined)
      socket.on('close', () => sockets.delete(socket))
      socket.resume()
    })
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
    const url = `nats://127.0.0.1:${(silent.address() as AddressInfo).port}`
    const { code, words } = await rejection(links.open({ servers: [url] }, { connectDeadlineMs: 100 }))
    expect(code).toBe('MR-W30')
    expect(words).toContain('timeout')
    await until('all its sockets are closed', () => sockets.size === 0)
    await new Promise<void>((resolve) => silent.close(() => resolve()))
  })

  it('is refused at once with a wrong password, which is not shown', async () => {
    const server = await start(userConfig('right'))
    links.secrets.set('/user', 'alice').set('/password', 'open-sesame')
    const { code, words } = await rejection(links.open({ servers: [server.url], ...userFiles }))
    expect(code).toBe('MR-W31')
    expect(words).toContain(server.url)
    expect(words + links.words).not.toContain('open-sesame')
    links.secrets.set('/password', 'right\n')
    await (await links.open({ servers: [server.url], ...userFiles })).ping()
  })

  it('is made with a token', async () => {
    const server = await start('authorization { token: "t0ken" }')
    links.secrets.set('/token', 't0ken')
    await (await links.open({ servers: [server.url], tokenFile: '/token' })).ping()
    expect((await rejection(links.open({ servers: [server.url] }))).code).toBe('MR-W31')
  })

  it('is refused where the server takes messages smaller than a frame', async () => {
    const server = await start('max_payload: 16KB')
    const { code, words } = await rejection(links.open({ servers: [server.url] }))
    expect(code).toBe('MR-W33')
    expect(words).toContain('16384 bytes (max_payload); 32768 are needed')
  })
})

describe('TLS', () => {
  let folder: string

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'millrace-nats-tls-'))
  })

  afterEach(() => rm(folder, { recursive: true, force: true }))

  it('is made with the right authority, and refused with another, without a certificate, and where only one side has it', async () => {
    const [authority, stranger] = [await testAuthority(), await testAuthority('stranger')]
    const [own, client] = [await authority.issue(['127.0.0.1']), await authority.issue(['client'])]
    const files = { ca: authority.ca, cert: own.cert, key: own.key }
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content)
    const server = await start(
      `tls { cert_file: "${folder}/cert", key_file: "${folder}/key", ca_file: "${folder}/ca", verify: true }`,
    )
    const plain = await start()
    links.secrets
      .set('/ca', authority.ca)
      .set('/stranger', stranger.ca)
      .set('/cert', client.cert)
      .set('/key', client.key)
    const tls = { caFile: '/ca', certFile: '/cert', keyFile: '/key' }
    const link = await links.open({ servers: [server.url], tls })
    await link.ping()
    const wrong = [
      { servers: [server.url], tls: { ...tls, caFile: '/stranger' } },
      { servers: [server.url], tls: { caFile: '/ca' } },
      { servers: [server.url] },
      { servers: [plain.url], tls },
      { servers: [plain.url.replace('nats:', 'tls:')] },
    ]
    for (const config of wrong) {
      // Long before the deadline. A try more where the server's end overtook its reason: a reset says nothing, and is no reason to give up.
      const { code, words } = await rejection(links.open(config, { connectDeadlineMs: 30_000 }))
      expect(`${code} for ${words}`).toMatch(/^MR-W32/)
    }
    // A renewed certificate is read when it is needed next.
    const renewed = await authority.issue(['client'])
    links.secrets.set('/cert', renewed.cert).set('/key', renewed.key)
    await server.process.restart()
    await link.flush()
    expect(links.errors).toEqual([])
  })
})

describe('the credentials of one job', () => {
  it('do not reach the subjects of another: to send and to listen are refused by name, for both', async () => {
    const jobs = jobCredentials()
    const server = await start(jobs.config)
    const open = (job: string) => {
      links.secrets.set(`/${job}.creds`, jobs.credentials(job))
      return links.open({ servers: [server.url], credentialsFile: `/${job}.creds` }, { job })
    }
    const [one, two] = [await open('one'), await open('two')]
    const heard: string[] = []
    for (const [name, link, subject] of [
      ['one own', one, 'mr.one.data.x'],
      ['two own', two, 'mr.two.data.x'],
      ['one foreign', one, 'mr.two.>'],
      ['two foreign', two, 'mr.one.data.x'],
    ] as const)
      link.transport.subscribe(subject, (bytes) => heard.push(`${name} hears ${text(bytes)}`))
    await Promise.all([one.flush(), two.flush()])
    for (const [link, from] of [
      [one, 'one'],
      [two, 'two'],
    ] as const)
      for (const job of ['one', 'two']) link.transport.send(addressOf(`mr.${job}.data.x`), bytesOf(`from ${from}`))
    await Promise.all([one.ping(), two.ping()])
    await until('both hear their own', () => heard.length >= 2)
    await until('all four refusals', () => links.errors.length >= 4)
    expect(heard.toSorted()).toEqual(['one own hears from one', 'two own hears from two'])
    const refused = links.errors.map(
      ({ code, message }) => `${code} ${/(Sending to|Listening on) \S+/.exec(message)?.[0]}`,
    )
    expect(refused.toSorted()).toEqual([
      'MR-W34 Listening on mr.one.data.x',
      'MR-W34 Listening on mr.two.>',
      'MR-W34 Sending to mr.one.data.x',
      'MR-W34 Sending to mr.two.data.x',
    ])
    expect(links.words).toContain('the job needs mr.one.> and _INBOX_one.>')
  })

  it('that expire are read again, and nobody is told when the new ones are there', async () => {
    const jobs = jobCredentials()
    const server = await start(jobs.config)
    links.secrets.set('/creds', jobs.credentials('job', 2))
    const link = await links.open({ servers: [server.url], credentialsFile: '/creds' })
    const got: string[] = []
    link.transport.subscribe('mr.job.x', (bytes) => got.push(text(bytes)))
    links.secrets.set('/creds', jobs.credentials('job'))
    await until('the server ends the connection', () => links.logged.some(({ message }) => /lost/.test(message)))
    await link.flush()
    link.transport.send(addressOf('mr.job.x'), bytesOf('after'))
    await until('the subscription works again', () => got.length === 1)
    expect(links.errors).toEqual([])
    expect(JSON.stringify(links.logged)).toMatch(/authentication expired/i)
  })

  it('that were changed at the server are reported once, and found when the file has them', async () => {
    const server = await start(userConfig('first'))
    links.secrets.set('/user', 'alice').set('/password', 'first')
    const link = await links.open({ servers: [server.url], ...userFiles })
    await server.configure(userConfig('second'))
    await server.process.restart()
    await until('the refusal is told', () => links.errors.length > 0)
    const attempts = async (): Promise<number> => Number((await server.monitor('varz'))['total_connections'])
    const before = await attempts()
    await until('it is tried again', async () => (await attempts()) > before + 1)
    expect(links.errors.map(({ code }) => code)).toEqual(['MR-W31'])
    expect(link.connected).toBe(false)
    links.secrets.set('/password', 'second')
    await link.flush()
    expect(link.connected).toBe(true)
    links.secrets.delete('/password')
    await server.process.restart()
    await until('the missing file is told', () => links.errors.length > 1)
    expect(links.errors[1]!.message).toMatch(/MR-W38 .*\/password cannot be read/)
    links.secrets.set('/password', 'second')
    await link.flush()
  })

  it('that do not allow the subjects of the job are refused at once', async () => {
    const server = await start(usersConfig({ alice: 'job', bob: 'other' }, 'same'))
    links.secrets.set('/user', 'bob').set('/password', 'same')
    const { code, words } = await rejection(links.open({ servers: [server.url], ...userFiles }))
    expect(code).toBe('MR-W34')
    expect(words).toMatch(
      /(Listening on|Sending to) mr\.job\.trial is refused; the job needs mr\.job\.> and _INBOX_job\.>/,
    )
  })

  it('that came to allow other subjects are told of once and to who asks, and found when the file has right ones', async () => {
    const server = await start(usersConfig({ alice: 'job' }, 'same'))
    links.secrets.set('/user', 'alice').set('/password', 'same')
    const link = await links.open({ servers: [server.url], ...userFiles })
    const got: string[] = []
    link.transport.subscribe('mr.job.x', (bytes) => got.push(text(bytes)))
    await server.configure(usersConfig({ alice: 'elsewhere' }, 'same'))
    await server.process.restart()
    await until('the refusal is told', () => links.errors.length > 0)
    expect(links.errors.map(({ code }) => code)).toEqual(['MR-W34'])
    await until('it is away', () => !link.connected)
    expect((await rejection(link.ping())).code).toBe('MR-W34')
    // Others have the job's subjects now.
    await server.configure(usersConfig({ bob: 'job' }, 'same'))
    links.secrets.set('/user', 'bob')
    await server.process.restart()
    await link.flush()
    link.transport.send(addressOf('mr.job.x'), bytesOf('back'))
    await until('the subscription works again', () => got.length === 1)
    expect(got).toEqual(['back'])
    expect(links.errors).toHaveLength(1)
  })
})

describe('a connection', () => {
  it('comes back with its subscriptions after every kill, and what was sent meanwhile does not come later', async () => {
    const server = await start()
    const [left, right] = [await links.open({ servers: [server.url] }), await links.open({ servers: [server.url] })]
    const got: string[] = []
    right.transport.subscribe('mr.job.a', (bytes) => got.push(text(bytes)))
    const closed = right.transport.subscribe('mr.job.a', () => got.push('to nobody'))
    closed.close()
    const expected: string[] = []
    for (let life = 0; life < 4; life++) {
      await Promise.all([left.flush(), right.flush()])
      left.transport.send(addressOf('mr.job.a'), bytesOf(`life ${life}`))
      expected.push(`life ${life}`)
      await until('it arrives', () => got.length === expected.length)
      await server.process.kill()
      await until('both know', () => !left.connected && !right.connected)
      left.transport.send(addressOf('mr.job.a'), bytesOf('stale'))
      expect((await rejection(left.ping())).code).toBe('MR-W30')
      await server.process.start()
    }
    await Promise.all([left.flush(), right.flush()])
    await right.ping()
    expect(got).toEqual(expected)
    expect(links.errors).toEqual([])
    expect(JSON.stringify(links.logged)).toContain('"dropped":1')
  })

  it('to a frozen server is given up though its socket is full; what is outstanding stays bounded, and it comes back', async () => {
    const server = await start()
    const link = await links.open({ servers: [server.url] }, { lookMs: 100 })
    const got: string[] = []
    link.transport.subscribe('mr.job.small', (bytes) => got.push(text(bytes)))
    await link.flush()
    server.process.freeze()
    const frame = new Uint8Array(32 * 1024)
    const before = heldBytes()
    for (let count = 0; count < 4000; count++) link.transport.send(addressOf('mr.job.flood'), frame)
    const kept = heldBytes() - before
    expect(kept).toBeGreaterThan(8 * 1024 * 1024)
    // What the client has copied on its way to the socket comes on top.
    expect(kept).toBeLessThan(1.5 * CREDIT_BYTES_MAX)
    link.transport.send(addressOf('mr.job.small'), bytesOf('too much'))
    await until('it is given up', () => !link.connected)
    expect(JSON.stringify(links.logged)).toContain('the server was silent for 500 ms')
    server.process.thaw()
    await link.flush()
    link.transport.send(addressOf('mr.job.small'), bytesOf('back'))
    await until('the subscription works again', () => got.length === 1)
    expect(got).toEqual(['back'])
  })

  it('says once when the server that came back takes too small messages, and goes on trying', async () => {
    const server = await start()
    const link = await links.open({ servers: [server.url] })
    await server.configure('max_payload: 8KB')
    await server.process.restart()
    await until('it is told', () => links.errors.length > 0)
    expect(links.errors[0]!.code).toBe('MR-W33')
    await server.configure('')
    await server.process.restart()
    await link.flush()
    expect(links.errors.length).toBe(1)
  })

  it('reports a message above a lowered limit by its subject, and goes on', async () => {
    const server = await start('max_payload: 64KB')
    const link = await links.open({ servers: [server.url] })
    expect(link.maxPayload).toBe(64 * 1024)
    for (let count = 0; count < 3; count++)
      link.transport.send(addressOf('mr.job.large'), new Uint8Array(64 * 1024 + 1))
    expect(links.errors.map(({ code }) => code)).toEqual(['MR-W35'])
    expect(links.errors[0]!.message).toContain('mr.job.large')
    await link.ping()
  })

  it('asks a server that ends every connection less and less often', async () => {
    const server = await start()
    const proxy = await startProxy({ port: server.port })
    try {
      const fromMs = performance.now()
      await links.open({ servers: [`nats://127.0.0.1:${proxy.port}`] })
      await until('it has come back six times', () => {
        proxy.cut()
        return proxy.accepted > 6
      })
      // Six waits, each twice the one before it, and each at least the half of itself.
      expect(performance.now() - fromMs).toBeGreaterThanOrEqual(((2 ** 6 - 1) * RETRY_MS_MIN) / 2)
    } finally {
      await proxy.close()
    }
  })

  it('knows at once that the server has ended it while it was tried out', async () => {
    let accepted = 0
    const fickle = createServer((socket) => {
      accepted++
      socket.on('error', () => undefined)
      socket.write(
        `INFO ${JSON.stringify({ server_id: 'fickle', version: '2.15.1', proto: 1, headers: true, max_payload: 1 << 20 })}\r\n`,
      )
      // The first ping ends the handshake, the second is the trial's.
      socket.on('data', (bytes) => (text(bytes).includes('SUB') ? socket.destroy() : socket.write('PONG\r\n')))
    })
    await new Promise<void>((resolve) => fickle.listen(0, '127.0.0.1', resolve))
    try {
      const { clock } = links.environment
      // Time in which no trial ever takes too long.
      const patient: Clock = {
        ...clock,
        timer: (delayMs, callback) =>
          delayMs === DIAL_TIMEOUT_MS ? { cancel: () => undefined } : clock.timer(delayMs, callback),
      }
      const servers = [`nats://127.0.0.1:${(fickle.address() as AddressInfo).port}`]
      const environment = { ...links.environment, clock: patient }
      const refused = rejection(links.open({ servers }, { connectDeadlineMs: 500, environment }))
      await until('it has asked again', () => accepted > 2)
      expect((await refused).code).toBe('MR-W30')
    } finally {
      await new Promise<void>((resolve) => fickle.close(() => resolve()))
    }
  })

  it('hands over what was sent before its close', async () => {
    const server = await start()
    const [left, right] = [await links.open({ servers: [server.url] }), await links.open({ servers: [server.url] })]
    let bytes = 0
    right.transport.subscribe('mr.job.a', (message) => (bytes += message.length))
    await right.flush()
    const frame = new Uint8Array(32 * 1024)
    for (let count = 0; count < 100; count++) left.transport.send(addressOf('mr.job.a'), frame)
    await left.close()
    await until('everything arrives', () => bytes === 100 * frame.length)
    expect(left.connected).toBe(false)
    expect((await rejection(left.flush())).words).toContain('closed')
  })

  it('goes on reading when a listener throws, whose error is thrown where it ends the thread', async () => {
    const server = await start()
    const turns: (() => void)[] = []
    const environment = { ...links.environment, executor: { post: (turn: () => void) => void turns.push(turn) } }
    const link = await links.open({ servers: [server.url] }, { environment })
    const got: string[] = []
    link.transport.subscribe('mr.job.a', (bytes) => {
      got.push(text(bytes))
      if (got.length === 1) throw new Error('a broken invariant')
    })
    for (const words of ['one', 'two']) link.transport.send(addressOf('mr.job.a'), bytesOf(words))
    await until('both are read', () => got.length === 2)
    expect(turns.length).toBe(1)
    expect(turns[0]).toThrow('a broken invariant')
  })

  it('is shown by the server under its name', async () => {
    const server = await start()
    await links.open({ servers: [server.url] }, { name: 'flights, slot 3, data' })
    const { connections } = (await server.monitor('connz')) as { connections: { name: string }[] }
    expect(connections.map(({ name }) => name)).toEqual(['flights, slot 3, data'])
  })
})
