// A call of the store: its tries, their deadlines and pauses, and how many go on at a time. HEAD's swaps have one try (rule 4).

import { pause } from '../../base/deadline.ts'
import type { Environment, Timer } from '../../base/environment.ts'
import type { MillraceError } from '../../base/errors.ts'
import { failureError, mayTryAgain, S3Failure, wantsFreshCredentials } from './failures.ts'
import type { FailureKind } from './failures.ts'
import { Permits } from './permits.ts'
import type { S3Requests, Try } from './requests.ts'

/** All tries of one call. Below the minute that readers of checkpoints wait, so that the error that says what it was is the one told. */
export const CALL_DEADLINE_MS = 55_000
/** One try, from asking to the last byte of the answer, besides the time for its bytes. */
export const TRY_DEADLINE_MS = 15_000
/** Bytes that a connection moves in a millisecond at least, 1 MiB a second; a try with more bytes has more time. */
export const BYTES_PER_MS = 1024 * 1.024
/** Full jitter: a pause is uniform between 0 and a bound that doubles from the first to the second. */
export const PAUSE_MS = { first: 100, most: 5_000 } as const
/** Taking credentials anew; a swap of HEAD does it besides its own time. */
const CREDENTIALS_DEADLINE_MS = 5_000
/** A store that does not do what it is asked for so long is named in the log, and then this often, while calls are repeated. */
export const AWAY_LOG_MS = 10_000
/** Requests under way at a time; more only share the same line. */
export const REQUESTS_MAX = 16
/** Deletions besides them: a store that throttles these holds up none that a checkpoint or a restore needs. */
export const DELETIONS_MAX = 4

export type CallEnvironment = Pick<Environment, 'clock' | 'random' | 'log'>

export type Ask<T> = (requests: S3Requests, once: Try) => Promise<T>

export interface CallOptions {
  /** That are sent, or asked for. */
  readonly bytes?: number
  /** Besides the time for `bytes`. */
  readonly deadlineMs?: number
  /** Kinds of failure that the caller takes as answers. */
  readonly expected?: readonly FailureKind[]
  readonly isDeletion?: boolean
}

export interface CallsOptions {
  readonly requests: S3Requests
  readonly environment: CallEnvironment
}

export class Calls {
  readonly #requests: S3Requests
  readonly #environment: CallEnvironment
  readonly #permits = new Permits(REQUESTS_MAX)
  readonly #deletionPermits = new Permits(DELETIONS_MAX)
  readonly #controllers = new Set<AbortController>()
  #closed = false
  #awayLoggedAtMs = Number.NEGATIVE_INFINITY
  /** Why credentials could not be renewed the last time. */
  #notRenewedFor: string | undefined

  constructor({ requests, environment }: CallsOptions) {
    this.#requests = requests
    this.#environment = environment
  }

  /** `doing` for errors. Throws a MillraceError, or an S3Failure of a kind in `expected`. */
  async call<T>(doing: string, ask: Ask<T>, options: CallOptions = {}): Promise<T> {
    const permits = options.isDeletion === true ? this.#deletionPermits : this.#permits
    await permits.take()
    try {
      return await this.#repeat(doing, ask, options)
    } finally {
      permits.give()
    }
  }

  /** One try, outside of the queue. Rejects with an S3Failure. */
  async once<T>(
    ask: Ask<T>,
    { bytes = 0, deadlineMs = TRY_DEADLINE_MS }: Pick<CallOptions, 'bytes' | 'deadlineMs'> = {},
  ): Promise<T> {
    if (this.#closed) throw closedFailure()
    const controller = new AbortController()
    this.#controllers.add(controller)
    let timer: Timer | undefined
    const atMs = this.#environment.clock.nowMs()
    let allowedMs = deadlineMs + bytes / BYTES_PER_MS
    const over = new Promise<never>((_resolve, reject) => {
      controller.signal.addEventListener('abort', () => {
        const late = new S3Failure('unclear', `no answer within ${Math.round(allowedMs)} ms`)
        reject(this.#closed ? closedFailure() : late)
      })
    })
    // Whoever waits for `ask` first hears nothing of this one.
    over.catch(() => undefined)
    const arm = (): void => {
      timer?.cancel()
      const leftMs = atMs + allowedMs - this.#environment.clock.nowMs()
      timer = this.#environment.clock.timer(leftMs, () => controller.abort())
    }
    arm()
    const once: Try = {
      signal: controller.signal,
      expect: (more) => {
        allowedMs += more / BYTES_PER_MS
        arm()
      },
    }
    const asked = ask(this.#requests, once)
    asked.catch(() => undefined)
    try {
      return await Promise.race([asked, over])
    } finally {
      timer?.cancel()
      this.#controllers.delete(controller)
      // Also after an answer: a store may refuse before it has read everything, and the rest must not be sent from a buffer that
      // is somebody else's by then. After this nothing of the caller's bytes is looked at.
      controller.abort()
    }
  }

  /** New credentials, as far as they can be had in time. Never rejects: the next request says what is wrong. */
  async refreshCredentials(): Promise<void> {
    try {
      await this.once((requests) => requests.refreshCredentials(), { deadlineMs: CREDENTIALS_DEADLINE_MS })
      this.#notRenewedFor = undefined
    } catch (error) {
      const reason = String(error)
      // Each try of each call asks for them: what has not changed is not said again.
      if (reason !== this.#notRenewedFor)
        this.#environment.log('warn', 'credentials for the store could not be renewed', { error: reason })
      this.#notRenewedFor = reason
    }
  }

  /** Calls under way fail, later ones too. */
  close(): void {
    this.#closed = true
    for (const controller of this.#controllers) controller.abort()
    this.#requests.close()
  }

  async #repeat<T>(
    doing: string,
    ask: Ask<T>,
    { bytes = 0, deadlineMs = CALL_DEADLINE_MS, expected = [] }: CallOptions,
  ): Promise<T> {
    const { clock, random } = this.#environment
    const sinceMs = clock.nowMs()
    const untilMs = sinceMs + deadlineMs + bytes / BYTES_PER_MS
    for (let tries = 1, boundMs: number = PAUSE_MS.first; ; tries++, boundMs = Math.min(boundMs * 2, PAUSE_MS.most)) {
      try {
        return await this.once(ask, { bytes, deadlineMs: Math.min(TRY_DEADLINE_MS, untilMs - clock.nowMs()) })
      } catch (error) {
        if (!(error instanceof S3Failure) || expected.includes(error.kind)) throw error
        const pauseMs = random.next() * boundMs
        if (this.#closed || !mayTryAgain(error, tries) || clock.nowMs() + pauseMs >= untilMs)
          throw failureError(doing, error, tries)
        this.#sayAway(failureError(doing, error, tries), sinceMs)
        if (wantsFreshCredentials(error)) await this.refreshCredentials()
        await pause(clock, pauseMs)
      }
    }
  }

  /** For all calls together: in an outage there are many. */
  #sayAway(error: MillraceError, sinceMs: number): void {
    const { clock, log } = this.#environment
    const nowMs = clock.nowMs()
    if (nowMs - Math.max(sinceMs, this.#awayLoggedAtMs) < AWAY_LOG_MS) return
    this.#awayLoggedAtMs = nowMs
    log('warn', 'the object store does not do what it is asked; trying again', { error: error.message })
  }
}

function closedFailure(): S3Failure {
  return new S3Failure('closed', 'the store was closed')
}
