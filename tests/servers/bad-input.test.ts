// What is wrong with what a distributed job is given, met by real servers: one clear error each, that says what, where and what to do, and
// the exit code of its documentation. Nothing is lost by it, and no secret shows.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { incarnation, jobId } from '../../runtime/base/ids.ts'
import type { ToWorker } from '../../runtime/control/worker-contract.ts'
import { WORKER_WIRE_VERSION } from '../../runtime/control/worker-contract.ts'
import { MessageReader, encodeMessage } from '../../runtime/control/worker-wire.ts'
import { NodeFiles } from '../../runtime/local/platform/node-files.ts'
import { buildOf } from '../../runtime/distributed/build-identity.ts'
import type { ProcessConfig } from '../../runtime/distributed/contract.ts'
import { RunningCommand, runCommand } from '../support/command.ts'
import type { DistributedJob } from './support/distributed-job.ts'
import { distributedWorld } from './support/distributed-world.ts'
import { startNats } from './support/nats-server.ts'
import type { NatsServer } from './support/nats-server.ts'
import { freePorts } from './support/server-process.ts'

const world = distributedWorld('bad-input')
const { version } = (await import('../../package.json', { with: { type: 'json' } })).default
const badSecret = 'a-secret-that-must-not-show'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-bad-input-'))
})
afterAll(async () => rm(folder, { recursive: true, force: true }))

let files = 0
async function file(content: string): Promise<string> {
  const path = join(folder, `file-${++files}`)
  await writeFile(path, content)
  return path
}

/** The command with a config of its own, to its end. */
async function ended(config: unknown, ...words: readonly string[]) {
  const result = await runCommand([...words, '--config', await file(JSON.stringify(config))], { folder })
  expect(result.stderr).not.toContain(badSecret)
  return result
}

type S3 = NonNullable<ProcessConfig['storage']['s3']>

/** Ports of its own: a coordinator listens before it asks any server, and several are tried at once. */
async function elsewhere(config: ProcessConfig): Promise<ProcessConfig> {
  const [workersPort, restPort] = (await freePorts(2)) as [number, number]
  const coordinator = { workersAddress: `127.0.0.1:${workersPort}`, restAddress: `127.0.0.1:${restPort}` }
  return { ...config, coordinator: { ...config.coordinator, ...coordinator } }
}

