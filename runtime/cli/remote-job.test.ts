import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { checkpointId, incarnation, requestId, subtaskIndex, vertexId } from '../base/ids.ts'
import type { RequestId } from '../base/ids.ts'
import type { FailedSnapshot } from '../coordinator/coordinator-contract.ts'
import { NodeFiles } from '../local/platform/node-files.ts'
import { realEnvironment } from '../local/platform/real-environment.ts'
import { restError } from '../rest/errors.ts'
import { encodeHistory } from '../rest/history-format.ts'
import { JobHistory } from '../rest/job-history.ts'
import { createRest } from '../rest/server.ts'
import type { Rest, RestOptions } from '../rest/server.ts'
import { TestJob, checkpointRef, savepointRef, testGraph } from '../rest/test-job.ts'
import { cancel, completeSavepoint, countRestart, fail, finish, rescale, stop } from '../storage/head.ts'
import type { Head } from '../storage/head-contract.ts'
import { openStores } from '../storage/open-stores.ts'
import { historyKey } from '../storage/paths.ts'
import { testAuthority } from '../../tests/support/certificates.ts'
import { cancelJob } from './cancel-command.ts'
import { showCheckpoints } from './checkpoints-command.ts'
import { parseCommandLine } from './command-line.ts'
import { showExceptions } from './exceptions-command.ts'
import { listJobs } from './list-command.ts'
import type { ControlEdge } from './named-job.ts'
import { rescaleJob } from './rescale-command.ts'
import { takeSavepoint } from './savepoint-command.ts'
import { showStatus } from './status-command.ts'
import { stopJob } from './stop-command.ts'
import { Terminal } from './terminal.ts'
import { endedJob, vacantPort } from './test-ended-job.ts'

const owner = 'the-token-of-the-owner'
const reader = 'the-token-of-the-reader'
const environment = realEnvironment({ log: () => undefined })
let folder = ''
let printed = ''
let said = ''
let edge: ControlEdge
let serving: Rest[] = []

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'millrace-remote-'))
  printed = ''
  said = ''
  const output = { write: (text: string) => (printed += text) }
  const errors = { write: (text: string) => (said += text) }
  edge = { terminal: new Terminal({ output, errors }), folder, debug: false }
  await writeFile(join(folder, 'owner'), `${owner}\n`)
  await writeFile(join(folder, 'reader'), reader)
})

afterEach(async () => {
  for (const rest of serving) await rest.close()
  serving = []
  await rm(folder, { recursive: true, force: true })
})

/** Resolves to the address. */
async function serve(job: TestJob, options: Partial<RestOptions> = {}): Promise<string> {
  const history = new JobHistory(environment.clock)
  history.observer.began?.(job.head, job.head.restoredFrom)
  history.observer.running?.()
  const rest = await createRest({
    job,
    graph: testGraph,
    history,
    instance: 'c1',
    tokens: { owner, reader },
    listen: { host: '127.0.0.1', port: 0 },
    identified: true,
    pings: { storage: async () => undefined },
    readHead: async () => job.head,
    locate: ({ path }) => `s3://bucket/orders/${path.replace('/_metadata', '')}`,
    clock: environment.clock,
    random: environment.random,
    log: () => undefined,
    ...options,
  })
  serving.push(rest)
  return rest.listen()
}

/** The command as a user gives it; resolves as it does, or to what it throws. */
async function give(...words: readonly string[]): Promise<unknown> {
  try {
    const command = parseCommandLine(words)
    switch (command.kind) {
      case 'list':
        return await listJobs(command, edge)
      case 'status':
        return await showStatus(command, edge)
      case 'checkpoints':
        return await showCheckpoints(command, edge)
      case 'exceptions':
        return await showExceptions(command, edge)
      case 'savepoint':
        return await takeSavepoint(command, edge)
      case 'stop':
        return await stopJob(command, edge)
      case 'cancel':
        return await cancelJob(command, edge)
      case 'rescale':
        return await rescaleJob(command, edge)
      default:
        throw new Error(`not for these tests: ${command.kind}`)
    }
  } catch (error) {
    return (error as Error).message
  }
}

