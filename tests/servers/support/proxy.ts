// A loopback TCP proxy between a client and a server, for tests of bad networks: it delays, cuts, swallows and resets.

import { connect, createServer } from 'node:net'
import type { AddressInfo, Server, Socket } from 'node:net'

export type Direction = 'toServer' | 'toClient'

/** What becomes of bytes of one direction. */
export type Weather =
  | { readonly kind: 'clear' }
  /** Passed on later, in order. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** Taken and passed on when the weather clears: a network that hangs. */
  | { readonly kind: 'hold' }
  /** Taken and never passed on: the connection is of no use any more. */
  | { readonly kind: 'drop' }

const clear: Weather = { kind: 'clear' }

export interface ProxyTarget {
  readonly port: number
  readonly host?: string
}

/** Listens at a free port of 127.0.0.1, or at `port`. */
export async function startProxy(target: ProxyTarget, port = 0): Promise<TcpProxy> {
  const proxy = new TcpProxy(target)
  await proxy.listen(port)
  return proxy
}

export class TcpProxy {
  /** Where new connections go. */
  target: ProxyTarget
  /** What is done with a new connection: passed on, refused with a reset, or accepted and never served. */
  accepts: 'yes' | 'reset' | 'silent' = 'yes'
  readonly #weather: Record<Direction, Weather> = { toServer: clear, toClient: clear }
  readonly #links = new Set<Link>()
  readonly #silent = new Set<Socket>()
  readonly #taken: Record<Direction, number> = { toServer: 0, toClient: 0 }
  readonly #server: Server
  #accepted = 0

  constructor(target: ProxyTarget) {
    this.target = target
    this.#server = createServer((client) => this.#accept(client))
  }

  async listen(port: number): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(port, '127.0.0.1', resolve)
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Connections that are open now. */
  get open(): number {
    return this.#links.size
  }

  /** Connections so far. */
  get accepted(): number {
    return this.#accepted
  }

  /** Bytes of `direction` that were taken and not passed on, over the open connections. */
  waiting(direction: Direction): number {
    return [...this.#links].reduce((sum, link) => sum + link.waiting(direction), 0)
  }

  /** Bytes of `direction` that came so far, over all connections. */
  taken(direction: Direction): number {
    return this.#taken[direction]
  }

  /** For all connections, open and new; both directions unless one is named. */
  weather(weather: Weather, direction?: Direction): void {
    for (const one of direction === undefined ? (['toServer', 'toClient'] as const) : [direction])
      this.#weather[one] = weather
    for (const link of this.#links) link.pump()
  }

  /** For the connections that are open now, until `clear`; new ones go by `weather`. */
  weatherOfOpen(weather: Weather, direction?: Direction): void {
    for (const link of this.#links) link.own(weather, direction)
  }

  clear(): void {
    this.accepts = 'yes'
    for (const link of this.#links) link.own(undefined)
    this.weather(clear)
  }

  /** Ends every open connection, politely (FIN) or with a reset (RST). */
  cut(how: 'end' | 'reset' = 'reset'): void {
    for (const link of this.#links) link.cut(how)
    for (const socket of this.#silent) socket.resetAndDestroy()
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise<void>((resolve) => this.#server.close(() => resolve()))
  }

  #accept(client: Socket): void {
    this.#accepted++
    if (this.accepts === 'reset') {
      client.resetAndDestroy()
      return
    }
    if (this.accepts === 'silent') {
      this.#silent.add(client)
      client.on('error', () => undefined)
      client.once('close', () => this.#silent.delete(client))
      client.resume()
      return
    }
    const server = connect({ port: this.target.port, host: this.target.host ?? '127.0.0.1' })
    const take = (direction: Direction, bytes: number): void => {
      this.#taken[direction] += bytes
    }
    const link = new Link({ client, server, take, weatherOf: (direction) => this.#weather[direction] })
    this.#links.add(link)
    void link.closed.then(() => this.#links.delete(link))
  }
}

interface Chunk {
  readonly bytes: Buffer
  readonly atMs: number
}

interface LinkOptions {
  readonly client: Socket
  readonly server: Socket
  readonly take: (direction: Direction, bytes: number) => void
  readonly weatherOf: (direction: Direction) => Weather
}

class Link {
  readonly closed: Promise<void>
  readonly #weatherOf: LinkOptions['weatherOf']
  readonly #take: LinkOptions['take']
  readonly #from: Record<Direction, Socket>
  readonly #to: Record<Direction, Socket>
  readonly #queue: Record<Direction, Chunk[]> = { toServer: [], toClient: [] }
  readonly #ended: Record<Direction, boolean> = { toServer: false, toClient: false }
  readonly #timers = new Set<NodeJS.Timeout>()
  readonly #own = new Map<Direction, Weather>()

  constructor({ client, server, take, weatherOf }: LinkOptions) {
    this.#weatherOf = weatherOf
    this.#take = take
    this.#from = { toServer: client, toClient: server }
    this.#to = { toServer: server, toClient: client }
    for (const direction of ['toServer', 'toClient'] as const) this.#listen(direction)
    const gone = (socket: Socket): Promise<void> =>
      new Promise((resolve) => {
        socket.on('error', () => this.cut('reset'))
        socket.once('close', () => resolve())
      })
    this.closed = Promise.all([gone(client), gone(server)]).then(() => {
      for (const timer of this.#timers) clearTimeout(timer)
    })
  }

  /** Its own weather, whatever that of the proxy. */
  own(weather: Weather | undefined, direction?: Direction): void {
    for (const one of direction === undefined ? (['toServer', 'toClient'] as const) : [direction]) {
      if (weather === undefined) this.#own.delete(one)
      else this.#own.set(one, weather)
    }
    this.pump()
  }

  waiting(direction: Direction): number {
    return this.#queue[direction].reduce((sum, { bytes }) => sum + bytes.length, 0)
  }

  cut(how: 'end' | 'reset'): void {
    for (const socket of Object.values(this.#from)) {
      if (how === 'end') socket.destroy()
      else if (!socket.destroyed) socket.resetAndDestroy()
    }
  }

  pump(): void {
    this.#pump('toServer')
    this.#pump('toClient')
  }

  #listen(direction: Direction): void {
    const from = this.#from[direction]
    from.setNoDelay(true)
    from.on('data', (bytes: Buffer) => {
      this.#queue[direction].push({ bytes, atMs: performance.now() })
      this.#pump(direction)
      this.#take(direction, bytes.length)
    })
    from.once('end', () => {
      this.#ended[direction] = true
      this.#pump(direction)
    })
    // A side that was destroyed without an end takes the other with it.
    from.once('close', () => {
      if (!this.#ended[direction]) this.#to[direction].destroy()
    })
  }

  #pump(direction: Direction): void {
    const queue = this.#queue[direction]
    const to = this.#to[direction]
    for (;;) {
      const weather = this.#own.get(direction) ?? this.#weatherOf(direction)
      if (weather.kind === 'hold') return
      if (weather.kind === 'drop') {
        queue.length = 0
        return
      }
      const next = queue[0]
      if (next === undefined) break
      const delayMs = weather.kind === 'delay' ? next.atMs + weather.ms - performance.now() : 0
      if (delayMs > 0) {
        this.#later(delayMs, direction)
        return
      }
      queue.shift()
      if (!to.destroyed) to.write(next.bytes)
    }
    if (this.#ended[direction] && !to.destroyed) to.end()
  }

  #later(delayMs: number, direction: Direction): void {
    const timer = setTimeout(() => {
      this.#timers.delete(timer)
      this.#pump(direction)
    }, delayMs)
    this.#timers.add(timer)
  }
}
