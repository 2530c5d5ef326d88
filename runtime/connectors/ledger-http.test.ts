import { describe, expect, it } from 'vitest'
import { checkpointId } from '../base/ids.ts'
import { Metrics } from '../base/metrics.ts'
import { MemoryFiles } from '../storage/memory-files.ts'
import { manualEnvironment, settlePromises } from '../testkit/manual-clock.ts'
import { conformanceJob, taskOf } from './conformance-support.ts'
import type { Sink } from './contract.ts'
import type { HttpAnswer, HttpExchange, HttpRequest } from './ledger-http-contract.ts'
import { httpLedgerSink, plainHttpLedgerSink } from './ledger-http.ts'
import type { LedgerEntry } from './ledger.ts'
import { LEDGER_MAGIC } from './sequence.ts'

const entry = (n: number): LedgerEntry => ({ split: 0, n, magic: LEDGER_MAGIC })
const url = 'http://ledger:7070'
const success: HttpAnswer = { status: 200, body: '{}' }
const id = checkpointId

/** A server whose every answer a test decides; `undefined` never comes. */
class Server {
  readonly calls: HttpRequest[] = []
  answer: (request: HttpRequest) => HttpAnswer | Error | undefined = () => success

  readonly exchange: HttpExchange = async (request, _signal) => {
    this.calls.push(request)
    const answer = this.answer(request)
    if (answer instanceof Error) throw answer
    return answer ?? new Promise<HttpAnswer>(() => {})
  }