const asOwner = (address: string) => ['--address', address, '--token-file', 'owner']
const asReader = (address: string) => ['--address', address, '--token-file', 'reader']

/** What HEAD says once a savepoint, a stop or a rescale was carried out. */
class ObedientJob extends TestJob {
  override savepoint(request: RequestId) {
    const answer = super.savepoint(request)
    this.complete(request, 4)
    return answer
  }

  override stop(options: { readonly drain: boolean; readonly request: RequestId }) {
    const answer = super.stop(options)
    const manifest = savepointRef(5)
    this.head = stop(this.head, { request: options.request, manifest, commitsPending: false })
    this.answer(options.request, { outcome: 'completed', manifest })
    return answer
  }

  override rescale(parallelism: number, request: RequestId) {
    const answer = super.rescale(parallelism, request)
    const manifest = checkpointRef(6)
    this.head = rescale(this.head, { request, parallelism, manifest, retainedMax: 3, commitsPending: false })
    this.answer(request, { outcome: 'completed', manifest })
    return answer
  }

  override cancel(): void {
    super.cancel()
    this.head = cancel(this.head, { deleted: false })
  }
}

describe('a job behind an address', () => {
  it('is listed and shown with the token of a reader', async () => {
    const job = new TestJob()
    const worker = { name: 'w1', address: 'h:1', slots: 2, running: [], state: 'registered', sinceMs: 0 } as const
    job.workers = { slotsNeeded: 3, slotsOffered: 2, workers: [worker], reportLost: () => false }
    const address = await serve(job)
    expect(await give('list', ...asReader(address))).toBe(true)
    expect(printed).toMatch(/^job +state +start .*\norders +running +1 +0 +the beginning\n$/)
    printed = ''
    expect(await give('status', ...asReader(address))).toBe(true)
    expect(printed).toMatch(
      /^orders is running, at http:\/\/127\.0\.0\.1:\d+\.\nStart 1, incarnation 1, parallelism 1 /,
    )
    expect(printed).toContain('It waits for slots: it needs 3, and its workers offer 2.')
    expect(printed).toContain('The object store: ok.')
    expect(printed).toMatch(/\nw1 +registered +h:1 +0 of 2 +1970-01-01/)
    printed = ''
    await give('checkpoints', '--json', ...asReader(address))
    expect(JSON.parse(printed)).toMatchObject({ counters: { completed: 2 } })
  })

  it('tells what it failed by, what that restarted and how long that took, and one checkpoint by subtask', async () => {
    const job = new TestJob()
    const address = await serve(job)
    await give('exceptions', ...asReader(address))
    expect(printed).toBe('orders has restarted 0 times in this start; no failure is remembered.\n')

    const history = new JobHistory(environment.clock)
    const { observer } = history
    observer.began?.(job.head, job.head.restoredFrom)
    const failed = [{ vertex: vertexId('count'), subtask: subtaskIndex(1) }]
    observer.restarting?.({ message: 'MR-O11 It is lost.', code: 'MR-O11', failed, workers: ['w1'], inMs: 0, tasks: 4 })
    observer.running?.()
    observer.gaveUp?.({ message: 'Error: by the job', code: undefined, failed: undefined, workers: undefined })
    observer.checkpointFailed?.({ id: checkpointId(8), reason: 'declined', detail: 'count/1: no' } as FailedSnapshot)
    job.head = countRestart({ ...job.head, retained: [checkpointRef(7)] })
    const failing = await serve(job, { history })
    printed = ''
    await give('exceptions', ...asReader(failing))
    expect(printed).toMatch(
      /^orders has restarted once in this start; its last failures:\n\n\d{4}-\S+ \S+ UTC, start 1, incarnation 1\n {2}MR-O11 It is lost\.\n {2}failed: count\/1; in w1\n {2}4 subtasks began again at once; all ran again \S+ m?s after it\n\n.*\n {2}Error: by the job\n {2}the job was given up\n$/,
    )
    printed = ''
    await give('exceptions', '--json', ...asReader(failing))
    expect(JSON.parse(printed)).toMatchObject({
      exceptions: [{ code: 'MR-O11', failed: ['count/1'], workers: ['w1'] }, { restartInMs: null }],
      restarts: { count: 1, restarts: [{ code: 'MR-O11', subtasks: 4 }] },
    })

    for (const [id, shown] of [
      ['7', /^checkpoint 7 completed at .*, retained\ns3:.*\nWhat each subtask took is not remembered\.\n$/],
      ['8', /^8 failed at .* \(declined\): count\/1: no\n$/],
    ] as const) {
      printed = ''
      await give('checkpoints', '--id', id, ...asReader(failing))
      expect(printed).toMatch(shown)
    }
    expect(await give('checkpoints', '--id', '9', ...asReader(failing))).toMatch(
      /^MR-L33 .*Checkpoint 9 is not retained/,
    )
  })

  it('that has ended while its coordinator stays says what begins the next start, and waits for nothing', async () => {
    const job = new TestJob()
    job.workers = { slotsNeeded: 3, slotsOffered: 0, workers: [], reportLost: () => false }
    job.head = finish(job.head)
    expect(await give('status', ...asReader(await serve(job)))).toBe(true)
    expect(printed).toContain('\nThe start after it (job.start: 2) would begin from the beginning.\n')
    expect(printed).not.toMatch(/run command|waits for slots/)
  })

  it('takes a savepoint for a reader, stops and changes its size for its owner; the request names the start', async () => {
    const job = new ObedientJob()
    const address = await serve(job)
    await give('savepoint', '--request', 'one', ...asReader(address))
    expect(printed).toBe('s3://bucket/orders/savepoint-4\n')
    await give('rescale', '--parallelism', '3', '--request', 'two', ...asOwner(address))
    expect(said).toBe('orders goes on at parallelism 3 from checkpoint 6.\n')
    await give('stop', '--request', 'three', ...asOwner(address))
    expect(printed).toBe('s3://bucket/orders/savepoint-4\ns3://bucket/orders/savepoint-5\n')
    expect(said).toContain('orders is stopped.\n')
    expect(job.asked).toEqual(['savepoint one', 'rescale two 3', 'stop three'])
  })

  it('is cancelled by its owner; a reader is told whose that is', async () => {
    const job = new ObedientJob()
    const address = await serve(job)
    expect(await give('cancel', ...asReader(address))).toMatch(/^MR-L33 .*MR-H07 .*owner's token/)
    expect(job.asked).toEqual([])
    expect(await give('cancel', ...asOwner(address))).toBeUndefined()
    expect(said).toBe('orders is cancelled.\n')
  })

  describe('that somebody else stops meanwhile', () => {
    const byOther = (head: Head): Head =>
      stop(head, { request: requestId('other'), manifest: savepointRef(5), commitsPending: false })

    /** Where both were taken, but the other came first. */
    class StoppedByOther extends TestJob {
      override stop(options: { readonly drain: boolean; readonly request: RequestId }) {
        const answer = super.stop(options)
        this.head = byOther(this.head)
        this.answer(options.request, { outcome: 'ended', detail: 'the job has ended (stopped)' })
        return answer
      }
    }

    it('is stopped, as was asked for, with that savepoint', async () => {
      expect(await give('stop', ...asOwner(await serve(new StoppedByOther())))).toBeUndefined()
      expect(printed).toBe('s3://bucket/orders/savepoint-5\n')
      expect(said).toBe('orders is stopped.\n')
    })

    it('is stopped too where its process takes no request any more', async () => {
      const job = new TestJob()
      const { head } = job
      let looks = 0
      const readHead = async (): Promise<Head> => {
        if (looks++ > 0) job.execution = undefined
        return job.execution === undefined ? byOther(head) : head
      }
      expect(await give('stop', ...asOwner(await serve(job, { readHead })))).toBeUndefined()
      expect(printed).toBe('s3://bucket/orders/savepoint-5\n')
    })

    it('is not drained by that', async () => {
      expect(await give('stop', '--drain', ...asOwner(await serve(new StoppedByOther())))).toMatch(
        /^MR-L33 .*The stop with drain: the job has ended \(stopped\)/,
      )
      expect(printed).toBe('')
    })
  })

  it('that refuses says why', async () => {
    const job = new TestJob()
    const address = await serve(job)
    expect(await give('rescale', '--parallelism', '9', ...asOwner(address))).toMatch(/^MR-L33 .*more than the max/)
    job.savepoint = async () => ({ outcome: 'failed', detail: 'the store is full' })
    expect(await give('savepoint', ...asOwner(address))).toMatch(/^MR-L33 .*The savepoint: the store is full\./)
    expect(await give('checkpoints', '--trigger', '--timeout', '1', ...asOwner(address))).toMatch(/^MR-L35 /)
    expect(job.asked).toEqual(['checkpoint'])
  })

  it.each([
    ['is waited for, if HEAD has the request', true],
    ['is asked again under the same request, if HEAD has it not', false],
  ])('whose coordinator is lost while it is asked %s', async (_, known) => {
    const first = new TestJob()
    const address = await serve(first)
    const asked = give('savepoint', '--request', 'r', ...asOwner(address))
    while (first.asked.length === 0) await new Promise((resolve) => setImmediate(resolve))
    await serving.shift()!.close()
    const second = new ObedientJob()
    second.head = { ...first.head, ...(known ? {} : { savepointRequests: [] }) }
    await serve(second, { listen: { host: '127.0.0.1', port: Number(new URL(address).port) } })
    // HEAD had it: the coordinator after takes it up.
    if (known) second.head = completeSavepoint(second.head, { request: requestId('r'), manifest: savepointRef(4) })
    expect(await asked).toBeUndefined()
    expect(printed).toBe('s3://bucket/orders/savepoint-4\n')
    expect(second.asked).toEqual(known ? [] : ['savepoint r'])
  })

  it('is reached by TLS, if its certificate is of the CA that is named', async () => {
    const authority = await testAuthority()
    const tls = await authority.issue(['127.0.0.1'])
    await writeFile(join(folder, 'ca.pem'), authority.ca)
    await writeFile(join(folder, 'other.pem'), (await testAuthority('another')).ca)
    const address = await serve(new TestJob(), { listen: { host: '127.0.0.1', port: 0, tls } })
    expect(address).toMatch(/^https:/)
    expect(await give('list', ...asOwner(address), '--ca', 'ca.pem')).toBe(true)
    for (const ca of [[], ['--ca', 'other.pem']])
      expect(await give('list', ...asOwner(address), ...ca)).toMatch(/^MR-L37 .*(UNABLE_TO|SELF_SIGNED|SIGNATURE)/)
    // Nothing to wait for.
    expect(said).toBe('')
    expect(await give('list', '--wait', '1', ...asOwner(address.replace('https', 'http')))).toMatch(/^MR-L37 /)
  })

  it('whose certificate is for other names is an error that says for which', async () => {
    const authority = await testAuthority()
    const tls = await authority.issue(['flights-coordinator', '10.0.0.7'])
    await writeFile(join(folder, 'ca.pem'), authority.ca)
    const address = await serve(new TestJob(), { listen: { host: '127.0.0.1', port: 0, tls } })
    expect(await give('list', ...asOwner(address), '--ca', 'ca.pem')).toMatch(
      /^MR-L37 .*: its certificate is not for 127\.0\.0\.1, only for flights-coordinator, 10\.0\.0\.7 \(ERR_TLS_CERT_ALTNAME_INVALID\)\..*--address/,
    )
    expect(said).toBe('')
  })

  it('where nobody listens, or somebody else does, is an error that says where', async () => {
    const server = createServer((socket) => void socket.resume().end('220 mail\r\n'))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { readonly port: number }
    const address = `http://127.0.0.1:${port}`
    expect(await give('status', ...asOwner(address))).toMatch(/^MR-L37 .*127\.0\.0\.1/)
    expect(said).toBe('')
    await new Promise((resolve) => server.close(resolve))
    expect(await give('status', '--wait', '150', ...asOwner(address))).toMatch(
      /^MR-L37 .*127\.0\.0\.1:\d+ did not answer for 150 ms \(ECONNREFUSED\)\./,
    )
    expect(said).toMatch(
      /^The coordinator at http:\S+ does not answer \(ECONNREFUSED\)\. Asking again for up to 150 ms\.\n$/,
    )
  })
})

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
}

