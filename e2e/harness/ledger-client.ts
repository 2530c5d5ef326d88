// How tests and scenarios speak to a ledger server, wherever it runs.

import type { LedgerRow } from './ledger-entry.ts'
import type { Hold, HeldReport } from './ledger-holds.ts'
import type { BookReport, LedgerQuestion } from './ledger-judge.ts'
import type { LedgerArrival } from './ledger-arrivals.ts'

export type { Hold, HeldCall, HeldReport } from './ledger-holds.ts'
export type { BookReport, LedgerQuestion, SplitReport } from './ledger-judge.ts'
export type { LedgerArrival, LedgerGap } from './ledger-arrivals.ts'

export interface LedgerReport extends BookReport {
  readonly book: string
  /** The ledger's clock, ms since the epoch. */
  readonly nowMs: number
  /** Numbers of transactions. */
  readonly committed: number
  readonly aborted: number
  readonly open: number
  readonly preCommitted: number
  /** Calls in this life of the server: of transactions that are not there, such as aborted ones, or that would lose or double entries. */
  readonly refused: number
}

export interface LedgerHealth {
  readonly nowMs: number
  readonly pid: number
  readonly books: readonly string[]
  readonly logBytes: number
}

type Question = LedgerQuestion & { readonly book?: string }

/** One call; a ledger that is read anew answers only afterwards. */
const callDeadlineMs = 30_000
const pollMs = 25

export class LedgerClient {
  readonly url: string

  constructor(url: string) {
    this.url = url.replace(/\/+$/, '')
  }

  async health(): Promise<LedgerHealth> {
    return this.#call<LedgerHealth>('GET', '/health', {})
  }

  /** The clock that stamps arrivals: the time of a kill, for `first` and `sinceMs`. */
  async nowMs(): Promise<number> {
    const { nowMs } = await this.health()
    return nowMs
  }

  async report(question: Question = {}): Promise<LedgerReport> {
    return this.#call<LedgerReport>('GET', '/report', { ...question })
  }

  /** Every visible entry in its order; of a small book. */
  async entries(book?: string): Promise<readonly LedgerRow[]> {
    const { entries } = await this.#call<{ entries: readonly LedgerRow[] }>('GET', '/entries', { book })
    return entries
  }

  /** The first record never seen before that came after `afterMs`; undefined: there is none yet. */
  async first(afterMs: number, book?: string): Promise<LedgerArrival | undefined> {
    const { first } = await this.#call<{ first?: LedgerArrival }>('GET', '/first', { afterMs, book })
    return first
  }

  /** Calls like this one wait from now on, until `release`. */
  async hold(hold: Hold): Promise<void> {
    await this.#call('POST', '/hold', {}, hold)
  }

  /** Lets go whatever is held, and holds nothing more. Returns how many calls waited. */
  async release(): Promise<number> {
    const { released } = await this.#call<{ released: number }>('POST', '/release', {})
    return released
  }

  async held(): Promise<readonly HeldReport[]> {
    const { held } = await this.#call<{ held: readonly HeldReport[] }>('GET', '/held', {})
    return held
  }

  async transactions(
    prefix = '',
    book?: string,
  ): Promise<readonly { readonly name: string; readonly state: string }[]> {
    type Listed = { readonly transactions: readonly { readonly name: string; readonly state: string }[] }
    const { transactions } = await this.#call<Listed>('GET', '/transactions', { prefix, book })
    return transactions
  }

  /** A job that asks for this mark finds it so many times: how a test makes it crash. */
  async mark(name: string, times = 1): Promise<void> {
    await this.#call('POST', '/marks', { name, times })
  }

  /** Resolves once the report fits; a server that does not answer meanwhile is asked again. Rejects at the deadline with the last answer. */
  async waitFor(
    what: string,
    fits: (report: LedgerReport) => boolean,
    { deadlineMs, ...question }: Question & { readonly deadlineMs: number },
  ): Promise<LedgerReport> {
    return until(what, deadlineMs, async () => {
      const report = await this.report(question)
      return fits(report) ? found(report) : notYet(report)
    })
  }

  /** Resolves with what is held once there are `count` such calls. */
  async waitForHeld(count: number, deadlineMs: number): Promise<readonly HeldReport[]> {
    return until(`${count} held calls`, deadlineMs, async () => {
      const held = await this.held()
      return held.length >= count ? found(held) : notYet(held)
    })
  }

  /** The first record never seen before that came after `afterMs`, as soon as it is there. */
  async waitForFirst(afterMs: number, deadlineMs: number, book?: string): Promise<LedgerArrival> {
    return until('a record never seen before', deadlineMs, async () => {
      const first = await this.first(afterMs, book)
      return first === undefined ? notYet('none') : found(first)
    })
  }

  async #call<T>(
    method: string,
    path: string,
    query: Readonly<Record<string, string | number | boolean | undefined>>,
    body?: unknown,
  ): Promise<T> {
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
    const response = await fetch(`${this.url}${path}?${search.toString()}`, {
      method,
      signal: AbortSignal.timeout(callDeadlineMs),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
    return JSON.parse(text) as T
  }
}

type Attempt<T> =
  | { readonly kind: 'found'; readonly value: T }
  /** What was seen instead. */
  | { readonly kind: 'not yet'; readonly seen: unknown }

const found = <T>(value: T): Attempt<T> => ({ kind: 'found', value })
const notYet = (seen: unknown): { readonly kind: 'not yet'; readonly seen: unknown } => ({ kind: 'not yet', seen })

async function until<T>(what: string, deadlineMs: number, ask: () => Promise<Attempt<T>>): Promise<T> {
  const endMs = performance.now() + deadlineMs
  for (;;) {
    let last: unknown
    try {
      const attempt = await ask()
      if (attempt.kind === 'found') return attempt.value
      last = JSON.stringify(attempt.seen)
    } catch (error) {
      last = String(error)
    }
    if (performance.now() > endMs)
      throw new Error(`no ${what} within ${deadlineMs} ms; the last answer: ${String(last)}`)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}
