// The ledger's transactions: every change is a frame of the log, and the log alone says what there is after a restart.

import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { LedgerJudge } from './ledger-judge.ts'
import { parseRows } from './ledger-entry.ts'
import type { LedgerRow } from './ledger-entry.ts'
import { FIRST_OFFSET, LedgerLog } from './ledger-log.ts'
import type { LogPlace } from './ledger-log.ts'

type TransactionState = 'open' | 'pre-committed' | 'committed'

interface Transaction {
  state: TransactionState
  batches: number
  /** Where its entries lie in the log: they are read again at the commit, so that open transactions take no memory. */
  places: LogPlace[]
}

/** Books share the server and nothing else: one for each sink that is judged apart. */
export interface Book {
  readonly judge: LedgerJudge
  /** Aborted ones are forgotten. */
  readonly transactions: Map<string, Transaction>
  /** Of writers without transactions: how many batches of each arrived. */
  readonly writers: Map<string, number>
  committed: number
  aborted: number
}

/** What a call comes to. `unknown`: there is no such transaction. `refused`: it would lose or double entries. */
export type Outcome = { readonly kind: 'done' } | { readonly kind: 'unknown' | 'refused'; readonly why: string }

type Change =
  | { readonly op: 'append'; readonly transaction: string }
  | { readonly op: 'preCommit' | 'commit' | 'abort'; readonly transaction: string }
  | { readonly op: 'plain'; readonly writer: string }

/** The first line of a frame's payload; the rows follow behind it. */
type Header = Change & { readonly book: string; readonly atMs: number }

const FORMAT = 'millrace-ledger 1'
const done: Outcome = { kind: 'done' }

export class LedgerStore {
  readonly #log: LedgerLog
  readonly #books: Map<string, Book>
  readonly #nowMs: () => number

  private constructor(log: LedgerLog, books: Map<string, Book>, nowMs: () => number) {
    this.#log = log
    this.#books = books
    this.#nowMs = nowMs
  }

  /** `nowMs`: since the epoch, never back within this process. `fail` hears that the disk refused; nothing is answered after that. */
  static async open(options: {
    readonly folder: string
    readonly nowMs: () => number
    readonly fail: (error: unknown) => void
  }): Promise<LedgerStore> {
    const { folder, nowMs, fail } = options
    await mkdir(folder, { recursive: true })
    const books = new Map<string, Book>()
    let latestMs = 0
    const texts = new Map<Transaction, string[]>()
    const log = await LedgerLog.open(
      join(folder, 'ledger.log'),
      (payload, place) => {
        if (place.offset === FIRST_OFFSET) {
          if (payload.toString() !== FORMAT) throw new Error(`${folder}/ledger.log is not of the format ${FORMAT}`)
          return
        }
        const { header, rowsAt } = headerOf(payload)
        latestMs = Math.max(latestMs, header.atMs)
        replay(books, header, { text: () => payload.toString('utf8', rowsAt), place: within(place, rowsAt), texts })
      },
      fail,
    )
    if (log.bytes === 0) log.append(Buffer.from(FORMAT))
    return new LedgerStore(log, books, () => (latestMs = Math.max(latestMs, nowMs())))
  }

  get logBytes(): number {
    return this.#log.bytes
  }

  get bookNames(): readonly string[] {
    return [...this.#books.keys()]
  }

  /** By the clock that stamps arrivals; never goes back, also not over a restart. */
  nowMs(): number {
    return this.#nowMs()
  }

  /** What is in it is durable once this resolves. A book is there from the first question on. */
  async read(book: string): Promise<Book> {
    await this.#log.settled()
    return bookOf(this.#books, book)
  }

  /** The visible entries of a book, in their order, read from the log. */
  async entries(name: string): Promise<readonly LedgerRow[]> {
    const visible: LedgerRow[] = []
    const hidden = new Map<string, LedgerRow[]>()
    await this.#log.readAll((payload, { offset }) => {
      if (offset === FIRST_OFFSET) return
      const { header, rowsAt } = headerOf(payload)
      if (header.book !== name) return
      const rows = (): readonly LedgerRow[] => rowsOf(payload.toString('utf8', rowsAt))
      if (header.op === 'plain') {
        visible.push(...rows())
        return
      }
      const { op, transaction } = header
      if (op === 'append') hidden.set(transaction, [...(hidden.get(transaction) ?? []), ...rows()])
      if (op === 'commit') visible.push(...(hidden.get(transaction) ?? []))
      if (op === 'commit' || op === 'abort') hidden.delete(transaction)
    })
    return visible
  }