describe('a job whose coordinator is away', () => {
  it.each([
    ['list', []],
    ['status', []],
    ['checkpoints', []],
    ['checkpoints', ['--trigger', '--timeout', '1']],
    ['exceptions', []],
    ['savepoint', []],
    ['stop', []],
    ['rescale', ['--parallelism', '3']],
    ['cancel', []],
  ] as const)('is asked again until it is back: %s %j', async (name, words) => {
    const port = await vacantPort()
    const job = new ObedientJob()
    const asked = give(name, ...words, ...asOwner(`http://127.0.0.1:${port}`))
    while (!said.includes('Asking again for up to 30.0 s.')) await turn()
    await serve(job, { listen: { host: '127.0.0.1', port } })
    const answer = await asked
    // Nobody takes that checkpoint.
    if (words.length > 2) expect(answer).toMatch(/^MR-L35 /)
    else expect(answer === undefined || answer === true, String(answer)).toBe(true)
    expect(said.split('\n').slice(0, 2)).toEqual([expect.stringContaining('ECONNREFUSED'), 'It answers.'])
    expect(job.asked.length).toBeLessThan(2)
  })

  it('and comes back before it has begun is asked again; one whose job is over is not', async () => {
    const job = new ObedientJob()
    const { execution } = job
    job.execution = undefined
    const address = await serve(job)
    const asked = give('savepoint', ...asOwner(address))
    await new Promise((resolve) => setTimeout(resolve, 300))
    job.execution = execution
    expect(await asked).toBeUndefined()
    expect(printed).toBe('s3://bucket/orders/savepoint-4\n')

    const over = new TestJob()
    over.head = cancel(over.head, { deleted: false })
    over.execution = undefined
    expect(await give('checkpoints', '--trigger', ...asOwner(await serve(over)))).toMatch(/^MR-L33 .*MR-H04/)
  })

  it('and comes back while its store is away is asked again until it has read HEAD', async () => {
    let hasRead = false
    const job = new TestJob()
    const readHead = async (): Promise<Head> => {
      if (!hasRead) throw restError('MR-H12', '2000 ms.')
      return job.head
    }
    const asked = give('list', ...asOwner(await serve(job, { readHead })))
    while (!said.includes('MR-H12 ')) await turn()
    hasRead = true
    expect(await asked).toBe(true)
  })

  it('behind something that says so for it is asked again', async () => {
    const gateway = createHttpServer((_request, response) => void response.writeHead(503).end('no endpoints'))
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve))
    const { port } = gateway.address() as { readonly port: number }
    const given = give('status', '--wait', '150', ...asOwner(`http://127.0.0.1:${port}`))
    expect(await given).toMatch(/^MR-L37 .*did not answer for 150 ms \(status 503\)/)
    await new Promise((resolve) => gateway.close(resolve))
  })

  it('that waits for its store is asked again, and its words are told', async () => {
    const body = JSON.stringify({ code: 'MR-H11', message: 'MR-H11 It waits for the object store.' })
    const waiting = createHttpServer((_request, response) => {
      response.writeHead(503, { 'content-type': 'application/json' }).end(body)
    })
    await new Promise<void>((resolve) => waiting.listen(0, '127.0.0.1', resolve))
    const { port } = waiting.address() as { readonly port: number }
    const given = give('status', '--wait', '150', ...asOwner(`http://127.0.0.1:${port}`))
    expect(await given).toMatch(/^MR-L37 .*did not answer for 150 ms \(MR-H11 It waits for the object store/)
    await new Promise((resolve) => waiting.close(resolve))
  })

  it('loses no cancel that HEAD had not yet', async () => {
    const first = new TestJob()
    const address = await serve(first)
    const asked = give('cancel', ...asOwner(address))
    while (first.asked.length === 0) await turn()
    await serving.shift()!.close()
    const second = new ObedientJob()
    await serve(second, { listen: { host: '127.0.0.1', port: Number(new URL(address).port) } })
    expect(await asked).toBeUndefined()
    expect(second.asked).toEqual(['cancel'])
    expect(said).toContain('orders is cancelled.\n')
  })

  it('and loses the checkpoint that it was asked for is asked for it again', async () => {
    const first = new TestJob()
    const address = await serve(first)
    const asked = give('checkpoints', '--trigger', '--timeout', '2000', ...asOwner(address))
    while (first.asked.length === 0) await turn()
    await serving.shift()!.close()
    const second = new TestJob()
    await serve(second, { listen: { host: '127.0.0.1', port: Number(new URL(address).port) } })
    expect(await asked).toMatch(/^MR-L35 /)
    expect(second.asked).toEqual(['checkpoint'])
  })
})

