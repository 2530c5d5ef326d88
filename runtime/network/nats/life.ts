// One life of a connection: from a successful attempt until it ends. It never reconnects; connection.ts begins another one.
//
// What the client does not do and so is done here: it gives no backpressure, so what the server has not yet seen is counted by
// pings among the messages (the server answers in order) and bounded; and a stale connection is given up by closing it, for the
// client's own way waits for the socket to take an empty write, which a frozen server's full socket never does.

import type { NatsConnection } from '@nats-io/transport-node'
import type { Clock, Timer } from '../../base/environment.ts'
import type { MillraceError } from '../../base/errors.ts'
import { networkError } from '../errors.ts'
import { isAuthenticationEnd, refusesOwn, serverError } from './failures.ts'
import { OUTSTANDING_BYTES_MAX, PROBE_BYTES, REFUSED_SUBJECTS_MAX, SILENT_LOOKS_MAX } from './limits.ts'

export interface LifeOptions {
  readonly client: NatsConnection
  readonly clock: Clock
  readonly lookMs: number
  /** Subjects that the job's credentials must allow. */
  readonly allowed: readonly string[]
  /** Once. `reason` completes "The connection to NATS was lost: …". */
  readonly onEnd: (reason: string) => void
  /** Once for each subject and each kind of error. */
  readonly onError: (error: MillraceError) => void
  /** The server has seen more of what was sent. */
  readonly onRoom: () => void
}

export class Life {
  readonly #options: LifeOptions
  readonly #client: NatsConnection
  readonly #told = new Set<string>()
  #ended = false
  #closing: Promise<void> | undefined
  #timer: Timer | undefined
  #sentBytes = 0
  #probedBytes = 0
  #seenBytes = 0
  #waiting = 0
  #answers = 0
  #lastSign = { answers: 0, bytes: 0 }
  #silentLooks = 0

  constructor(options: LifeOptions) {
    this.#options = options
    this.#client = options.client
    void this.#watch()
    void this.#client.closed().then((error) => this.#end(error instanceof Error ? error.message : 'it was closed'))
    this.#look()
  }

  get maxPayload(): number {
    return this.#client.info?.max_payload ?? 0
  }

  /** Sent and not known to have reached the server. */
  get outstandingBytes(): number {
    return this.#sentBytes - this.#seenBytes
  }

  /** Whether it was sent. The client keeps `bytes` until the next turn: they must not change any more. */
  publish(subject: string, bytes: Uint8Array): boolean {
    if (this.#over || this.outstandingBytes + bytes.length > OUTSTANDING_BYTES_MAX) return false
    try {
      this.#client.publish(subject, bytes)
    } catch (error) {
      this.#refused(subject, error)
      return false
    }
    this.#sentBytes += bytes.length
    if (this.#sentBytes - this.#probedBytes >= PROBE_BYTES) void this.probe()
    return true
  }

  /** undefined: it is over, which onEnd is about to say. */
  subscribe(subject: string, onMessage: (bytes: Uint8Array) => void): { close(): void } | undefined {
    if (this.#over) return undefined
    // A refusal comes as an error of the connection as well, which names the subject.
    const callback = (error: unknown, message: { readonly data: Uint8Array }): void => {
      if (error === null || error === undefined) onMessage(message.data)
    }
    const subscription = this.#client.subscribe(subject, { callback })
    return { close: () => subscription.unsubscribe() }
  }

  /** Resolves when the server has seen everything sent so far; stays pending when the life ends before. */
  probe(): Promise<void> {
    this.#probedBytes = this.#sentBytes
    const mark = this.#sentBytes
    this.#waiting++
    return new Promise((resolve) => {
      this.#client.flush().then(
        () => {
          this.#waiting--
          this.#answers++
          this.#seen(mark)
          resolve()
        },
        () => this.#end('the server or the network closed it'),
      )
    })
  }

  /** Ends it; what the socket has not yet taken is lost. */
  async close(): Promise<void> {
    this.#end('it was closed here')
    await this.#closing
  }

  /** The client may know before we are told. */
  get #over(): boolean {
    return this.#ended || this.#client.isClosed()
  }

  #seen(mark: number): void {
    if (mark <= this.#seenBytes || this.#ended) return
    this.#seenBytes = mark
    this.#options.onRoom()
  }

  /** Whatever arrived is a sign. A thread that was busy for long looks once, and not before it has read. */
  #look(): void {
    if (this.#ended) return
    const bytes = this.#client.stats().inBytes
    const silent = this.#waiting > 0 && this.#answers === this.#lastSign.answers && bytes === this.#lastSign.bytes
    this.#lastSign = { answers: this.#answers, bytes }
    this.#silentLooks = silent ? this.#silentLooks + 1 : 0
    if (this.#silentLooks >= SILENT_LOOKS_MAX) {
      this.#end(`the server was silent for ${SILENT_LOOKS_MAX * this.#options.lookMs} ms`)
      return
    }
    if (this.#waiting === 0) void this.probe()
    this.#timer = this.#options.clock.timer(this.#options.lookMs, () => this.#look())
  }

  async #watch(): Promise<void> {
    for await (const status of this.#client.status()) {
      if (status.type === 'disconnect') this.#end('the server or the network closed it')
      else if (status.type === 'error') this.#serverSays(status.error)
    }
  }

  #serverSays(error: Error): void {
    const { allowed } = this.#options
    if (isAuthenticationEnd(error)) return this.#end(`the server says ${error.message}`)
    this.#tell(error.message, serverError(error, allowed))
    // The next life has the credentials of then, which may be mended.
    if (refusesOwn(error, allowed)) this.#end('a subject of the job is refused')
  }

  /** The client itself refuses what is above the server's limit, which may have been lowered. */
  #refused(subject: string, error: unknown): void {
    const said = error instanceof Error ? error.message : String(error)
    this.#tell(`${subject} ${said}`, networkError('MR-W35', `A message to ${subject} was refused: ${said}.`, error))
  }

  #tell(what: string, error: MillraceError): void {
    if (this.#told.has(what) || this.#told.size >= REFUSED_SUBJECTS_MAX) return
    this.#told.add(what)
    this.#options.onError(error)
  }

  #end(reason: string): void {
    if (this.#ended) return
    this.#ended = true
    this.#timer?.cancel()
    this.#closing = this.#client.close().catch(() => undefined)
    this.#options.onEnd(reason)
  }
}