  /** `batch` counts the batches of the transaction from 0; one that is there already changes nothing. */
  async append(book: string, name: string, batch: number, text: string): Promise<Outcome> {
    const { transactions } = bookOf(this.#books, book)
    const transaction = transactions.get(name)
    const batches = transaction?.batches ?? 0
    // Without answer it was sent again, perhaps behind the pre-commit.
    if (batch < batches) return this.#settled(done)
    if (transaction !== undefined && transaction.state !== 'open')
      return this.#settled({ kind: 'refused', why: `${name} is ${transaction.state} and takes no more entries` })
    if (batch > batches)
      return this.#settled({ kind: 'refused', why: `${name} has ${batches} batches; batch ${batch} would leave a gap` })
    const { place } = this.#write({ op: 'append', transaction: name, book, atMs: this.#nowMs() }, text)
    const opened = transaction ?? open()
    opened.batches++
    opened.places.push(place)
    transactions.set(name, opened)
    return this.#settled(done)
  }

  /** `batches`: how many there must be, so that none is missing. */
  async preCommit(book: string, name: string, batches: number): Promise<Outcome> {
    const transaction = bookOf(this.#books, book).transactions.get(name)
    if (transaction === undefined) return this.#settled({ kind: 'unknown', why: `there is no transaction ${name}` })
    if (transaction.batches !== batches)
      return this.#settled({ kind: 'refused', why: `${name} has ${transaction.batches} batches of ${batches}` })
    if (transaction.state === 'open') {
      this.#write({ op: 'preCommit', transaction: name, book, atMs: this.#nowMs() })
      transaction.state = 'pre-committed'
    }
    return this.#settled(done)
  }

  async commit(book: string, name: string): Promise<Outcome> {
    const { transactions } = bookOf(this.#books, book)
    const transaction = transactions.get(name)
    if (transaction?.state === 'pre-committed') {
      await this.#log.settled()
      const texts = await Promise.all(transaction.places.map((place) => this.#log.read(place)))
      // Another call for the same transaction may have been quicker.
      if (transactions.get(name) === transaction && transaction.state === 'pre-committed') {
        const atMs = this.#nowMs()
        this.#write({ op: 'commit', transaction: name, book, atMs })
        show(bookOf(this.#books, book), { name, transaction, texts: texts.map(String), atMs })
      }
    }
    const now = transactions.get(name)
    if (now === undefined) return this.#settled({ kind: 'unknown', why: `there is no transaction ${name}` })
    if (now.state === 'open') return this.#settled({ kind: 'refused', why: `${name} was not pre-committed` })
    return this.#settled(done)
  }

  async abort(book: string, name: string): Promise<Outcome> {
    const found = bookOf(this.#books, book)
    const transaction = found.transactions.get(name)
    if (transaction?.state === 'committed')
      return this.#settled({ kind: 'refused', why: `${name} is committed and cannot be aborted` })
    if (transaction !== undefined) {
      this.#write({ op: 'abort', transaction: name, book, atMs: this.#nowMs() })
      found.transactions.delete(name)
      found.aborted++
    }
    return this.#settled(done)
  }

  /** Visible at once. `batch` counts the batches of this writer from 0; one that is there already changes nothing. */
  async plain(book: string, writer: string, batch: number, text: string): Promise<Outcome> {
    const found = bookOf(this.#books, book)
    const batches = found.writers.get(writer) ?? 0
    if (batch < batches) return this.#settled(done)
    if (batch > batches)
      return this.#settled({
        kind: 'refused',
        why: `${writer} has ${batches} batches; batch ${batch} would leave a gap`,
      })
    const atMs = this.#nowMs()
    this.#write({ op: 'plain', writer, book, atMs }, text)
    found.writers.set(writer, batches + 1)
    found.judge.add(rowsOf(text), atMs, writer)
    return this.#settled(done)
  }

  async close(): Promise<void> {
    await this.#log.close()
  }

  /** An answer says what is durable, also one that says that nothing had to be done. */
  async #settled(outcome: Outcome): Promise<Outcome> {
    await this.#log.settled()
    return outcome
  }

  #write(header: Header, text = ''): { readonly place: LogPlace } {
    const line = Buffer.from(`${JSON.stringify(header)}\n`)
    const place = this.#log.append(Buffer.concat([line, Buffer.from(text)]))
    return { place: within(place, line.byteLength) }
  }
}

function open(): Transaction {
  return { state: 'open', batches: 0, places: [] }
}

function bookOf(books: Map<string, Book>, name: string): Book {
  let book = books.get(name)
  if (book === undefined) {
    book = { judge: new LedgerJudge(), transactions: new Map(), writers: new Map(), committed: 0, aborted: 0 }
    books.set(name, book)
  }
  return book
}

function show(
  book: Book,
  committed: {
    readonly name: string
    readonly transaction: Transaction
    readonly texts: readonly string[]
    readonly atMs: number
  },
): void {
  const { name, transaction, texts, atMs } = committed
  transaction.state = 'committed'
  transaction.places = []
  book.committed++
  for (const text of texts) book.judge.add(rowsOf(text), atMs, name)
}

interface Replayed {
  readonly text: () => string
  readonly place: LogPlace
  /** Entries of transactions that are not committed yet, so that the log is read once. */
  readonly texts: Map<Transaction, string[]>
}

function replay(books: Map<string, Book>, header: Header, { text, place, texts }: Replayed): void {
  const book = bookOf(books, header.book)
  if (header.op === 'plain') {
    book.writers.set(header.writer, (book.writers.get(header.writer) ?? 0) + 1)
    book.judge.add(rowsOf(text()), header.atMs, header.writer)
    return
  }
  const name = header.transaction
  const transaction = book.transactions.get(name) ?? open()
  switch (header.op) {
    case 'append':
      book.transactions.set(name, transaction)
      transaction.batches++
      transaction.places.push(place)
      textsOf(texts, transaction).push(text())
      return
    case 'preCommit':
      transaction.state = 'pre-committed'
      return
    case 'commit':
      show(book, { name, transaction, texts: texts.get(transaction) ?? [], atMs: header.atMs })
      texts.delete(transaction)
      return
    case 'abort':
      book.transactions.delete(name)
      book.aborted++
      texts.delete(transaction)
      return
    default:
      header satisfies never
  }
}

function textsOf(texts: Map<Transaction, string[]>, transaction: Transaction): string[] {
  const known = texts.get(transaction)
  if (known !== undefined) return known
  const none: string[] = []
  texts.set(transaction, none)
  return none
}

function headerOf(payload: Buffer): { readonly header: Header; readonly rowsAt: number } {
  const end = payload.indexOf(10)
  return { header: JSON.parse(payload.toString('utf8', 0, end)) as Header, rowsAt: end + 1 }
}

function within({ offset, bytes }: LogPlace, start: number): LogPlace {
  return { offset: offset + start, bytes: bytes - start }
}

/** Looked at before they were written. */
function rowsOf(text: string): readonly LedgerRow[] {
  const rows = parseRows(text)
  if (rows === undefined) throw new Error('the log holds entries that are no rows')
  return rows
}