describe('a job that has ended, and its coordinator with it', () => {
  const manifest = savepointRef(5)
  const request = requestId('r')

  const ended = (change: (head: Head) => Head, start = 1) => endedJob(folder, { change, start })

  it('is shown as HEAD has it, without waiting', async () => {
    const words = await ended((head) => stop(head, { request, manifest, commitsPending: false }))
    expect(await give('status', ...words)).toBe(true)
    expect(printed).toMatch(
      /^orders was stopped with \/\S+savepoint-5\. Nobody answers at http:\S+: its coordinator ends with it\.\nHEAD in file:\S+: Start 1, .*\nThe start after it \(job\.start: 2\) would begin from savepoint 5, /,
    )
    printed = ''
    expect(await give('list', ...words)).toBe(true)
    expect(printed).toMatch(/\norders +stopped +1 +0 +savepoint 5\n$/)
    printed = ''
    await give('status', '--json', ...words)
    expect(JSON.parse(printed)).toMatchObject({ job: { state: 'ended', end: { kind: 'stopped' } }, subtasks: null })
    expect(said).toBe('')
    for (const given of [['savepoint'], ['cancel'], ['checkpoints', '--trigger']])
      expect(await give(...given, ...words)).toMatch(
        /^MR-L38 .*orders was stopped with .*\(start 1\)\..*admin restore-point/,
      )
  })

  it('tells what it failed by from its store, if anything was written there', async () => {
    const words = await ended((head) => fail(head, 'it was given up'))
    await give('exceptions', ...words)
    expect(printed).toMatch(/^orders has restarted 0 times in this start\. No history of it is stored/)
    const at = { atMs: 0, start: 1, incarnation: 1, failed: null, workers: null }
    const exception = { ...at, message: 'Error: it broke', code: null, restarted: 0, restartInMs: null }
    const history = encodeHistory({ completed: [], failed: [], exceptions: [exception], restarts: [] })
    const where = { storage: { checkpoints: `file://${folder}/store` }, files: new NodeFiles(), environment }
    const stores = await openStores({ ...where, probe: false })
    await stores.objects.create(historyKey(incarnation(1), 1), history)
    await stores.close()
    await give('exceptions', ...words)
    expect(printed).toMatch(/\n {2}Error: it broke\n {2}the job was given up\n$/)
  })

  it('for good is cancelled already', async () => {
    const words = await ended((head) => cancel(head, { deleted: false }))
    expect(await give('cancel', ...words)).toBeUndefined()
    expect(said).toBe('orders is cancelled.\n')
  })

  it('is not one that a next coordinator has something to do for', async () => {
    const commits = await ended((head) => stop(head, { request, manifest, commitsPending: true }))
    expect(await give('status', ...commits)).toMatch(
      /^MR-L37 .*stopped with .*, and not all of its commits are confirmed: .*admin commit\./,
    )
  })

  it('is not one whose next start has still to begin, nor one that runs', async () => {
    const next = await ended((head) => stop(head, { request, manifest, commitsPending: false }), 2)
    expect(await give('status', ...next)).toMatch(/^MR-L37 .*By HEAD start 2 has not begun; start 1 was stopped with /)
    await rm(join(folder, 'store'), { recursive: true })
    const running = await ended((head) => head)
    expect(await give('status', ...running)).toMatch(/^MR-L37 .*By HEAD start 1 has not ended\./)
    await rm(join(folder, 'store'), { recursive: true })
    expect(await give('status', ...running)).toMatch(/^MR-L37 .*There is no HEAD in file:/)
  })
})

