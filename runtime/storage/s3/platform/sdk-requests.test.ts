// The SDK against a server on loopback that answers as each test wants: badly, mostly.

import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createTcpServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { realEnvironment } from '../../../local/platform/real-environment.ts'
import { freePorts } from '../../../../tests/servers/support/server-process.ts'
import { bytesOf } from '../../conformance-support.ts'
import { MemoryFiles } from '../../memory-files.ts'
import { Calls } from '../calls.ts'
import { S3Failure } from '../failures.ts'
import { sdkRequests } from './sdk-requests.ts'

const environment = realEnvironment({ log: () => undefined })
const at = { bucket: 'bucket', key: 'jobs/one/head' }
const config = { region: 'eu-north-1', accessKeyIdFile: '/s3/id', secretAccessKeyFile: '/s3/secret' }
const mark = 'f'.repeat(32)

type Handler = (request: IncomingMessage, response: ServerResponse) => unknown

const ends: (() => Promise<void> | void)[] = []
afterEach(async () => {
  vi.unstubAllEnvs()
  for (const end of ends.splice(0)) await end()
})

async function serve(handler: Handler) {
  const sockets = new Set<Socket>()
  const server: Server = createServer((request, response) => void handler(request, response))
  server.on('connection', (socket) => sockets.add(socket))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  ends.push(async () => {
    for (const socket of sockets) socket.destroy()
    await new Promise<void>((resolve) => server.close(() => resolve()))
  })
  return { endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sockets }
}

async function credentialFiles(id = 'KEYID', secret = 'SECRETSECRET') {
  const files = new MemoryFiles()
  await files.makeDirectory('/s3')
  await files.writeNew('/s3/id', bytesOf(`${id}\n`))
  await files.writeNew('/s3/secret', bytesOf(`${secret}\n`))
  return files
}

async function open(endpoint: string, files?: MemoryFiles, from: object = config) {
  const requests = sdkRequests({
    config: { endpoint, ...from },
    files: files ?? (await credentialFiles()),
    clock: environment.clock,
  })
  const calls = new Calls({ requests, environment })
  ends.push(() => calls.close())
  return { requests, calls }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

/** Answers everything with an error of S3. */
const refuse =
  (status: number, code: string, message = 'as told', more = ''): Handler =>
  (request, response) => {
    request.resume()
    response.writeHead(status, { 'content-type': 'application/xml' })
    response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message>${more}</Error>`)
  }

const getOnce = async (calls: Calls, deadlineMs = 5_000) =>
  calls.once((requests, once) => requests.get({ at }, once), { deadlineMs })

async function failureOf(asked: Promise<unknown>): Promise<S3Failure> {
  const answer = await asked.then(
    () => new Error('it succeeded'),
    (error: unknown) => error,
  )
  if (!(answer instanceof S3Failure)) throw answer
  return answer
}

/** As on a machine on which nobody has set anything up. */
function nothingOfAws(): void {
  for (const name of ['ACCESS_KEY_ID', 'SECRET_ACCESS_KEY', 'SESSION_TOKEN', 'PROFILE', 'WEB_IDENTITY_TOKEN_FILE'])
    vi.stubEnv(`AWS_${name}`, undefined)
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', '/nowhere')
  vi.stubEnv('AWS_CONFIG_FILE', '/nowhere')
}

async function folderOfItsOwn(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-credentials-'))
  ends.push(() => rm(folder, { recursive: true, force: true }))
  return folder
}

/** What AWS's STS answers to a web identity. */
async function serveSts() {
  const sts = { endpoint: '', tokens: [] as string[], roles: new Set<string>(), lifetimeMs: 0 }
  const { endpoint } = await serve(async (request, response) => {
    const asked = new URLSearchParams((await bodyOf(request)).toString())
    expect(asked.get('Action')).toBe('AssumeRoleWithWebIdentity')
    sts.tokens.push(asked.get('WebIdentityToken') ?? '')
    sts.roles.add(asked.get('RoleArn') ?? '')
    const number = sts.tokens.length
    const expiration = new Date(Date.now() + sts.lifetimeMs).toISOString()
    response.writeHead(200, { 'content-type': 'text/xml' })
    response.end(
      `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ROLE-${number}</AccessKeyId><SecretAccessKey>SECRETSECRET</SecretAccessKey><SessionToken>SESSION-${number}</SessionToken><Expiration>${expiration}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
    )
  })
  sts.endpoint = endpoint
  return sts
}

