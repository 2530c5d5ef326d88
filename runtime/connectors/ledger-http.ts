// Sinks into the ledger server: a process of its own that judges from outside whether a job was exact (e2e/harness/ledger-server.ts).

import { z } from 'zod'
import { MillraceError } from '../base/errors.ts'
import type { Timer } from '../base/environment.ts'
import type { Sink, SinkContext, SinkWriter } from './contract.ts'
import { connectorError } from './errors.ts'
import { LedgerCalls } from './ledger-http-calls.ts'
import type { HttpExchange } from './ledger-http-contract.ts'
import { ledgerSinkOf } from './ledger.ts'
import type { LedgerEntry, LedgerSystem } from './ledger.ts'
import { OrderedWrites } from './ordered-writes.ts'
import { nodeHttpExchange } from './platform/ledger-client.ts'

export interface HttpLedgerOptions {
  /** Of the server: http://<host>:<port>. */
  readonly url: string
  /** Sinks that are judged apart write to books of their own; default main. */
  readonly book?: string
  /** How it is reached; default: by real sockets. Tests and the simulation give their own. */
  readonly exchange?: HttpExchange
}

export interface PlainHttpLedgerOptions extends HttpLedgerOptions {
  /** Longest time that a record waits for others, ms, 0 to 50; default 10. */
  readonly flushMs?: number
}

const ENTRIES_PER_APPEND = 2_048
/** Longer than a server takes to be started again. Afterwards the job restarts, and its next attempt waits. */
const WRITE_DEADLINE_MS = 120_000
/** The runtime tries commits again by itself, and sweeps come again. */
const COMMIT_DEADLINE_MS = 15_000
const FLUSH_MS_MAX = 50
const limits = { what: 'The ledger', ready: 32_768, max: 1_000_000 }

/** Exact: two-phase, visible at commit. Throws MR-N06 for options that cannot work. */
export function httpLedgerSink(options: HttpLedgerOptions): Sink<LedgerEntry> {
  const server = serverOf(options)
  return ledgerSinkOf({
    name: 'HTTP ledger',
    entriesPerAppend: ENTRIES_PER_APPEND,
    connect: ({ environment }, role) => {
      const deadlineMs = role === 'writer' ? WRITE_DEADLINE_MS : COMMIT_DEADLINE_MS
      return new HttpLedger(new LedgerCalls({ ...server, environment, deadlineMs }))
    },
  })
}

/** At least once: visible within `flushMs`, for measuring latency; a failure doubles records. Throws MR-N06 for options that cannot work. */
export function plainHttpLedgerSink(options: PlainHttpLedgerOptions): Sink<LedgerEntry> {
  const { flushMs = 10 } = options
  const server = serverOf(options)
  if (!(flushMs >= 0 && flushMs <= FLUSH_MS_MAX))
    throw connectorError('MR-N06', `Plain HTTP ledger: flushMs is ${flushMs}; it must be from 0 to ${FLUSH_MS_MAX}.`)
  return {
    name: 'plain HTTP ledger',
    createWriter: (context) => {
      const { environment } = context
      const calls = new LedgerCalls({ ...server, environment, deadlineMs: WRITE_DEADLINE_MS })
      return new PlainWriter(context, calls, flushMs)
    },
  }
}

function serverOf({ url, book = 'main', exchange = nodeHttpExchange() }: HttpLedgerOptions) {
  const parsed = URL.canParse(url) ? new URL(url) : undefined
  if (parsed?.protocol !== 'http:' || parsed.search !== '' || parsed.hash !== '')
    throw connectorError('MR-N06', `HTTP ledger: url is ${JSON.stringify(url)}; it must be http://<host>:<port>.`)
  if (book === '') throw connectorError('MR-N06', 'HTTP ledger: book is empty.')
  return { url: url.replace(/\/+$/, ''), book, exchange }
}

const listed = z.object({ transactions: z.array(z.object({ name: z.string() })) })

