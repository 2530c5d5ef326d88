// The runtime's sinks into the ledger server conform, over real HTTP.

import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { plainSinkClaims, sinkClaims } from '../../runtime/connectors/conformance.ts'
import type { SinkCase } from '../../runtime/connectors/conformance.ts'
import type { Sink } from '../../runtime/connectors/contract.ts'
import type { HttpExchange } from '../../runtime/connectors/ledger-http-contract.ts'
import { httpLedgerSink, plainHttpLedgerSink } from '../../runtime/connectors/ledger-http.ts'
import type { LedgerEntry } from '../../runtime/connectors/ledger.ts'
import { nodeHttpExchange } from '../../runtime/connectors/platform/ledger-client.ts'
import { realEnvironment } from '../../runtime/local/platform/real-environment.ts'
import { MemoryFiles } from '../../runtime/storage/memory-files.ts'
import { LedgerClient } from './ledger-client.ts'
import { LEDGER_MAGIC } from './ledger-entry.ts'
import { LedgerHttp } from './ledger-http.ts'
import { LedgerStore } from './ledger-store.ts'

const environment = realEnvironment({ log: () => undefined })
const exchange = nodeHttpExchange()
const server = createServer((request, response) => void http.handle(request, response))
let http: LedgerHttp
let store: LedgerStore
let folder = ''
let client: LedgerClient
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'ledger-sinks-'))
  store = await LedgerStore.open({
    folder,
    nowMs: () => Math.floor(performance.now()),
    fail: (error) => expect.unreachable(String(error)),
  })
  http = new LedgerHttp(store)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  client = new LedgerClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  await store.close()
  await rm(folder, { recursive: true, force: true })
})

let books = 0

type Make = (options: {
  readonly url: string
  readonly book: string
  readonly exchange: HttpExchange
}) => Sink<LedgerEntry>

function caseOf(make: Make): SinkCase<LedgerEntry> {
  const book = `book ${++books}`
  let refuses = false
  const perhaps: HttpExchange = async (request, signal) =>
    refuses ? { status: 409, body: '{"error":"the test refuses"}' } : exchange(request, signal)
  return {
    name: book,
    createSink: () => make({ url: client.url, book, exchange: perhaps }),
    environment,
    files: new MemoryFiles(),
    record: (n) => ({ split: 0, n, magic: LEDGER_MAGIC, key: `key ${n}`, count: 1 }),
    keyOf: ({ n, key, count }) => `${n} ${key} ${count}`,
    visible: async () =>
      (await client.entries(book)).map(
        ([split, n, magic, key, count]) => ({ split, n, magic, key, count }) as LedgerEntry,
      ),
    refuse: () => {
      refuses = true
    },
  }
}

describe('the sinks of the ledger server conform', () => {
  // The claims name themselves; the server that they meet begins later.
  for (const { name, run } of sinkClaims('two-phase', () => caseOf(httpLedgerSink))) it(name, run)
  for (const { name, run } of plainSinkClaims('plain', () => caseOf(plainHttpLedgerSink))) it(name, run)
})

describe('the ledger over HTTP', () => {
  it('says what it does not understand', async () => {
    const call = async (method: string, path: string, body?: string) => {
      const response = await fetch(`${client.url}${path}`, { method, ...(body === undefined ? {} : { body }) })
      return [response.status, ((await response.json()) as { error: string }).error]
    }
    const rowsError = 'Error: the body must be [[split, n, magic, key?, count?], …]'
    expect(await call('POST', '/transactions/t/append?batch=0', '{')).toEqual([400, rowsError])
    expect(await call('POST', '/plain?writer=w&batch=0', '[1]')).toEqual([400, rowsError])
    expect(await call('POST', '/plain?batch=0', '[]')).toEqual([400, 'Error: writer is missing'])
    expect(await call('POST', '/transactions/t/pre-commit?batches=-1')).toEqual([
      400,
      'Error: batches is -1; it must be a number ≥ 0',
    ])
    expect(await call('POST', '/hold', '{"what":"all"}')).toEqual([
      400,
      'Error: what is all; it must be append, preCommit, commit, abort, plain',
    ])
    expect(await call('GET', '/nothing')).toEqual([404, 'there is no GET /nothing'])
    expect(await call('POST', '/transactions/t/commit')).toEqual([404, 'there is no transaction t'])
  })

  it('holds a call open before its effect, and forgets it when the caller has gone', async () => {
    await store.append('held', 't', 0, JSON.stringify([[0, 0, LEDGER_MAGIC]]))
    await store.preCommit('held', 't', 1)
    await client.hold({ what: 'commit', match: 't', book: 'held' })
    const gone = new AbortController()
    const commit = (signal?: AbortSignal) =>
      fetch(`${client.url}/transactions/t/commit?book=held`, { method: 'POST', ...(signal && { signal }) })
    const first = commit(gone.signal)
    expect(await client.waitForHeld(1, 5_000)).toMatchObject([{ what: 'commit', name: 't', where: 'before' }])
    gone.abort()
    await expect(first).rejects.toThrow('aborted')
    const second = commit()
    await client.waitForHeld(1, 5_000)
    expect((await client.report({ book: 'held' })).present).toBe(0)
    await client.release()
    expect((await second).status).toBe(200)
    expect((await client.report({ book: 'held' })).present).toBe(1)
    expect(await client.held()).toEqual([])
  })

  it('holds back the answer alone when told so', async () => {
    await client.hold({ what: 'plain', where: 'after', book: 'answer' })
    const call = fetch(`${client.url}/plain?writer=w&batch=0&book=answer`, {
      method: 'POST',
      body: JSON.stringify([[0, 0, LEDGER_MAGIC]]),
    })
    await client.waitForHeld(1, 5_000)
    expect((await client.report({ book: 'answer' })).present).toBe(1)
    expect(await client.release()).toBe(1)
    expect((await call).status).toBe(200)
  })

  it('gives each mark as often as it was left', async () => {
    await client.mark('crash', 2)
    const take = async () =>
      ((await (await fetch(`${client.url}/marks/take?name=crash`, { method: 'POST' })).json()) as { taken: boolean })
        .taken
    expect([await take(), await take(), await take()]).toEqual([true, true, false])
  })
})
