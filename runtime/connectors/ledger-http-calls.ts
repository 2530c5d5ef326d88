// Calls to the ledger server until they are answered: every call is idempotent, so one without a clear answer is simply made again.

import { z } from 'zod'
import type { Environment } from '../base/environment.ts'
import { connectorError, messageOf } from './errors.ts'
import type { HttpAnswer, HttpExchange, HttpRequest } from './ledger-http-contract.ts'

export interface LedgerCallsOptions {
  readonly exchange: HttpExchange
  readonly environment: Environment
  /** Without a slash at its end. */
  readonly url: string
  readonly book: string
  /** From a call's first try to its last. */
  readonly deadlineMs: number
}

export interface LedgerCall {
  readonly method: 'GET' | 'POST'
  /** Begins with a slash. */
  readonly path: string
  readonly query?: Readonly<Record<string, string | number>>
  readonly body?: string
}

/** One try. A server that reads its log again answers later. */
const TRY_MS = 10_000
const PAUSE_FIRST_MS = 50
const PAUSE_MAX_MS = 2_000

const refusal = z.object({ error: z.string() })

export class LedgerCalls {
  readonly #options: LedgerCallsOptions
  readonly #closed = new AbortController()

  constructor(options: LedgerCallsOptions) {
    this.#options = options
  }

  /**
   * Resolves with the body of a success. Throws MR-N30 without an answer in time or after `close`, MR-N12 for a transaction that the
   * ledger does not know, MR-N31 for what it refuses.
   */
  async call(call: LedgerCall): Promise<unknown> {
    const { environment, deadlineMs } = this.#options
    const { clock, random } = environment
    const endMs = clock.nowMs() + deadlineMs
    for (let pauseMs = PAUSE_FIRST_MS; ; pauseMs = Math.min(2 * pauseMs, PAUSE_MAX_MS)) {
      const answer = await this.#try(call, Math.min(TRY_MS, endMs - clock.nowMs()))
      if ('body' in answer) {
        const body = parsed(answer.body)
        if (answer.status === 200 && body !== undefined) return body
        if (answer.status >= 400 && answer.status < 500) throw this.#refused(call, answer, body)
      }
      const why = 'why' in answer ? answer.why : `it answers ${answer.status}: ${answer.body.slice(0, 200)}`
      // Jitter: all writers lost the same server at the same moment.
      const jittered = pauseMs * (0.5 + random.next() / 2)
      const isOver = this.#closed.signal.aborted || clock.nowMs() + jittered > endMs
      if (isOver) throw connectorError('MR-N30', `${call.method} ${this.#urlOf(call)}, for ${deadlineMs} ms: ${why}.`)
      if (pauseMs === PAUSE_FIRST_MS)
        environment.log('warn', 'the ledger does not answer and is asked again', { url: this.#urlOf(call), why })
      await this.#pause(jittered)
    }
  }

  /** Gives up whatever has no answer yet. */
  close(): void {
    this.#closed.abort()
  }

  async #try(call: LedgerCall, withinMs: number): Promise<HttpAnswer | { readonly why: string }> {
    const { exchange, environment } = this.#options
    const { method, body = '' } = call
    const request: HttpRequest = { method, url: this.#urlOf(call), body }
    const given = new AbortController()
    const giveUp = (): void => given.abort()
    const late = new Promise<never>((_, reject) =>
      given.signal.addEventListener('abort', () => reject(new Error('late'))),
    )
    const timer = environment.clock.timer(Math.max(0, withinMs), giveUp)
    this.#closed.signal.addEventListener('abort', giveUp)
    try {
      if (this.#closed.signal.aborted) return { why: 'the sink was closed' }
      return await Promise.race([exchange(request, given.signal), late])
    } catch (error) {
      return { why: given.signal.aborted ? 'no answer' : messageOf(error) }
    } finally {
      timer.cancel()
      this.#closed.signal.removeEventListener('abort', giveUp)
    }
  }

  #pause(delayMs: number): Promise<void> {
    const { signal } = this.#closed
    return new Promise((resolve) => {
      const settle = (): void => {
        timer.cancel()
        signal.removeEventListener('abort', settle)
        resolve()
      }
      const timer = this.#options.environment.clock.timer(delayMs, settle)
      signal.addEventListener('abort', settle)
    })
  }

  #urlOf({ path, query = {} }: LedgerCall): string {
    const { url, book } = this.#options
    const words = Object.entries({ ...query, book }).map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    return `${url}${path}?${words.join('&')}`
  }

  #refused(call: LedgerCall, { status, body }: HttpAnswer, read: unknown): Error {
    const said = refusal.safeParse(read)
    const why = said.success ? said.data.error : `it answers ${status}: ${body.slice(0, 200)}`
    const isUnknown = z.object({ kind: z.literal('unknown') }).safeParse(read).success
    return connectorError(isUnknown ? 'MR-N12' : 'MR-N31', `${this.#options.url}${call.path}: ${why}.`)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
