// A connection to NATS that comes back for ever: one life after another, with the same subscriptions. While it is away nothing
// is kept: what is sent is dropped, for channels and links repeat what matters, and nothing stale floods a server that returns.

import type { Clock, Environment, Random } from '../../base/environment.ts'
import type { MillraceError } from '../../base/errors.ts'
import type { NatsConfig } from '../../distributed/contract.ts'
import { networkError } from '../errors.ts'
import { authenticationFor, readAuthentication } from './authentication.ts'
import type { Authentication, ReadSecret } from './authentication.ts'
import { dial } from './dial.ts'
import { dialFailure, payloadTooSmall, refusesOwn, saidBy, serverError } from './failures.ts'
import { Life } from './life.ts'
import type { LifeOptions } from './life.ts'
import {
  AWAY_LOG_MS,
  CLOSE_MS,
  DIAL_TIMEOUT_MS,
  PAYLOAD_BYTES_MIN,
  PING_DEADLINE_MS,
  RETRY_MS_MAX,
  RETRY_MS_MIN,
  WRITE_BYTES_MAX,
} from './limits.ts'

export interface ConnectionOptions {
  readonly config: NatsConfig
  readonly name: string
  readonly inboxPrefix: string
  /** Subjects that the job's credentials must allow. */
  readonly allowed: readonly string[]
  /** One of them, where that is tried out. */
  readonly trial: string
  readonly environment: Environment
  readonly log: Environment['log']
  readonly readSecret: ReadSecret
  readonly onError: (error: MillraceError) => void
  readonly connectDeadlineMs: number
  readonly lookMs: number
}

type Client = LifeOptions['client']

/** Not in the client's types; one that does not know it would only be slower. */
const undocumented: object = { pendingLimit: WRITE_BYTES_MAX }

interface Subscription {
  readonly subject: string
  readonly onMessage: (bytes: Uint8Array) => void
  /** In the present life. */
  live: { close(): void } | undefined
}

export class Connection {
  readonly #options: ConnectionOptions
  readonly #clock: Clock
  readonly #subscriptions = new Set<Subscription>()
  readonly #roomListeners = new Set<() => void>()
  /** Called at each beginning and end of a life, and at the close. */
  readonly #changes = new Set<() => void>()
  readonly #sleeps = new Set<() => void>()
  #life: Life | undefined
  #closed = false
  /** Why it is away, where a person must mend it. */
  #failure: MillraceError | undefined
  #dropped = 0
  #waitMs = RETRY_MS_MIN

  private constructor(options: ConnectionOptions) {
    this.#options = options
    this.#clock = options.environment.clock
  }

  /** Rejects with MR-W30 after the deadline, at once with MR-W31, W32, W33, W34 or W38. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const connection = new Connection(options)
    const untilMs = connection.#clock.nowMs() + options.connectDeadlineMs
    for (;;) {
      const failure = await connection.#attempt()
      if (failure === undefined) return connection
      if (failure.code !== 'MR-W30') throw failure
      if (connection.#clock.nowMs() >= untilMs) {
        const where = options.config.servers.join(', ')
        const detail = `No connection within ${options.connectDeadlineMs} ms at ${where}: ${saidBy(failure.cause)}.`
        throw networkError('MR-W30', detail, failure.cause)
      }
      await connection.#sleep(connection.#nextWaitMs())
    }
  }

  get connected(): boolean {
    return this.#life !== undefined
  }

  get maxPayload(): number {
    return this.#life?.maxPayload ?? PAYLOAD_BYTES_MIN
  }

  /** Sent and not known to have reached the server. */
  get outstandingBytes(): number {
    return this.#life?.outstandingBytes ?? 0
  }

  /** Messages dropped since the beginning, because the server was away or too much was outstanding. */
  get dropped(): number {
    return this.#dropped
  }

