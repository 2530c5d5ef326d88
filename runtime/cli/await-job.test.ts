import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { RequestListener, Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { jobId, requestId } from '../base/ids.ts'
import { headKeeperOf } from '../local/local-jobs.ts'
import type { LocalWorld, StoredJob } from '../local/local-jobs.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import { writeRestAddress } from '../local/platform/rest-file.ts'
import { JobHistory } from '../rest/job-history.ts'
import { createRest } from '../rest/server.ts'
import { TestJob, savepointRef, testGraph } from '../rest/test-job.ts'
import { close, completeSavepoint, failSavepoint, requestSavepoint, stop } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { localStoreFolder } from '../storage/paths.ts'
import { orderSnapshot } from './await-job.ts'
import { contactJob } from './job-client.ts'

const request = requestId('r1')
let stored: StoredJob
let world: LocalWorld
const closing: (() => Promise<unknown>)[] = []

beforeEach(async () => {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-await-'))
  world = { folder, files: new NodeFiles(), environment: realEnvironment({ log: () => undefined }) }
  const id = jobId('orders')
  stored = { id, storeFolder: join(folder, localStoreFolder(id)) }
  const keeper = await headKeeperOf(stored, world)
  await keeper.begin(() => new TestJob().head)
  closing.push(() => rm(folder, { recursive: true, force: true }))
})

afterEach(async () => {
  for (const end of closing.splice(0).toReversed()) await end()
})

async function changeHead(change: (head: Head) => Head): Promise<void> {
  await (await headKeeperOf(stored, world)).amend(change)
}

/** REST of a job under this instance's name, told of in rest.json. */
async function running(instance: string, job: TestJob = new TestJob()) {
  const { environment } = world
  const rest = await createRest({
    job,
    graph: testGraph,
    history: new JobHistory(environment.clock),
    instance,
    tokens: { owner: 'token' },
    listen: { host: '127.0.0.1', port: 0 },
    identified: false,
    pings: {},
    readHead: async () => job.head,
    locate: ({ path }) => path,
    clock: environment.clock,
    random: environment.random,
    log: () => undefined,
  })
  const address = await rest.listen()
  closing.push(() => rest.close())
  await says(address, 'one')
  return { job, end: () => rest.close() }
}

function says(address: string, instance: string): Promise<void> {
  const said = { version: 1, pid: 17, job: stored.id, instance, address, token: 'token' } as const
  return writeRestAddress(stored.storeFolder, said)
}

async function another(listener: RequestListener): Promise<void> {
  const server: Server = createServer(listener)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closing.push(() => new Promise((resolve) => server.close(resolve)))
  const address = server.address()
  if (typeof address === 'object') await says(`http://127.0.0.1:${address!.port}`, 'one')
}

describe('whether a job runs', () => {
  it('is told by its process, under the name that stands in its folder', async () => {
    expect(await contactJob(stored)).toEqual({ kind: 'not running' })
    await running('one')
    expect(await contactJob(stored)).toMatchObject({ kind: 'running', job: { id: 'orders', instance: 'one' } })
  })

  it('is no where its process has died', async () => {
    const { end } = await running('one')
    await end()
    expect(await contactJob(stored)).toEqual({ kind: 'not running' })
  })

  it('is no where another process has its port by now', async () => {
    await running('another')
    expect(await contactJob(stored)).toEqual({ kind: 'not running' })
    await another((_request, response) => response.writeHead(401).end('who are you?'))
    expect(await contactJob(stored)).toEqual({ kind: 'not running' })
    await another((_request, response) => response.end('<html>'))
    expect(await contactJob(stored)).toEqual({ kind: 'not running' })
  })

  it('is unknown, and an error, where somebody is there and does not answer', async () => {
    await another((asked) => asked.socket.destroy())
    await expect(contactJob(stored)).rejects.toThrow(/^MR-L32 /)
    await another((_request, response) => response.writeHead(500).end('{"code":"MR-S10","message":"MR-S10 HEAD"}'))
    await expect(contactJob(stored)).rejects.toThrow(/^MR-L32 .* it answers 500: MR-S10 HEAD/)
    // Somebody has changed the token in the file; the process lives.
    await another((_request, response) => response.writeHead(401).end('{"code":"MR-H01","message":"MR-H01 no token"}'))
    await expect(contactJob(stored)).rejects.toThrow(/^MR-L32 .* it answers 401: MR-H01 no token/)
  })
})

describe('waiting for a stop', () => {
  it('ends with the savepoint of an end of this very kind that somebody else has asked for', async () => {
    const job = new TestJob()
    const stopBy = job.stop.bind(job)
    job.stop = (asked) => {
      const answer = stopBy(asked)
      const manifest = savepointRef(5)
      const stopped = (head: Head) => stop(head, { request: requestId('other'), manifest, commitsPending: false })
      void changeHead(stopped).then(() => {
        job.head = stopped(job.head)
        job.answer(asked.request, { outcome: 'ended', detail: 'the job has ended (stopped)' })
      })
      return answer
    }
    await running('one', job)
    const order = (mode: 'stop' | 'drain') =>
      orderSnapshot({ stored, world, wish: { mode }, request: undefined, timeoutMs: 60_000 })
    expect(await order('stop')).toMatchObject({ id: 5, kind: 'savepoint' })
    await expect(order('drain')).rejects.toThrow(/^MR-L33 .*The stop with drain: the job has ended \(stopped\)/)
  })
})

describe('waiting for a savepoint', () => {
  const order = (timeoutMs = 60_000) =>
    orderSnapshot({ stored, world, wish: { mode: 'savepoint' }, request: 'r1', timeoutMs }).catch(
      (error: Error) => error.message,
    )

  /** A job whose process does this when it is asked for the savepoint. */
  async function whoseProcess(does: (end: () => Promise<void>) => Promise<void>): Promise<void> {
    const job = new TestJob()
    const savepoint = job.savepoint.bind(job)
    let end: () => Promise<void> = async () => undefined
    job.savepoint = (asked) => {
      void does(end)
      return savepoint(asked)
    }
    ;({ end } = await running('one', job))
  }

  it('ends with its folder', async () => {
    const job = new TestJob()
    const savepoint = job.savepoint.bind(job)
    job.savepoint = (asked) => {
      const answer = savepoint(asked)
      job.complete(asked, 4)
      return answer
    }
    await running('one', job)
    expect(await order()).toMatchObject({ id: 4, kind: 'savepoint' })
  })

  it('ends by what HEAD says, when the process that was asked has ended', async () => {
    await whoseProcess(async (end) => {
      await changeHead((head) => completeSavepoint(head, { request, manifest: savepointRef(5) }))
      await end()
    })
    expect(await order()).toMatchObject({
      id: 5,
      path: join(stored.storeFolder, 'objects/savepoint-5'),
    })
  })

  it('ends with why it failed, by HEAD too', async () => {
    await whoseProcess(async (end) => {
      await changeHead((head) => failSavepoint(head, { request, detail: 'expired' }))
      await end()
    })
    expect(await order()).toMatch(/^MR-L33 .* The savepoint: expired\./)
  })

  it('ends when the job has ended before', async () => {
    await whoseProcess(async (end) => {
      await changeHead(close)
      await end()
    })
    expect(await order()).toMatch(/^MR-L33 .*the job had ended before \(suspended\)/)
  })

  it('says that the request stands, when the process died and HEAD has it', async () => {
    await whoseProcess(async (end) => {
      await changeHead((head) => requestSavepoint(head, { request, mode: 'savepoint' }))
      await end()
    })
    expect(await order()).toMatch(
      /^MR-L31 .*orders is interrupted\. .*the savepoint is taken up when the job runs again/,
    )
  })

  it('says so when the process died before it wrote the request down', async () => {
    await whoseProcess((end) => end())
    expect(await order()).toMatch(/^MR-L31 .*before it wrote the request down/)
  })

  it('has an end, after which the same request can be waited for', async () => {
    await running('one')
    expect(await order(1)).toMatch(/^MR-L35 .*--request r1 waits for the same one/)
  })
})