describe('words that name a job elsewhere', () => {
  it('need all that is needed, and nothing of this machine', async () => {
    const address = 'https://h:1'
    const wrong: readonly (readonly [readonly string[], RegExp])[] = [
      [['status', '--address', address], /^MR-L10 .*--address needs --token-file/],
      [['stop', '--token-file', 'owner'], /^MR-L10 .*needs --address/],
      [['stop', 'orders', ...asOwner(address)], /^MR-L10 .*orders means a job of this machine/],
      [['list', '--folder', 'x', ...asOwner(address)], /^MR-L10 .*--folder means a job of this machine/],
      [['stop', '--config', 'c.yaml', '--ca', 'x'], /^MR-L10 .*--config names what --ca would/],
      [['savepoint', '--to', 'x', ...asOwner(address)], /^MR-L10 .*--to copies/],
      [['rescale', ...asOwner(address)], /^MR-L10 .*--parallelism/],
      [['status', ...asOwner('h:1')], /^MR-L11 .*http:\/\/host:port/],
      [['status', ...asOwner('https://h:1/v1')], /^MR-L11 .*http:\/\/host:port/],
      [['list', 'orders'], /^MR-L10 .*list takes no job/],
      [['checkpoints', '--id', '1', '--trigger', ...asOwner(address)], /^MR-L10 .*--id shows one/],
      [['checkpoints', '--id', 'x', ...asOwner(address)], /^MR-L11 .*--id is x/],
      [['status', '--wait', '100'], /^MR-L10 .*--wait needs --address or --config/],
      [['stop', '--config', 'c.yaml', '--wait', 'x'], /^MR-L11 .*--wait is x/],
    ]
    for (const [words, told] of wrong) expect(await give(...words)).toMatch(told)
    expect(await give('status', ...asOwner('https://user:secret@h:1'))).not.toContain('secret')
  })

  it('may name files that cannot be used, of which nothing is shown', async () => {
    await writeFile(join(folder, 'two'), 'secret one\nsecret two\n')
    const words = (file: string) => ['list', '--address', 'https://h:1', '--token-file', file]
    expect(await give(...words('none'))).toMatch(/^MR-L36 .*none/)
    const two = await give(...words('two'))
    expect(two).toMatch(/^MR-L36 .*a token and nothing else/)
    expect(two).not.toContain('secret')
  })

  it('may be in the process config of the job', async () => {
    const job = new TestJob()
    const address = await serve(job)
    const file = (name: string) => join(folder, name)
    const config = {
      version: 1,
      job: { id: 'orders', name: 'orders', start: 1, file: file('job.ts') },
      storage: { checkpoints: `file://${folder}/store` },
      nats: { servers: ['nats://127.0.0.1:4222'] },
      coordinator: { workersAddress: '127.0.0.1:1', restAddress: new URL(address).host },
      tokens: { workerFile: file('worker'), ownerFile: file('owner'), readerFile: file('reader') },
    }
    await writeFile(file('process.json'), JSON.stringify(config))
    expect(await give('list', '--config', 'process.json')).toBe(true)
    expect(printed).toMatch(/\norders +running/)
    await writeFile(file('process.json'), '{"version":1}')
    expect(await give('list', '--config', 'process.json')).toMatch(/^MR-D3\d /)
  })
})
