// The ledger over HTTP.
//
//   POST /transactions/<name>/append?batch=N        rows as JSON          POST /plain?writer=W&batch=N     rows as JSON
//   POST /transactions/<name>/pre-commit?batches=N                        GET  /transactions?prefix=P
//   POST /transactions/<name>/commit                                      POST /transactions/<name>/abort
//   GET  /report?splits&perSplit&keys&sinceMs&atLeastOnce                 GET  /first?afterMs=T      GET /entries
//   POST /hold {what, match?, where?, book?}    POST /release    GET /held    GET /health
//   POST /marks?name=N&times=T                      POST /marks/take?name=N
//
// Each takes `book`, which is 'main' where it is not said. 404: unknown transaction. 409: refused. 400: not understood.

import type { IncomingMessage, ServerResponse } from 'node:http'
import { heldCalls, Holds } from './ledger-holds.ts'
import type { Hold, HeldCall } from './ledger-holds.ts'
import { parseRows } from './ledger-entry.ts'
import type { LedgerStore, Outcome } from './ledger-store.ts'

const BODY_BYTES_MAX = 32 * 1024 * 1024

class BadCall extends Error {}

interface Answer {
  readonly status: number
  readonly body: unknown
}

interface Call {
  readonly method: string
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
  readonly book: string
  readonly gone: AbortSignal
}

export class LedgerHttp {
  readonly #store: LedgerStore
  readonly #holds = new Holds()
  /** What tests leave for their jobs: how many times each may still be taken. */
  readonly #marks = new Map<string, number>()
  /** By book. */
  readonly #refused = new Map<string, number>()

  constructor(store: LedgerStore) {
    this.#store = store
  }

