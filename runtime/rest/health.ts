// Whether the services that a job stands on answer.

import { within } from '../base/deadline.ts'
import type { Clock } from '../base/environment.ts'
import type { ServiceResource } from './operating-resources.ts'

/** How long a service may take to answer. */
export const pingDeadlineMs = 2_000
/** Characters: a client's error may hold a whole answer. */
const detailLengthMax = 500

/** Resolves if the service answers; rejects with what it said. Its message is shown: it must hold no secret. */
export type Ping = () => Promise<void>

class Late extends Error {}

/** What a ping rejects with that asked nobody yet. */
export class NotAsked extends Error {}

export class ServiceHealth {
  readonly #ping: Ping
  readonly #clock: Clock
  /** One at a time: a service that hangs would collect a call for each question. */
  #waiting: Promise<void> | undefined

  constructor(ping: Ping, clock: Clock) {
    this.#ping = ping
    this.#clock = clock
  }

  /** Never rejects. */
  async look(): Promise<ServiceResource> {
    this.#waiting ??= this.#ping().finally(() => {
      this.#waiting = undefined
    })
    try {
      await within(this.#clock, pingDeadlineMs, this.#waiting, () => new Late(`no answer within ${pingDeadlineMs} ms`))
      return { state: 'ok', detail: null }
    } catch (error) {
      const detail = (error instanceof Error ? error.message : String(error)).slice(0, detailLengthMax)
      return { state: error instanceof Late || error instanceof NotAsked ? 'unknown' : 'failed', detail }
    }
  }
}