describe('a coordinator', () => {
  it('says what is wrong with the object store that it is given', async () => {
    const { config } = await world.prepared()
    const withS3 = (change: Partial<S3>): ProcessConfig => ({
      ...config,
      storage: { ...config.storage, s3: { ...config.storage.s3, ...change } },
    })
    const refusals: readonly [string, ProcessConfig, number, RegExp][] = [
      ['a wrong secret', withS3({ secretAccessKeyFile: await file(badSecret) }), 2, /MR-S30 /],
      ['an unknown key id', withS3({ accessKeyIdFile: await file('nobody') }), 2, /MR-S30 /],
      [
        'no such bucket',
        { ...config, storage: { ...config.storage, checkpoints: 's3://not-there/job' } },
        2,
        /MR-S32 .*not-there/,
      ],
      ['a file that is not there', withS3({ accessKeyIdFile: '/not/there' }), 2, /MR-S30 .*\/not\/there/],
    ]
    await Promise.all(
      refusals.map(async ([what, wrong, exitCode, says]) => {
        const result = await ended(await elsewhere(wrong), 'coordinator')
        expect(result.exitCode, `${what}: ${result.stderr}`).toBe(exitCode)
        expect(result.stderr, what).toMatch(says)
      }),
    )
  })

  it('says what may pass and goes on trying: an endpoint of nobody, credentials that have expired', async () => {
    const refusing = createServer((_request, response) => {
      response
        .writeHead(400, { 'content-type': 'application/xml' })
        .end('<?xml version="1.0"?><Error><Code>ExpiredToken</Code><Message>It has expired.</Message></Error>')
    })
    await new Promise<void>((resolve) => refusing.listen(0, '127.0.0.1', resolve))
    const { config } = await world.prepared()
    const [nobody] = (await freePorts(1)) as [number]
    const withS3 = (change: Partial<S3>): ProcessConfig => ({
      ...config,
      storage: { ...config.storage, s3: { ...config.storage.s3, ...change } },
    })
    const expired = { port: (refusing.address() as AddressInfo).port, sessionTokenFile: await file(badSecret) }
    const cases = [
      { wrong: withS3({ endpoint: `http://127.0.0.1:${nobody}` }), says: new RegExp(`MR-S34 .*${nobody}`) },
      {
        wrong: withS3({ endpoint: `http://127.0.0.1:${expired.port}`, sessionTokenFile: expired.sessionTokenFile }),
        says: /MR-S31 /,
      },
    ]
    await Promise.all(
      cases.map(async ({ wrong, says }) => {
        const words = ['coordinator', '--config', await file(JSON.stringify(await elsewhere(wrong)))]
        const command = new RunningCommand(words, { folder })
        await command.until(() => says.test(command.stderr))
        command.kill('SIGKILL')
        const { stderr } = await command.ended
        expect(stderr).toContain('the object store does not do what it is asked; trying again')
        expect(stderr).not.toContain(badSecret)
      }),
    )
    refusing.closeAllConnections()
    refusing.close()
  })

  it('says what is wrong with its config, its secrets, and its job, before it asks any server', async () => {
    const { config } = await world.prepared()
    const job = (change: object): unknown => ({ ...config, job: { ...config.job, ...change } })
    const refusals: readonly [unknown, RegExp][] = [
      [{ ...config, coordinator: undefined, cordinator: {} }, /MR-D31 .*coordinator is missing/],
      [{ ...config, nats: { servers: [], pasword: badSecret } }, /MR-D31 .*nats\.servers is empty/],
      [
        { ...config, tokens: { ...config.tokens, ownerFile: '/not/there' } },
        /MR-D32 .*tokens\.ownerFile.*\/not\/there/,
      ],
      [job({ start: 0 }), /MR-D31 .*job\.start/],
      [job({ settings: { retaind: 3 }, file: '/not/there.ts' }), /does not know.*job\.settings\.retaind[^]*MR-L01 /],
      [job({ settings: { retained: -1 } }), /MR-J08 .*retained/],
      [job({ file: '/not/there.ts' }), /MR-L01 .*\/not\/there\.ts/],
      [job({ args: { splits: 'many' } }), /MR-J01 [^]*at splits/],
      [job({ restore: { from: `${config.storage.checkpoints}/objects/savepoint-7` } }), /MR-S17 .*savepoint-7/],
    ]
    await Promise.all(
      refusals.map(async ([wrong, says]) => {
        const result = await ended(wrong, 'coordinator')
        expect(result.stderr).toMatch(says)
        expect(result.exitCode, result.stderr).toBe(2)
      }),
    )
  })
})

describe('coordinator and workers', () => {
  let nats: NatsServer
  beforeAll(async () => {
    nats = await startNats({
      config: [
        'authorization {',
        '  users = [',
        '    { user: other, password: right, permissions: { publish: ["other.>"], subscribe: ["other.>"] } }',
        '    { user: all, password: right }',
        '  ]',
        '}',
      ].join('\n'),
    })
  })
  afterAll(async () => nats?.stop())

  const bothEnd = async (config: unknown, says: RegExp): Promise<void> => {
    await Promise.all(
      [['coordinator'], ['worker', '--name', 'w']].map(async (words) => {
        const result = await ended(config, ...words)
        expect(result.stderr).toMatch(says)
        expect(result.exitCode, result.stderr).toBe(2)
      }),
    )
  }

  it('say that NATS refuses their password', async () => {
    const { config } = await world.prepared({ nats })
    const wrong = { ...config.nats, userFile: await file('all'), passwordFile: await file(badSecret) }
    await bothEnd({ ...config, nats: wrong }, /MR-W31 /)
  })

  it('say which subjects NATS does not allow them', async () => {
    const { config } = await world.prepared({ nats })
    const foreign = { ...config.nats, userFile: await file('other'), passwordFile: await file('right') }
    await bothEnd({ ...config, nats: foreign }, /MR-W34 [^\n]*mr\.[^\n]*Allow the credentials/)
  })

  it('say that the server takes only messages that are too small', async () => {
    const small = await startNats({ config: 'max_payload: 8KB' })
    const { config } = await world.prepared({ nats: small })
    await bothEnd(config, /MR-W33 .*8192/)
    await small.stop()
  })
})