const put = (calls: Calls, bytes: Uint8Array, deadlineMs = 5_000) =>
  calls.once((requests, once) => requests.put({ at, bytes, condition: 'absent', mark }, once), { deadlineMs })

describe('a write', () => {
  it('carries its condition, its checksum and who wrote it', async () => {
    const heard: { request: IncomingMessage; body: Buffer }[] = []
    const { endpoint } = await serve(async (request, response) => {
      heard.push({ request, body: await bodyOf(request) })
      response.writeHead(200, { etag: '"tag"' }).end()
    })
    const { calls, requests } = await open(endpoint)
    expect(await put(calls, bytesOf('state'))).toEqual({ etag: '"tag"' })
    await calls.once((_, once) => requests.put({ at, bytes: bytesOf('2'), condition: { etag: '"tag"' }, mark }, once))
    const [first, second] = heard.map(({ request }) => request.headers)
    expect(heard[0]!.request.url).toMatch(/^\/bucket\/jobs\/one\/head/)
    expect(heard[0]!.body.toString()).toBe('state')
    expect(first).toMatchObject({ 'if-none-match': '*', 'x-amz-meta-millrace-mark': mark })
    const checksum = Buffer.alloc(4)
    checksum.writeUInt32BE(crc32('state'))
    expect(first!['x-amz-checksum-crc32']).toBe(checksum.toString('base64'))
    expect(second).toMatchObject({ 'if-match': '"tag"' })
  })

  it('keeps its connection for the next one', async () => {
    const { endpoint, sockets } = await serve(async (request, response) => {
      await bodyOf(request)
      response.writeHead(200, { etag: '"tag"' }).end()
    })
    const { calls } = await open(endpoint)
    for (let round = 0; round < 20; round++) await put(calls, new Uint8Array(100_000))
    expect(sockets.size).toBe(1)
  })

  const slowDown = '<Error><Code>SlowDown</Code><Message>slowly</Message></Error>'
  const late = {
    'that is refused before all of it was sent': `HTTP/1.1 503 Busy\r\ncontent-length: ${slowDown.length}\r\n\r\n${slowDown}`,
    'without an answer in time': '',
  }
  for (const [what, answer] of Object.entries(late))
    it(`${what} sends nothing of its buffer afterwards`, async () => {
      const bytes = new Uint8Array(32_000_000).fill(1)
      let connection: Socket | undefined
      const server = createTcpServer((socket) => {
        connection = socket
        // What comes first is the request's head; the rest waits in the network's buffers.
        socket.once('data', () => {
          socket.pause()
          socket.write(answer)
        })
      })
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      ends.push(() => new Promise((resolve) => server.close(() => resolve())))
      const { calls } = await open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
      const failure = await failureOf(put(calls, bytes, answer === '' ? 500 : 20_000))
      expect(failure.message).toMatch(answer === '' ? /no answer within/ : /SlowDown/)
      bytes.fill(2)
      let received = 0
      let foreign = 0
      connection!.on('data', (chunk: Buffer) => {
        received += chunk.length
        foreign += chunk.includes(2) ? 1 : 0
      })
      connection!.on('error', () => undefined)
      const closed = new Promise<void>((resolve) => connection!.once('close', () => resolve()))
      connection!.resume()
      await closed
      expect(foreign).toBe(0)
      expect(received).toBeLessThan(bytes.length)
    })

  it('that the connection loses is unclear', async () => {
    const { endpoint } = await serve((request) => request.socket.resetAndDestroy())
    const { calls } = await open(endpoint)
    expect((await failureOf(put(calls, bytesOf('state')))).kind).toBe('unclear')
  })

  it('is asked once', async () => {
    let count = 0
    const { endpoint } = await serve((request, response) => {
      count++
      refuse(500, 'InternalError')(request, response)
    })
    const { calls } = await open(endpoint)
    await failureOf(put(calls, bytesOf('state')))
    expect(count).toBe(1)
  })

  it('of an upload that is answered with success and says an error has failed', async () => {
    const { endpoint } = await serve(refuse(200, 'InternalError'))
    const { calls } = await open(endpoint)
    const completing = calls.once((requests, once) =>
      requests.completeUpload(
        { at, upload: 'u', parts: [{ number: 1, etag: '"e"', crc32: undefined }], crc32: 'AAAAAA==' },
        once,
      ),
    )
    expect((await failureOf(completing)).kind).toBe('unclear')
  })
})

