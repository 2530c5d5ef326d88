// Rule 24's sweep, sink by sink: a sink that answers late, or never, costs no other one its sweep, and itself only until it is asked anew.

import type { Environment } from '../base/environment.ts'
import { InvariantError } from '../base/errors.ts'
import type { Commits } from './commits.ts'
import type { Execution } from './execution.ts'

/** A clean-up waits so long for the sinks; what a sink answers later is still swept. */
export const sweepWaitMs = 150_000
/** Behind it a sink's call is taken to be lost, and the next sweep asks again: one that only takes long must not be asked twice at a time. */
export const sweepLostMs = 3_600_000

export interface SinkSweepsOptions {
  readonly environment: Environment
  readonly commits: Pick<Commits, 'sinks' | 'sweep'>
  readonly execution: Execution
  /** What must stay, as HEAD says it now; undefined: nothing may be swept. */
  readonly readKept: () => Promise<ReadonlySet<string> | undefined>
  readonly onBroken: (error: InvariantError) => void
}

export class SinkSweeps {
  readonly #options: SinkSweepsOptions
  /** By uid; also those that nobody waits for any more. */
  readonly #running = new Map<string, { readonly sinceMs: number }>()

  constructor(options: SinkSweepsOptions) {
    this.#options = options
  }

  /** All sinks at once. Never rejects. */
  async sweep(): Promise<void> {
    await Promise.all(this.#options.commits.sinks.map((uid) => this.#sweep(uid)))
  }

  async #sweep(uid: string): Promise<void> {
    const { clock, log } = this.#options.environment
    const running = this.#running.get(uid)
    const waitedMs = clock.nowMs() - (running?.sinceMs ?? 0)
    if (running !== undefined && waitedMs < sweepLostMs)
      return log('warn', 'a sweep of transactions was left out: its sink has not answered the one before', {
        uid,
        waitedMs,
      })
    const over = Promise.withResolvers<'over'>()
    const timer = clock.timer(sweepWaitMs, () => over.resolve('over'))
    const end = await Promise.race([this.#told(uid), over.promise])
    timer.cancel()
    if (end === 'over')
      log('warn', 'a sweep of transactions is waited for no longer: its sink does not answer', {
        uid,
        waitedMs: sweepWaitMs,
      })
  }

  /** Never rejects. */
  async #told(uid: string): Promise<void> {
    const { environment, commits, execution, readKept, onBroken } = this.#options
    const own = { sinceMs: environment.clock.nowMs() }
    this.#running.set(uid, own)
    const isNewest = (): boolean => this.#running.get(uid) === own
    const kept = async (): Promise<ReadonlySet<string> | undefined> => {
      const names = isNewest() ? await readKept() : undefined
      return isNewest() ? names : undefined
    }
    try {
      await commits.sweep(uid, kept, execution)
    } catch (error) {
      if (error instanceof InvariantError) return onBroken(error)
      environment.log('warn', 'sweeping transactions failed; the next completed checkpoint tries again', {
        uid,
        error: String(error),
      })
    } finally {
      if (isNewest()) this.#running.delete(uid)
    }
  }
}