/** The ledger's server as its sink sees it. */
class HttpLedger implements LedgerSystem {
  readonly #calls: LedgerCalls
  /** Batches sent of each open transaction: their numbers, so that one that is sent again counts once. */
  readonly #batches = new Map<string, number>()

  constructor(calls: LedgerCalls) {
    this.#calls = calls
  }

  async append(transaction: string, entries: readonly LedgerEntry[]): Promise<void> {
    const batch = this.#batches.get(transaction) ?? 0
    await asWrite(() => this.#post(transaction, 'append', { batch }, rowsOf(entries)))
    this.#batches.set(transaction, batch + 1)
  }

  async preCommit(transaction: string): Promise<void> {
    const batches = this.#batches.get(transaction) ?? 0
    await asWrite(() => this.#post(transaction, 'pre-commit', { batches }))
    this.#batches.delete(transaction)
  }

  commit(transaction: string): Promise<void> {
    return this.#post(transaction, 'commit')
  }

  abort(transaction: string): Promise<void> {
    return this.#post(transaction, 'abort')
  }

  async list(): Promise<readonly string[]> {
    const answer = listed.safeParse(await this.#calls.call({ method: 'GET', path: '/transactions' }))
    if (!answer.success) throw connectorError('MR-N31', `Its list of transactions: ${answer.error.message}`)
    return answer.data.transactions.map(({ name }) => name)
  }

  close(): void {
    this.#calls.close()
  }

  async #post(transaction: string, verb: string, query: Readonly<Record<string, number>> = {}, body = '') {
    const path = `/transactions/${encodeURIComponent(transaction)}/${verb}`
    await this.#calls.call({ method: 'POST', path, query, body })
  }
}

/** A writer whose transaction was swept has been given up or must begin anew from its checkpoint: nothing is to be committed yet. */
async function asWrite(act: () => Promise<void>): Promise<void> {
  try {
    await act()
  } catch (error) {
    if (error instanceof MillraceError && error.code === 'MR-N12')
      throw connectorError('MR-N31', `A transaction that was being written is not known: ${error.message}`, error)
    throw error
  }
}

class PlainWriter implements SinkWriter<LedgerEntry> {
  readonly #context: SinkContext
  readonly #calls: LedgerCalls
  readonly #flushMs: number
  readonly #writes: OrderedWrites
  /** Tells this writer's batches from those of any other. */
  readonly #writer: string
  #batches = 0
  #entries: LedgerEntry[] = []
  #timer: Timer | undefined

  constructor(context: SinkContext, calls: LedgerCalls, flushMs: number) {
    this.#context = context
    this.#calls = calls
    this.#flushMs = flushMs
    this.#writes = new OrderedWrites(context, limits)
    this.#writer = context.environment.random.id()
  }

  async open(): Promise<void> {
    // The ledger needs no preparation.
  }

  get ready(): boolean {
    return this.#writes.ready
  }

  write(value: LedgerEntry): void {
    this.#writes.check()
    this.#entries.push(value)
    if (this.#entries.length >= ENTRIES_PER_APPEND) return this.#flush()
    this.#timer ??= this.#context.environment.clock.timer(this.#flushMs, () => this.#flush())
  }

  async prepareCommit(): Promise<[]> {
    this.#flush()
    await this.#writes.settled()
    return []
  }

  /** A job may end without a last checkpoint: what is left goes out here. */
  async close(): Promise<void> {
    this.#flush()
    await this.#writes.settled()
  }

  #flush(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const entries = this.#entries
    if (entries.length === 0) return
    this.#entries = []
    const query = { writer: this.#writer, batch: this.#batches++ }
    this.#writes.add(entries.length, async () => {
      await this.#calls.call({ method: 'POST', path: '/plain', query, body: rowsOf(entries) })
    })
  }
}

/** [[split, n, magic, key?, count?], …] */
function rowsOf(entries: readonly LedgerEntry[]): string {
  const rows = entries.map(({ split, n, magic, key, count }) =>
    key === undefined ? [split, n, magic] : [split, n, magic, key, count],
  )
  return JSON.stringify(rows)
}