  get paths(): string[] {
    return this.calls.map(({ url }) => new URL(url).pathname.replace(/mr1_\S+\//, '…/') + new URL(url).search)
  }
}

async function open(sink: Sink<LedgerEntry>) {
  const environment = manualEnvironment()
  const failures: unknown[] = []
  let woken = 0
  const writer = sink.createWriter({
    environment,
    files: new MemoryFiles(),
    task: taskOf({ subtask: 0, parallelism: 1, attempt: 1 }),
    uid: 'sink',
    newestKnownCheckpoint: checkpointId(0),
    metrics: new Metrics(),
    restored: { items: [] },
    fail: (error) => failures.push(error),
    wake: () => woken++,
  })
  await writer.open()
  return { writer, environment, failures, woken: () => woken }
}

const twoPhase = (server: Server) => httpLedgerSink({ url, exchange: server.exchange })
const plain = (server: Server, flushMs?: number) =>
  plainHttpLedgerSink({ url, exchange: server.exchange, ...(flushMs === undefined ? {} : { flushMs }) })

describe('the two-phase sink of the ledger server', () => {
  it('sends what came before the barrier in numbered batches, then pre-commits that many', async () => {
    const server = new Server()
    const { writer } = await open(twoPhase(server))
    for (let n = 0; n < 2_100; n++) writer.write(entry(n), n)
    const [prepared] = await writer.prepareCommit(id(1), false)
    expect(server.paths).toEqual([
      '/transactions/…/append?batch=0&book=main',
      '/transactions/…/append?batch=1&book=main',
      '/transactions/…/pre-commit?batches=2&book=main',
    ])
    const sent = server.calls.slice(0, 2).flatMap(({ body }) => JSON.parse(body) as number[][])
    expect(sent).toEqual(Array.from({ length: 2_100 }, (_, n) => [0, n, LEDGER_MAGIC]))
    expect(server.calls[0]!.url).toContain(`/transactions/${encodeURIComponent(prepared!.transaction)}/append`)
  })

  it('asks again, later and later, with the same batch, until there is an answer', async () => {
    const server = new Server()
    const answers = [new Error('connection reset'), undefined, { status: 503, body: 'busy' }]
    server.answer = () => (answers.length > 0 ? answers.shift() : success)
    const { writer, environment, failures } = await open(twoPhase(server))
    writer.write(entry(0), 0)
    const prepared = writer.prepareCommit(id(1), false)
    await settlePromises()
    expect(server.calls).toHaveLength(1)
    await environment.clock.advanceSettled(50)
    // No answer at all: given up after 10 s.
    await environment.clock.advanceSettled(9_900)
    expect(server.calls).toHaveLength(2)
    await environment.clock.advanceSettled(1_000)
    expect(await prepared).toHaveLength(1)
    expect(server.paths.slice(0, 4)).toEqual(
      Array.from({ length: 4 }, () => '/transactions/…/append?batch=0&book=main'),
    )
    expect(failures).toEqual([])
    expect(environment.clock.waiting).toBe(0)
  })

  it('fails the task and the barrier when the ledger does not answer within two minutes (B22)', async () => {
    const server = new Server()
    server.answer = () => new Error('connection refused')
    const { writer, environment, failures } = await open(twoPhase(server))
    writer.write(entry(0), 0)
    const prepared = writer.prepareCommit(id(1), false)
    const outcome = prepared.catch((error: unknown) => error)
    await environment.clock.advanceSettled(115_000)
    expect(failures).toEqual([])
    await environment.clock.advanceSettled(6_000)
    expect(await outcome).toMatchObject({ code: 'MR-N30', retry: true })
    expect(failures).toMatchObject([{ code: 'MR-N30' }])
    expect(String(failures[0])).toContain('connection refused')
    expect(() => writer.write(entry(1), 1)).toThrow('MR-N30')
  })

  it('does not repeat what is refused, nor what a sweep has taken away', async () => {
    const unknown = { status: 404, body: '{"kind":"unknown","error":"there is no transaction"}' }
    for (const refusal of [{ status: 409, body: '{"error":"it would leave a gap"}' }, unknown]) {
      const server = new Server()
      server.answer = () => refusal
      const { writer, failures } = await open(twoPhase(server))
      writer.write(entry(0), 0)
      await expect(writer.prepareCommit(id(1), false)).rejects.toMatchObject({ code: 'MR-N31', retry: true })
      expect(server.calls).toHaveLength(1)
      expect(failures).toHaveLength(1)
    }
  })

  it('holds its producers back while the ledger is slow, and wakes them', async () => {
    const server = new Server()
    let release: (() => void) | undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const slow: HttpExchange = async (request) => {
      await held
      return server.exchange(request, new AbortController().signal)
    }
    const { writer, woken } = await open(httpLedgerSink({ url, exchange: slow }))
    let written = 0
    for (; writer.ready === true && written < 1_000_000; written++) writer.write(entry(written), 0)
    expect(written).toBe(32_768)
    expect(woken()).toBe(0)
    release!()
    await settlePromises()
    expect(woken()).toBe(1)
    expect(writer.ready).toBe(true)
    await writer.prepareCommit(id(1), false)
    expect(server.calls).toHaveLength(17)
  })

  it('takes no more than a bound when nothing holds its producers back', async () => {
    const server = new Server()
    server.answer = () => undefined
    const { writer } = await open(twoPhase(server))
    const flood = (): void => {
      for (let n = 0; n < 1_010_000; n++) writer.write(entry(n), 0)
    }
    expect(flood).toThrow('MR-N11')
  })

  it('gives up what has no answer when its task ends, and tells nobody', async () => {
    const server = new Server()
    server.answer = () => undefined
    const { writer, environment, failures } = await open(twoPhase(server))
    for (let n = 0; n < 3_000; n++) writer.write(entry(n), 0)
    await writer.close()
    expect(failures).toEqual([])
    expect(environment.clock.waiting).toBe(0)
  })
})

describe('the committer of the ledger server', () => {
  const committer = (server: Server) => {
    const environment = manualEnvironment()
    const context = { environment, files: new MemoryFiles(), uid: 'sink', job: conformanceJob }
    return { committer: twoPhase(server).createCommitter!(context), environment }
  }
  const committable = { checkpoint: id(1), transaction: 'mr1_a_b_1.1_0_0', payload: null }

  it('tells a transaction that the ledger does not know from one that could not be committed', async () => {
    const server = new Server()
    server.answer = () => ({ status: 404, body: '{"kind":"unknown","error":"there is no transaction"}' })
    const { committer: one, environment } = committer(server)
    await expect(one.commit([committable])).rejects.toMatchObject({ code: 'MR-N12', retry: false })
    // A stranger's 404, such as another server at this address, says nothing about the transaction.
    server.answer = () => ({ status: 404, body: 'not found' })
    await expect(one.commit([committable])).rejects.toMatchObject({ code: 'MR-N31', retry: true })
    server.answer = () => new Error('connection refused')
    const outcome = one.commit([committable]).catch((error: unknown) => error)
    await environment.clock.advanceSettled(16_000)
    expect(await outcome).toMatchObject({ code: 'MR-N30', retry: true })
  })

  it('does not take a strange answer for a success or an empty list', async () => {
    const server = new Server()
    const { committer: one, environment } = committer(server)
    for (const body of ['<html>', '']) {
      server.answer = () => ({ status: 200, body })
      const outcome = one.commit([committable]).catch((error: unknown) => error)
      await environment.clock.advanceSettled(16_000)
      expect(await outcome).toMatchObject({ code: 'MR-N30' })
    }
    server.answer = () => ({ status: 200, body: '{}' })
    await expect(one.list()).rejects.toMatchObject({ code: 'MR-N31' })
  })
})

describe('the plain sink of the ledger server', () => {
  it('sends what came within its flush time, or at the barrier, each batch under its number', async () => {
    const server = new Server()
    const { writer, environment } = await open(plain(server, 20))
    writer.write(entry(0), 0)
    writer.write(entry(1), 0)
    await environment.clock.advanceSettled(19)
    expect(server.calls).toEqual([])
    await environment.clock.advanceSettled(1)
    writer.write(entry(2), 0)
    expect(await writer.prepareCommit(id(1), false)).toEqual([])
    expect(server.calls.map(({ body }) => JSON.parse(body) as number[][])).toEqual([
      [
        [0, 0, LEDGER_MAGIC],
        [0, 1, LEDGER_MAGIC],
      ],
      [[0, 2, LEDGER_MAGIC]],
    ])
    expect(server.paths[1]).toMatch(/^\/plain\?writer=[0-9a-f]{32}&batch=1&book=main$/)
    expect(environment.clock.waiting).toBe(0)
  })

  it('sends the rest when it is closed, and says when that fails', async () => {
    const server = new Server()
    const { writer } = await open(plain(server))
    writer.write(entry(0), 0)
    await writer.close()
    expect(server.calls).toHaveLength(1)
    const other = await open(plain(server))
    other.writer.write(entry(0), 0)
    server.answer = () => ({ status: 409, body: '{"error":"no"}' })
    await expect(other.writer.close()).rejects.toMatchObject({ code: 'MR-N31' })
  })
})

describe('options of the sinks of the ledger server', () => {
  it('that cannot work are refused at once', () => {
    for (const url of ['ledger:7070', 'https://ledger', 'nats://ledger', 'http://ledger?x=1', ''])
      expect(() => httpLedgerSink({ url }), url).toThrow('MR-N06')
    expect(() => httpLedgerSink({ url, book: '' })).toThrow('book is empty')
    for (const flushMs of [-1, 51, Number.NaN]) expect(() => plainHttpLedgerSink({ url, flushMs })).toThrow('MR-N06')
  })
})