  /** Whether it was sent. `bytes` must not change any more. */
  publish(subject: string, bytes: Uint8Array): boolean {
    if (this.#life?.publish(subject, bytes) === true) return true
    this.#dropped++
    return false
  }

  subscribe(subject: string, onMessage: (bytes: Uint8Array) => void): { close(): void } {
    const subscription: Subscription = { subject, onMessage: this.#guarded(onMessage), live: undefined }
    this.#subscriptions.add(subscription)
    subscription.live = this.#life?.subscribe(subject, subscription.onMessage)
    return {
      close: () => {
        if (!this.#subscriptions.delete(subscription)) return
        if (this.#life !== undefined) subscription.live?.close()
      },
    }
  }

  /** Called whenever outstanding bytes became fewer, a life ended or began. */
  onRoom(callback: () => void): { close(): void } {
    this.#roomListeners.add(callback)
    return { close: () => this.#roomListeners.delete(callback) }
  }

  /** Rejects with MR-W30 when the server is away or does not answer. */
  async ping(): Promise<void> {
    const seen = this.#life?.probe()
    if (seen === undefined || !(await this.#inTime(seen, PING_DEADLINE_MS)))
      throw this.#failure ?? networkError('MR-W30', `It does not answer at ${this.#options.config.servers.join(', ')}.`)
  }

  /** Everything sent and subscribed so far is known to the server. Waits for one that is away; rejects with MR-W30 after the deadline. */
  async flush(): Promise<void> {
    const untilMs = this.#clock.nowMs() + this.#options.connectDeadlineMs
    while (!this.#closed && this.#clock.nowMs() < untilMs) {
      const leftMs = untilMs - this.#clock.nowMs()
      const life = this.#life
      if (life === undefined) await this.#inTime(undefined, leftMs)
      else if (await this.#inTime(life.probe(), leftMs)) return
    }
    const why = this.#closed ? 'The connection is closed.' : 'It did not come back in time.'
    throw networkError('MR-W30', why)
  }

  async close(): Promise<void> {
    if (this.#closed) return
    const life = this.#life
    if (life !== undefined) await this.#inTime(life.probe(), CLOSE_MS)
    this.#closed = true
    for (const wake of this.#sleeps) wake()
    this.#subscriptions.clear()
    this.#roomListeners.clear()
    await life?.close()
    this.#announce()
  }

  /** Each server once, in any order. Of several failures the one that a person must mend. */
  async #attempt(): Promise<MillraceError | undefined> {
    const { config, readSecret, environment } = this.#options
    let failure: MillraceError | undefined
    try {
      const authentication = await readAuthentication(config, readSecret)
      for (const server of shuffled(config.servers, environment.random)) {
        const failed = await this.#tryServer(server, authenticationFor(server, authentication))
        if (failed === undefined || this.#closed) return undefined
        if (failure === undefined || failure.code === 'MR-W30') failure = failed
      }
    } catch (error) {
      failure = dialFailure(error, config.servers.join(', '))
    }
    return failure
  }

  async #tryServer(server: string, authentication: Authentication): Promise<MillraceError | undefined> {
    let client: Client
    try {
      client = await dial({
        ...authentication,
        servers: [server],
        name: this.#options.name,
        inboxPrefix: this.#options.inboxPrefix,
        reconnect: false,
        timeout: DIAL_TIMEOUT_MS,
        // Our own look at the server comes long before.
        pingInterval: 10 * 60_000,
        ...undocumented,
      })
    } catch (error) {
      return dialFailure(error, server)
    }
    const maxPayload = client.info?.max_payload ?? 0
    if (this.#closed || maxPayload < PAYLOAD_BYTES_MIN) {
      await client.close()
      return payloadTooSmall(maxPayload, server)
    }
    const refused = await this.#tryOut(client, server)
    if (refused !== undefined || this.#closed) await client.close()
    else this.#begin(client)
    return refused
  }

  /** Whether the credentials allow the job's subjects. The server answers in order: what it refuses comes before the answer to a ping. */
  async #tryOut(client: Client, server: string): Promise<MillraceError | undefined> {
    const { trial, allowed } = this.#options
    let refused: MillraceError | undefined
    const listen = async (): Promise<void> => {
      for await (const status of client.status())
        if (status.type === 'error' && refusesOwn(status.error, allowed)) refused ??= serverError(status.error, allowed)
    }
    void listen()
    const subscription = client.subscribe(trial, { callback: () => undefined })
    client.publish(trial)
    // The client leaves a flush of an ended connection open for ever.
    const ended = client.closed().then(() => Promise.reject(new Error('the connection ended')))
    const answered = await this.#inTime(Promise.race([client.flush(), ended]), DIAL_TIMEOUT_MS)
    if (!answered) return networkError('MR-W30', `At ${server}: it took a connection and does not answer.`)
    // What the server said is told in a turn of its own.
    await new Promise<void>((resolve) => this.#clock.timer(0, resolve))
    subscription.unsubscribe()
    return refused
  }

  #begin(client: Client): void {
    const bornAtMs = this.#clock.nowMs()
    const life = new Life({
      client,
      clock: this.#clock,
      lookMs: this.#options.lookMs,
      allowed: this.#options.allowed,
      onError: this.#options.onError,
      onRoom: () => this.#tellRoom(),
      onEnd: (reason) => {
        if (this.#life !== life) return
        this.#life = undefined
        // A server that takes a connection only to end it is not asked at once again and again.
        if (this.#clock.nowMs() - bornAtMs > RETRY_MS_MAX) this.#waitMs = RETRY_MS_MIN
        this.#announce()
        if (!this.#closed) void this.#comeBack(reason)
      },
    })
    this.#life = life
    this.#failure = undefined
    for (const subscription of this.#subscriptions)
      subscription.live = life.subscribe(subscription.subject, subscription.onMessage)
    this.#announce()
  }

  async #comeBack(reason: string): Promise<void> {
    const { log, onError, name, config } = this.#options
    const sinceMs = this.#clock.nowMs()
    const droppedBefore = this.#dropped
    const servers = config.servers.join(', ')
    log('warn', `The connection to NATS was lost: ${reason}.`, { connection: name, servers })
    const told = new Set<string>()
    let logAtMs = sinceMs + AWAY_LOG_MS
    for (;;) {
      await this.#sleep(this.#nextWaitMs())
      if (this.#closed) return
      const failure = await this.#attempt()
      if (this.#closed) return
      const awayMs = Math.round(this.#clock.nowMs() - sinceMs)
      if (failure === undefined) {
        const dropped = this.#dropped - droppedBefore
        log('info', 'The connection to NATS is back.', { connection: name, servers, awayMs, dropped })
        return
      }
      // What only a person mends is told once in an outage; that a server is away is no error, however long.
      this.#failure = failure.code === 'MR-W30' ? undefined : failure
      if (failure.code !== 'MR-W30' && !told.has(failure.code)) {
        told.add(failure.code)
        onError(failure)
      }
      if (this.#clock.nowMs() < logAtMs) continue
      logAtMs = this.#clock.nowMs() + AWAY_LOG_MS
      log('warn', 'NATS is still away.', { connection: name, awayMs, error: failure.message })
    }
  }

  /** The client stops reading for good when a callback throws; thrown in a turn of its own it ends the thread, as it should. */
  #guarded(onMessage: (bytes: Uint8Array) => void): (bytes: Uint8Array) => void {
    return (bytes) => {
      try {
        onMessage(bytes)
      } catch (error) {
        this.#options.environment.executor.post(() => {
          throw error
        })
      }
    }
  }

  #announce(): void {
    for (const change of this.#changes) change()
    this.#changes.clear()
    this.#tellRoom()
  }

  #tellRoom(): void {
    for (const listener of this.#roomListeners) listener()
  }

  /** Doubles; between a half and the whole of it, for many connections lost at once must not come back at once. */
  #nextWaitMs(): number {
    const waitMs = this.#waitMs
    this.#waitMs = Math.min(RETRY_MS_MAX, waitMs * 2)
    return waitMs * (0.5 + this.#options.environment.random.next() / 2)
  }

  #sleep(delayMs: number): Promise<void> {
    if (this.#closed) return Promise.resolve()
    return new Promise((resolve) => {
      const wake = (): void => {
        timer.cancel()
        this.#sleeps.delete(wake)
        resolve()
      }
      const timer = this.#clock.timer(delayMs, wake)
      this.#sleeps.add(wake)
    })
  }

  /** Whether `what` happened within this life of the connection and in time; undefined: waits for the next change or the deadline. */
  #inTime(what: Promise<void> | undefined, deadlineMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (inTime: boolean): void => {
        timer.cancel()
        this.#changes.delete(over)
        resolve(inTime)
      }
      const over = (): void => settle(false)
      const timer = this.#clock.timer(deadlineMs, over)
      this.#changes.add(over)
      what?.then(() => settle(true), over)
    })
  }
}

function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  return items
    .map((item) => ({ item, order: random.next() }))
    .toSorted((left, right) => left.order - right.order)
    .map(({ item }) => item)
}