describe('a read', () => {
  it('gives the bytes, their ETag and their mark', async () => {
    const { endpoint } = await serve((_, response) => {
      response.writeHead(200, { etag: '"tag"', 'x-amz-meta-millrace-mark': mark, 'content-length': 5 }).end('state')
    })
    const { calls } = await open(endpoint)
    expect(await getOnce(calls)).toEqual({ bytes: bytesOf('state'), etag: '"tag"', mark, size: 5 })
  })

  it('that differs from its checksum has failed', async () => {
    const { endpoint } = await serve((_, response) => {
      response.writeHead(200, { 'x-amz-checksum-crc32': 'AAAAAA==', 'content-length': 5 }).end('state')
    })
    const { calls } = await open(endpoint)
    expect((await failureOf(getOnce(calls))).kind).toBe('checksum')
  })

  for (const [what, headers] of Object.entries({
    'with a length': { 'content-length': 5000 },
    'in chunks': { 'transfer-encoding': 'chunked' },
    'with a checksum': { 'content-length': 5000, 'x-amz-checksum-crc32': 'AAAAAA==' },
  }))
    it(`that is cut short (${what}) has failed`, async () => {
      const { endpoint } = await serve((request, response) => {
        response.writeHead(200, headers)
        response.write('state')
        setTimeout(() => request.socket.destroy(), 20)
      })
      const { calls } = await open(endpoint)
      expect((await failureOf(getOnce(calls))).kind).toBe('unclear')
    })

  it('that stops in the middle has failed when its time is over', async () => {
    const { endpoint } = await serve((_, response) => {
      response.writeHead(200, { 'content-length': 5000 })
      response.write('state')
    })
    const { calls } = await open(endpoint)
    const failure = await failureOf(getOnce(calls, 200))
    expect(failure.kind).toBe('unclear')
    expect(failure.message).toMatch(/no answer within 20\d ms/)
  })

  it('of a range that is answered with the whole has failed', async () => {
    const { endpoint } = await serve((_, response) => response.writeHead(200, { 'content-length': 5 }).end('state'))
    const { calls } = await open(endpoint)
    const asked = calls.once((requests, once) => requests.get({ at, range: { offset: 1, length: 2 } }, once))
    expect((await failureOf(asked)).kind).toBe('unsupported')
  })
})

