// Asks a coordinator that may be away for a while, as when it is started again: asks once more until it answers or has been away for too
// long, and says on the terminal what is waited for.

import type { z } from 'zod'
import { job as jobResource } from '../rest/resources.ts'
import { commandError } from './errors.ts'
import type { JobClient, Told } from './job-client.ts'
import { nextLook } from './next-look.ts'
import { formatDuration } from './progress.ts'
import type { Terminal } from './terminal.ts'

export type Answer<T> = Extract<Told<T>, { readonly kind: 'told' | 'refused' }>
type Refused = Extract<Told<unknown>, { readonly kind: 'refused' }>
export type Heard<T> = Answer<T> | { readonly kind: 'away'; readonly why: string; readonly mayPass: boolean }

export interface RemoteClientOptions {
  readonly client: Pick<JobClient, 'tell'>
  readonly address: string
  /** How long it may be away. */
  readonly waitMs: number
  readonly terminal: Pick<Terminal, 'say'>
}

export class RemoteClient {
  readonly address: string
  readonly #options: RemoteClientOptions
  /** Since when nobody answers; undefined: the last call was answered. */
  #awaySinceMs: number | undefined
  #saysThatItWaits = false

  constructor(options: RemoteClientOptions) {
    this.#options = options
    this.address = options.address
  }

  /** One try. Throws MR-L37 where another one would meet the same, as with a certificate that is not trusted. */
  async once<Schema extends z.ZodType>(
    method: 'GET' | 'POST',
    path: string,
    schema: Schema,
    body?: object,
  ): Promise<Heard<z.output<Schema>>> {
    const triedMs = performance.now()
    const heard = heardOf(await this.#options.client.tell(method, path, schema, body))
    if (heard.kind === 'away') {
      if (!heard.mayPass) throw commandError('MR-L37', `${this.address}: ${heard.why}.`)
      this.#awaySinceMs ??= triedMs
    } else {
      this.#awaySinceMs = undefined
      if (this.#saysThatItWaits && !isForNow(heard)) {
        this.#options.terminal.say('It answers.')
        this.#saysThatItWaits = false
      }
    }
    return heard
  }

  /** Asks until it is answered. Throws MR-L37. */
  async tell<Schema extends z.ZodType>(
    method: 'GET' | 'POST',
    path: string,
    schema: Schema,
    body?: object,
  ): Promise<Answer<z.output<Schema>>> {
    const untilMs = performance.now() + this.#options.waitMs
    for (;;) {
      const heard = await this.once(method, path, schema, body)
      if (heard.kind === 'away') {
        if (this.isGone) throw this.gone(heard.why)
        await this.pauseAway(heard.why)
      } else {
        const isLate = performance.now() >= untilMs
        if (heard.kind === 'told' || isLate || !(await this.mayTakeItSoon(heard))) return heard
        await this.#pauseFor(`${heard.message} Asking again`, this.#options.waitMs)
      }
    }
  }

  /** Throws MR-L37, and MR-L33 when it refuses. */
  async get<Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>> {
    return valueOf(await this.tell('GET', path, schema))
  }

  /** As `get`. Asked for again when an answer was lost: the request has an id. */
  async post<Schema extends z.ZodType>(path: string, schema: Schema, body: object): Promise<z.output<Schema>> {
    return valueOf(await this.tell('POST', path, schema, body))
  }

  /** Whether it has been away for as long as it may. */
  get isGone(): boolean {
    return this.#awaySinceMs !== undefined && performance.now() - this.#awaySinceMs >= this.#options.waitMs
  }

  /** MR-L37. `more`: a sentence. */
  gone(why: string, more?: string): Error {
    const { waitMs } = this.#options
    const what = `${this.address} did not answer for ${formatDuration(waitMs)} (${why}).`
    return commandError('MR-L37', more === undefined ? what : `${what} ${more}`)
  }

  /** Before the next try. `forMs`: how long there will be others. */
  pauseAway(why: string, forMs: number = this.#options.waitMs): Promise<void> {
    return this.#pauseFor(`The coordinator at ${this.address} does not answer (${why}). Asking again`, forMs)
  }

  /** It refuses for now: one that has just come back takes a moment to begin. One whose job is over never will. */
  async mayTakeItSoon(refused: Refused): Promise<boolean> {
    if (!isForNow(refused)) return false
    const told = await this.#options.client.tell('GET', '/v1/job', jobResource)
    if (told.kind === 'refused') return false
    return told.kind !== 'told' || (told.value.state !== 'ended' && told.value.state !== 'ending')
  }

  async #pauseFor(what: string, forMs: number): Promise<void> {
    // Once: the tries are many.
    if (!this.#saysThatItWaits) this.#options.terminal.say(`${what} for up to ${formatDuration(forMs)}.`)
    this.#saysThatItWaits = true
    await nextLook()
  }
}

function heardOf<T>(told: Told<T>): Heard<T> {
  if (told.kind === 'told' || told.kind === 'refused') return told
  return { kind: 'away', why: told.why, mayPass: told.mayPass }
}

function isForNow(answer: Answer<unknown>): boolean {
  return answer.kind === 'refused' && answer.code === 'MR-H04'
}

function valueOf<T>(answer: Answer<T>): T {
  if (answer.kind === 'told') return answer.value
  throw commandError('MR-L33', answer.message)
}
