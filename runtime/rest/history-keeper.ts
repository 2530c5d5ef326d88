// Carries a job's history over the loss of its coordinator: objects `history/<incarnation>-<number>`, of which the newest readable one
// counts. Nothing depends on them: what fails is logged, and the job never waits for it.

import { within } from '../base/deadline.ts'
import type { Environment, Timer } from '../base/environment.ts'
import { InvariantError } from '../base/errors.ts'
import type { ObjectKey, ObjectStore } from '../storage/contract.ts'
import { historyKey } from '../storage/paths.ts'
import { encodeHistory } from './history-format.ts'
import type { JobHistory } from './job-history.ts'
import { readHistory } from './stored-history.ts'

/** Between two writes. */
export const writePauseMs = 10_000
/** How long the end of a process waits for its last write. */
export const lastWriteDeadlineMs = 5_000

export interface HistoryKeeperOptions {
  readonly history: JobHistory
  readonly store: ObjectStore
  readonly environment: Pick<Environment, 'clock' | 'log'>
  /** From the beginning of the job to the first write; a job that ends sooner writes nothing. */
  readonly firstWriteAfterMs: number
}

export class HistoryKeeper {
  readonly #options: HistoryKeeperOptions
  /** Objects that the next one takes the place of; undefined: what is there could not be listed yet. */
  #older: ObjectKey[] | undefined
  #number = 0
  #wroteMs: number | undefined
  #changed = false
  #closed = false
  #timer: Timer | undefined
  #loading: Promise<void> | undefined
  #writing: Promise<void> | undefined

  constructor(options: HistoryKeeperOptions) {
    this.#options = options
    options.history.onChange = () => this.#noteChange()
  }

  /** Puts what is stored before what is known; again by itself before the first write, if the store does not answer. Never rejects. */
  load(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined
    })
    return this.#loading
  }

  /** Writes what is new. Never rejects. */
  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    this.#timer?.cancel()
    const { clock } = this.#options.environment
    const last = async (): Promise<void> => {
      await this.#writing
      if (this.#changed && this.#isOldEnough()) await this.#write()
    }
    try {
      await within(clock, lastWriteDeadlineMs, last(), () => new Error(`no answer within ${lastWriteDeadlineMs} ms`))
    } catch (error) {
      this.#warn('the history of the job was not written at its end', error)
    }
  }

  #isOldEnough(): boolean {
    const { history, environment, firstWriteAfterMs } = this.#options
    if (history.beganMs === undefined) return false
    return this.#wroteMs !== undefined || environment.clock.nowMs() - history.beganMs >= firstWriteAfterMs
  }

  #noteChange(): void {
    this.#changed = true
    this.#schedule()
  }

  #schedule(): void {
    if (this.#closed || this.#timer !== undefined || this.#writing !== undefined) return
    const waitMs = this.#waitMs()
    if (waitMs === undefined) return
    this.#timer = this.#options.environment.clock.timer(waitMs, () => {
      this.#timer = undefined
      this.#writing = this.#write().finally(() => {
        this.#writing = undefined
        if (this.#changed) this.#schedule()
      })
    })
  }

  /** undefined: the job has not begun here, so that there is no name to write under. */
  #waitMs(): number | undefined {
    const { history, environment, firstWriteAfterMs } = this.#options
    if (history.beganMs === undefined) return undefined
    const dueMs = this.#wroteMs === undefined ? history.beganMs + firstWriteAfterMs : this.#wroteMs + writePauseMs
    return Math.max(0, dueMs - environment.clock.nowMs())
  }

  /** The older ones go when the newer one is there: at every moment one of them is. Never rejects. */
  async #write(): Promise<void> {
    const { history, store, environment } = this.#options
    this.#wroteMs = environment.clock.nowMs()
    try {
      if (this.#older === undefined) await this.load()
      // What is there is not known, and what is written now would take its place.
      if (this.#older === undefined) return
      this.#changed = false
      const key = historyKey(history.incarnation!, ++this.#number)
      const replaced = this.#older
      // Before it is tried: a write without an answer may still land.
      this.#older = [...replaced, key]
      if ((await store.create(key, encodeHistory(history.remembered))) === 'exists')
        throw new InvariantError(`${key} is there already`)
      await store.delete(replaced)
      this.#older = [key]
    } catch (error) {
      this.#changed = true
      this.#warn('the history of the job could not be written; tried again later', error)
    }
  }

  async #load(): Promise<void> {
    const { history, store } = this.#options
    if (this.#older !== undefined) return
    try {
      const onUnreadable = (error: unknown): void => this.#warn('an older one is looked for', error)
      const found = await readHistory({ store, onUnreadable })
      if (found === undefined)
        return this.#warn('the history of the job is being written by another process', undefined)
      this.#older = [...found.keys]
      if (found.remembered !== undefined) history.putBefore(found.remembered)
    } catch (error) {
      this.#warn('the history of the job could not be read; tried again later', error)
    }
  }

  #warn(what: string, error: unknown): void {
    const detail = error instanceof Error ? error.message : JSON.stringify(error)
    this.#options.environment.log('warn', what, error === undefined ? undefined : { error: detail })
  }
}