  /** Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let answer: Answer | undefined
    const gone = new AbortController()
    response.on('close', () => gone.abort())
    try {
      const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://ledger')
      const body = await bodyOf(request)
      const book = query.get('book') ?? 'main'
      answer = await this.#answer({
        method: request.method ?? '',
        path: pathname,
        query,
        body,
        book,
        gone: gone.signal,
      })
    } catch (error) {
      answer = { status: error instanceof BadCall ? 400 : 500, body: { error: String(error) } }
    }
    if (answer === undefined) return void response.destroy()
    response.writeHead(answer.status, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer.body))
  }

  /** undefined: nobody waits for it any more. */
  async #answer(call: Call): Promise<Answer | undefined> {
    const transaction = /^\/transactions\/([^/]+)\/(append|pre-commit|commit|abort)$/.exec(call.path)
    if (transaction !== null && call.method === 'POST')
      return this.#change(call, decodeURIComponent(transaction[1]!), transaction[2]!)
    switch (`${call.method} ${call.path}`) {
      case 'POST /plain': {
        const writer = wordOf(call.query, 'writer')
        const batch = numberOf(call.query, 'batch')
        const rows = checkedRows(call.body)
        return this.#held('plain', call, writer, () => this.#store.plain(call.book, writer, batch, rows))
      }
      case 'GET /transactions':
        return this.#list(call)
      case 'GET /report':
        return this.#report(call)
      case 'GET /entries':
        return ok({ entries: await this.#store.entries(call.book) })
      case 'GET /first':
        return this.#first(call)
      case 'POST /hold':
        this.#holds.hold(holdOf(call.body))
        return ok({})
      case 'POST /release':
        return ok({ released: this.#holds.release() })
      case 'GET /held':
        return ok({ held: this.#holds.held })
      case 'POST /marks':
        this.#marks.set(wordOf(call.query, 'name'), numberOf(call.query, 'times'))
        return ok({})
      case 'POST /marks/take':
        return ok({ taken: this.#take(wordOf(call.query, 'name')) })
      case 'GET /health': {
        const { bookNames: books, logBytes } = this.#store
        return ok({ nowMs: this.#store.nowMs(), pid: process.pid, books, logBytes })
      }
      default:
        return { status: 404, body: { error: `there is no ${call.method} ${call.path}` } }
    }
  }

  async #change(call: Call, name: string, verb: string): Promise<Answer | undefined> {
    const { book, query } = call
    switch (verb) {
      case 'append': {
        const [batch, rows] = [numberOf(query, 'batch'), checkedRows(call.body)]
        return this.#held('append', call, name, () => this.#store.append(book, name, batch, rows))
      }
      case 'pre-commit': {
        const batches = numberOf(query, 'batches')
        return this.#held('preCommit', call, name, () => this.#store.preCommit(book, name, batches))
      }
      case 'commit':
        return this.#held('commit', call, name, () => this.#store.commit(book, name))
      default:
        return this.#held('abort', call, name, () => this.#store.abort(book, name))
    }
  }

  async #held(
    what: HeldCall,
    { book, gone }: Call,
    name: string,
    act: () => Promise<Outcome>,
  ): Promise<Answer | undefined> {
    const pass = (where: 'before' | 'after') => this.#holds.pass({ what, book, name, where }, this.#store.nowMs(), gone)
    if ((await pass('before')) === 'gone') return undefined
    const outcome = await act()
    if ((await pass('after')) === 'gone') return undefined
    if (outcome.kind === 'done') return ok({})
    this.#refused.set(book, (this.#refused.get(book) ?? 0) + 1)
    return { status: outcome.kind === 'unknown' ? 404 : 409, body: { kind: outcome.kind, error: outcome.why } }
  }

  async #list({ book, query }: Call): Promise<Answer> {
    const { transactions } = await this.#store.read(book)
    const prefix = query.get('prefix') ?? ''
    const listed = [...transactions].filter(([name, { state }]) => state !== 'committed' && name.startsWith(prefix))
    return ok({ transactions: listed.map(([name, { state }]) => ({ name, state })) })
  }

  async #report({ book, query }: Call): Promise<Answer> {
    const { judge, transactions, committed, aborted } = await this.#store.read(book)
    const states = [...transactions.values()].map(({ state }) => state)
    const report = judge.report({
      splits: optionalNumber(query, 'splits'),
      perSplit: optionalNumber(query, 'perSplit'),
      keys: optionalNumber(query, 'keys'),
      sinceMs: optionalNumber(query, 'sinceMs'),
      atLeastOnce: query.get('atLeastOnce') === 'true',
    })
    const of = (wanted: string): number => states.filter((state) => state === wanted).length
    const nowMs = this.#store.nowMs()
    const refused = this.#refused.get(book) ?? 0
    const [open, preCommitted] = [of('open'), of('pre-committed')]
    return ok({ book, nowMs, ...report, committed, aborted, open, preCommitted, refused })
  }

  async #first({ book, query }: Call): Promise<Answer> {
    const { judge } = await this.#store.read(book)
    return ok({ nowMs: this.#store.nowMs(), first: judge.arrivals.firstAfter(numberOf(query, 'afterMs')) })
  }

  #take(name: string): boolean {
    const times = this.#marks.get(name) ?? 0
    if (times > 0) this.#marks.set(name, times - 1)
    return times > 0
  }
}

const ok = (body: object): Answer => ({ status: 200, body })

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request) {
    pieces.push(piece as Buffer)
    bytes += (piece as Buffer).byteLength
    if (bytes > BODY_BYTES_MAX) throw new BadCall(`the body is larger than ${BODY_BYTES_MAX} bytes`)
  }
  return Buffer.concat(pieces).toString()
}

function checkedRows(body: string): string {
  if (parseRows(body) === undefined) throw new BadCall('the body must be [[split, n, magic, key?, count?], …]')
  return body
}

function wordOf(query: URLSearchParams, name: string): string {
  const word = query.get(name)
  if (word === null || word === '') throw new BadCall(`${name} is missing`)
  return word
}

function numberOf(query: URLSearchParams, name: string): number {
  const number = Number(wordOf(query, name))
  if (!Number.isFinite(number) || number < 0)
    throw new BadCall(`${name} is ${query.get(name)}; it must be a number ≥ 0`)
  return number
}

function optionalNumber(query: URLSearchParams, name: string): number | undefined {
  return query.has(name) ? numberOf(query, name) : undefined
}

function holdOf(body: string): Hold {
  let given: Partial<Hold>
  try {
    given = JSON.parse(body) as Partial<Hold>
  } catch {
    throw new BadCall('the body is no JSON')
  }
  const { what, where = 'before' } = given
  if (!heldCalls.some((call) => call === what)) throw new BadCall(`what is ${what}; it must be ${heldCalls.join(', ')}`)
  if (where !== 'before' && where !== 'after')
    throw new BadCall(`where is ${String(where)}; it must be before or after`)
  return { ...given, where } as Hold
}