describe('what the store says', () => {
  const cases: readonly [number, string, S3Failure['kind']][] = [
    [404, 'NoSuchKey', 'absent'],
    [404, 'NoSuchBucket', 'bucket'],
    [404, 'SomethingElse', 'unclear'],
    [403, 'AccessDenied', 'denied'],
    [403, 'InvalidAccessKeyId', 'credentials'],
    [403, 'SignatureDoesNotMatch', 'credentials'],
    [400, 'ExpiredToken', 'expired'],
    [403, 'RequestTimeTooSkewed', 'clock'],
    [301, 'PermanentRedirect', 'region'],
    [400, 'InvalidRequest', 'refused'],
    [400, 'RequestTimeout', 'unclear'],
    [409, 'ConditionalRequestConflict', 'conflict'],
    [412, 'PreconditionFailed', 'precondition'],
    [416, 'InvalidRange', 'range'],
    [429, 'TooManyRequests', 'unclear'],
    [500, 'InternalError', 'unclear'],
    [501, 'NotImplemented', 'unsupported'],
    [503, 'SlowDown', 'unclear'],
    [507, 'InsufficientStorage', 'full'],
  ]
  for (const [status, code, kind] of cases)
    it(`${status} ${code} is a matter of: ${kind}`, async () => {
      const { endpoint } = await serve(refuse(status, code))
      const { calls } = await open(endpoint)
      expect((await failureOf(getOnce(calls))).kind).toBe(kind)
    })

  it('a page of HTML from something on the way says nothing about an object', async () => {
    for (const status of [404, 502]) {
      const { endpoint } = await serve((_, response) => {
        response.writeHead(status, { 'content-type': 'text/html' }).end('<html><body>no such service</body></html>')
      })
      const { calls } = await open(endpoint)
      expect((await failureOf(getOnce(calls))).kind).toBe('unclear')
    }
  })

  it('is told without keys and signatures', async () => {
    const quoted = '<AWSAccessKeyId>KEYID</AWSAccessKeyId><StringToSign>AWS4-HMAC SIGNATURE</StringToSign>'
    for (const [status, code] of [
      [403, 'SignatureDoesNotMatch'],
      [400, 'InvalidRequest'],
    ] as const) {
      const { endpoint } = await serve(refuse(status, code, 'not AKIAABCDEFGHIJKLMNOP', quoted))
      const { calls } = await open(endpoint)
      const failure = await failureOf(getOnce(calls))
      const told = `${String(failure)} ${JSON.stringify(Object.entries(failure))} ${String(failure.cause)}`
      expect(told).toContain(code)
      for (const secret of ['KEYID', 'SECRETSECRET', 'SIGNATURE', 'AKIA']) expect(told).not.toContain(secret)
    }
  })

  it('about the time is heard: the next request is signed with the store’s', async () => {
    const storeTime = new Date(Date.now() + 3_600_000 * 5)
    const dates: string[] = []
    const { endpoint } = await serve((request, response) => {
      dates.push(String(request.headers['x-amz-date']))
      response.setHeader('date', storeTime.toUTCString())
      refuse(403, 'RequestTimeTooSkewed')(request, response)
    })
    const { calls } = await open(endpoint)
    await failureOf(getOnce(calls))
    await failureOf(getOnce(calls))
    const hourOf = (date: Date): string => date.toISOString().replaceAll(/[-:]/g, '').slice(0, 11)
    expect(dates[0]!.slice(0, 11)).not.toBe(hourOf(storeTime))
    expect([storeTime, new Date(storeTime.getTime() + 60_000)].map(hourOf)).toContain(dates[1]!.slice(0, 11))
  })

  it('nobody says at a port where nobody listens', async () => {
    const [port] = await freePorts(1)
    const { calls } = await open(`http://127.0.0.1:${port}`)
    expect((await failureOf(getOnce(calls))).kind).toBe('unreachable')
  })
})