describe('a coordinator that runs', () => {
  let job: DistributedJob

  it('refuses workers of another token, job or version, and other coordinators, and the job does not notice', async () => {
    job = await world.started({ args: { ratePerSecond: 1_000 } })
    await job.checkpoints(1)
    const { config } = job
    const worker = ['worker', '--name', 'another'] as const
    const token = await ended({ ...config, tokens: { ...config.tokens, workerFile: await file(badSecret) } }, ...worker)
    expect(token.stderr).toMatch(/MR-D22 .*MR-D04/)
    expect(token.exitCode).toBe(2)
    const other = await ended({ ...config, job: { ...config.job, id: 'another-job' } }, ...worker)
    expect(other.stderr).toMatch(/MR-D22 .*MR-D03 .*another-job/)
    expect(other.exitCode).toBe(2)
    expect(await refusalOf(config, { runtimeVersion: '0.0.1' })).toMatch(new RegExp(`MR-D02 .*0\\.0\\.1.*${version}`))
    expect(await refusalOf(config, { worker: 'worker-0' })).toMatch(/MR-D05 .*worker-0/)

    const second = await ended(config, 'coordinator')
    expect(second.stderr).toMatch(/MR-H10 .*EADDRINUSE/)
    expect(second.exitCode, second.stderr).toBe(1)

    for (const [header, status, code] of [
      ['Bearer wrong', 401, 'MR-H01'],
      ['', 401, 'MR-H01'],
    ] as const) {
      const answer = await fetch(`${job.restUrl}/v1/job`, { headers: { authorization: header } })
      expect(answer.status).toBe(status)
      expect(((await answer.json()) as { code: string }).code).toBe(code)
    }
    const stop = { start: 1, request: 'no', drain: false }
    expect(await job.request('POST', '/v1/stop', stop, 'reader')).toMatchObject({ status: 403 })
    const words = ['cancel', '--address', job.restUrl, '--token-file', await file(badSecret)]
    const cancel = await runCommand(words, { folder })
    expect(cancel.stderr).toMatch(/MR-\w+/)
    expect(cancel.exitCode).not.toBe(0)
    const ofStart = await job.request('POST', '/v1/stop', { start: 7, request: 'no', drain: false })
    expect(ofStart).toMatchObject({ status: 409, body: { code: 'MR-H08' } })

    await job.checkpoints(1)
    expect(await job.status()).toMatchObject({ incarnation: 1, restarts: 0 })
    await world.expectExactToTheEnd(job)
  })

  it('bears a worker whose clock is an hour ahead, and says so', async () => {
    const ahead = await file(`
      const Real = Date
      globalThis.Date = class extends Real {
        constructor(...given) {
          if (given.length === 0) super(Real.now() + 3_600_000)
          else super(...given)
        }
        static now() {
          return Real.now() + 3_600_000
        }
      }`)
    job = await world.started({
      env: { 'worker-0': { NODE_OPTIONS: `--require ${ahead}` } },
      args: { stateBytes: 20_000 },
    })
    await job.checkpoints(2)
    expect(job.workers.get('worker-0')!.output).toMatch(
      /clock is far from the coordinator's[^\n]*"behindByMs":-36\d{5}/,
    )
    await job.replaceWorker('worker-0')
    await job.checkpoints(1)
    await world.expectExactToTheEnd(job)
  })

  it('has workers that tell which ledger their sinks cannot reach', async () => {
    const [nobody] = (await freePorts(1)) as [number]
    job = await world.started({ args: { url: `http://127.0.0.1:${nobody}` } })
    const says = new RegExp(`the ledger does not answer[^\\n]*127\\.0\\.0\\.1:${nobody}/[^\\n]*ECONNREFUSED`)
    await job.until('a worker to say it', () => [...job.workers.values()].some(({ output }) => says.test(output)))
  })
})

/** What the coordinator says to a worker whose hello differs in something. */
async function refusalOf(config: ProcessConfig, change: object): Promise<string> {
  const [host, port] = config.coordinator.workersAddress.split(':') as [string, string]
  const socket: Socket = connect(Number(port), host)
  const hello = {
    type: 'hello' as const,
    wireVersion: WORKER_WIRE_VERSION,
    runtimeVersion: version,
    build: await buildOf(config, new NodeFiles()),
    job: jobId(config.job.id),
    worker: 'a-stranger',
    instance: 'of-its-own',
    token: 'worker-token',
    slots: 1,
    promised: incarnation(0),
    running: [],
    ...change,
  }
  socket.write(encodeMessage(hello))
  const reader = new MessageReader()
  const answer = await new Promise<ToWorker>((resolve, reject) => {
    socket.on('data', (bytes) => {
      const [message] = reader.push(bytes)
      if (message !== undefined) resolve(message as ToWorker)
    })
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('it was closed without a word')))
  })
  socket.destroy()
  if (answer.type !== 'refused') throw new Error(`it was let in: ${JSON.stringify(answer)}`)
  return answer.message
}