describe('credentials', () => {
  const idOf = (request: IncomingMessage): string =>
    /Credential=([^/]+)\//.exec(String(request.headers['authorization']))?.[1] ?? 'none'

  async function hearIds() {
    const ids: string[] = []
    const served = await serve((request, response) => {
      ids.push(`${idOf(request)} ${String(request.headers['x-amz-security-token'] ?? '')}`.trim())
      response.writeHead(200, { etag: '"tag"', 'content-length': 0 }).end()
    })
    return { ...served, ids }
  }

  it('come from files, and anew when the store says that they are over', async () => {
    const { endpoint, ids } = await hearIds()
    const files = await credentialFiles()
    const { calls } = await open(endpoint, files)
    await getOnce(calls)
    await files.remove('/s3/id')
    await files.writeNew('/s3/id', bytesOf('OTHERID'))
    await getOnce(calls)
    await calls.refreshCredentials()
    await getOnce(calls)
    expect(ids).toEqual(['KEYID', 'KEYID', 'OTHERID'])
  })

  it('may have a session token', async () => {
    const { endpoint, ids } = await hearIds()
    const files = await credentialFiles()
    await files.writeNew('/s3/token', bytesOf('TOKEN'))
    const { calls } = await open(endpoint, files, { ...config, sessionTokenFile: '/s3/token' })
    await getOnce(calls)
    expect(ids).toEqual(['KEYID TOKEN'])
  })

  it('come from the environment when no files are named', async () => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', 'FROMENV')
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'SECRETSECRET')
    const { endpoint, ids } = await hearIds()
    const { calls } = await open(endpoint, undefined, { region: 'eu-north-1' })
    await getOnce(calls)
    expect(ids).toEqual(['FROMENV'])
  })

  it('come from the shared file, of the profile that is named', async () => {
    nothingOfAws()
    const file = join(await folderOfItsOwn(), 'credentials')
    const profile = (name: string, id: string): string =>
      `[${name}]\naws_access_key_id = ${id}\naws_secret_access_key = SECRETSECRET\naws_session_token = OF-${id}\n`
    await writeFile(file, profile('default', 'USUAL') + profile('other', 'NAMED'))
    vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', file)
    const { endpoint, ids } = await hearIds()
    const usual = await open(endpoint, undefined, { region: 'eu-north-1' })
    await getOnce(usual.calls)
    vi.stubEnv('AWS_PROFILE', 'other')
    const named = await open(endpoint, undefined, { region: 'eu-north-1' })
    await getOnce(named.calls)
    expect(ids).toEqual(['USUAL OF-USUAL', 'NAMED OF-NAMED'])
  })

  it('come from a web identity: its token is given for them, and given anew before they expire', async () => {
    nothingOfAws()
    const token = join(await folderOfItsOwn(), 'token')
    await writeFile(token, 'first-token')
    const sts = await serveSts()
    vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', token)
    vi.stubEnv('AWS_ROLE_ARN', 'arn:aws:iam::123456789012:role/millrace')
    vi.stubEnv('AWS_ENDPOINT_URL_STS', sts.endpoint)
    const { endpoint, ids } = await hearIds()
    const { calls } = await open(endpoint, undefined, { region: 'eu-north-1' })
    // Longer than the SDK's margin: they are kept.
    sts.lifetimeMs = 3_600_000
    await getOnce(calls)
    await getOnce(calls)
    expect(sts.tokens).toEqual(['first-token'])
    expect(ids).toEqual(['ROLE-1 SESSION-1', 'ROLE-1 SESSION-1'])

    // About to expire: asked for again, with the token as it is by then. Kubernetes writes it anew each hour.
    sts.lifetimeMs = 1_000
    const other = await open(endpoint, undefined, { region: 'eu-north-1' })
    await getOnce(other.calls)
    await writeFile(token, 'second-token')
    sts.lifetimeMs = 3_600_000
    await vi.waitFor(async () => {
      await getOnce(other.calls)
      const number = sts.tokens.indexOf('second-token') + 1
      expect(ids.at(-1)).toBe(`ROLE-${number} SESSION-${number}`)
    }, 10_000)
    expect(sts.tokens.at(-1)).toBe('second-token')
    expect(sts.roles).toEqual(new Set(['arn:aws:iam::123456789012:role/millrace']))
  })

  it('of a web identity that is refused are an error that says so, without its token', async () => {
    nothingOfAws()
    const token = join(await folderOfItsOwn(), 'token')
    await writeFile(token, 'secret-token')
    const { endpoint: sts } = await serve((request, response) => {
      request.resume()
      response.writeHead(403, { 'content-type': 'text/xml' })
      response.end(
        '<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not this one.</Message></Error></ErrorResponse>',
      )
    })
    vi.stubEnv('AWS_WEB_IDENTITY_TOKEN_FILE', token)
    vi.stubEnv('AWS_ROLE_ARN', 'arn:aws:iam::123456789012:role/millrace')
    vi.stubEnv('AWS_ENDPOINT_URL_STS', sts)
    const { endpoint, ids } = await hearIds()
    const { calls } = await open(endpoint, undefined, { region: 'eu-north-1' })
    const failure = await failureOf(getOnce(calls))
    expect(failure).toMatchObject({
      kind: 'credentials',
      message: 'AccessDenied, said by the issuer of the credentials (HTTP 403)',
    })
    expect(ids).toEqual([])
  })

  it('that nobody has are an error that says so', async () => {
    nothingOfAws()
    const { endpoint } = await hearIds()
    const { calls } = await open(endpoint, undefined, { region: 'eu-north-1' })
    await expect(failureOf(getOnce(calls))).resolves.toMatchObject({ kind: 'credentials' })
  })

  it('in a file that is not there, or is empty, name the file', async () => {
    const { endpoint } = await hearIds()
    const files = await credentialFiles('', 'two words')
    const { calls } = await open(endpoint, files)
    expect((await failureOf(getOnce(calls))).message).toBe('the file /s3/id is empty')
    await files.remove('/s3/id')
    expect((await failureOf(getOnce(calls))).message).toBe('the file /s3/id cannot be read: ENOENT')
    await files.writeNew('/s3/id', bytesOf('KEYID'))
    const failure = await failureOf(getOnce(calls))
    expect(failure.message).toBe('the file /s3/secret has more than one word in it')
    expect(failure.kind).toBe('credentials')
  })
})
