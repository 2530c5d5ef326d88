// A proxy between a client and the API server that tells watches from other requests. Watches go through a TCP proxy of their own, with its
// weather; all else goes straight through, unless a test answers in the server's place. What was asked, and what came of it, is written down.

import { Agent, createServer, request as httpsRequest } from 'node:https'
import type { Server } from 'node:https'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { testAuthority } from '../../support/certificates.ts'
import type { TestCertificate } from '../../support/certificates.ts'
import type { ApiServer } from './api-server.ts'
import { startProxy } from './proxy.ts'
import type { TcpProxy } from './proxy.ts'

export interface ApiCall {
  readonly method: string
  /** Without its query. */
  readonly path: string
  readonly query: URLSearchParams
  readonly isWatch: boolean
  /** When it came, by this process's monotonic clock. */
  readonly atMs: number
  readonly body: string
  /** undefined: not answered yet, or never. */
  readonly status: number | undefined
  /** Of a write alone. */
  readonly answer: string
}

/** In the server's place. */
export type Instead =
  | { readonly kind: 'answer'; readonly status: number; readonly body: string; readonly retryAfterSeconds?: number }
  /** The request is taken and never answered: a black hole. `clear` resets its connection. */
  | { readonly kind: 'silence' }

type Upstream = Pick<ApiServer, 'port' | 'ca'>

/** Listens at a free port of 127.0.0.1. `times`: the client's time runs so many times as fast, and so do the ends that it sets to watches. */
export async function startApiProxy(server: Upstream, times: number): Promise<ApiProxy> {
  const authority = await testAuthority()
  const certificate = await authority.issue(['127.0.0.1'])
  const proxy = new ApiProxy({ server, ca: authority.ca, certificate, watches: await startProxy(server), times })
  await proxy.listen()
  return proxy
}

interface ApiProxyOptions {
  readonly server: Upstream
  readonly ca: string
  readonly certificate: TestCertificate
  readonly watches: TcpProxy
  readonly times: number
}

export class ApiProxy {
  /** PEM of the authority that signed its certificate. */
  readonly ca: string
  /** What all watches go through. */
  readonly watches: TcpProxy
  /** undefined: passed on. */
  instead: (call: ApiCall) => Instead | undefined = () => undefined
  readonly #calls: ApiCall[] = []
  readonly #silent = new Set<ServerResponse>()
  readonly #upstream: Upstream
  readonly #times: number
  readonly #server: Server
  readonly #requestAgent = new Agent({ keepAlive: true })
  /** Each has a connection of its own, which ends with it. */
  readonly #watchAgent = new Agent({ keepAlive: false })

  constructor({ server, ca, certificate, watches, times }: ApiProxyOptions) {
    this.#times = times
    this.ca = ca
    this.watches = watches
    this.#upstream = server
    this.#server = createServer(certificate, (request, response) => {
      this.#serve(request, response).catch(() => response.destroy())
    })
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#server.listen(0, '127.0.0.1', resolve)
    })
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** All so far, as they came. */
  get calls(): readonly ApiCall[] {
    return this.#calls
  }

  /** Whatever is not answered is cut, and all that comes later is passed on in good weather. */
  clear(): void {
    this.instead = () => undefined
    for (const response of this.#silent) response.destroy()
    this.watches.clear()
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    this.#server.closeAllConnections()
    this.#requestAgent.destroy()
    this.#watchAgent.destroy()
    await closed
    await this.watches.close()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url = '' } = request
    const { pathname, searchParams } = new URL(url, 'https://api')
    const call = {
      method,
      path: pathname,
      query: searchParams,
      isWatch: searchParams.has('watch'),
      atMs: performance.now(),
      body: await text(request),
      status: undefined as number | undefined,
      answer: '',
    }
    this.#calls.push(call)
    const instead = this.instead(call)
    if (instead?.kind === 'silence') {
      this.#silent.add(response)
      response.once('close', () => this.#silent.delete(response))
      return
    }
    if (instead !== undefined) {
      call.status = instead.status
      const { retryAfterSeconds } = instead
      response.writeHead(instead.status, {
        'content-type': 'application/json',
        ...(retryAfterSeconds !== undefined && { 'retry-after': String(retryAfterSeconds) }),
      })
      response.end(instead.body)
      return
    }
    const answer = await this.#ask(request, response, call)
    call.status = answer.statusCode!
    response.writeHead(call.status, answer.headers)
    if (method === 'GET') {
      response.flushHeaders()
      answer.once('error', () => response.destroy())
      answer.pipe(response)
    } else {
      call.answer = await text(answer)
      response.end(call.answer)
    }
  }

  /** Given up where the client gives up. */
  #ask(
    { method, url = '', headers }: IncomingMessage,
    response: ServerResponse,
    { isWatch, body }: ApiCall,
  ): Promise<IncomingMessage> {
    const asking = httpsRequest({
      host: '127.0.0.1',
      port: isWatch ? this.watches.port : this.#upstream.port,
      ca: this.#upstream.ca,
      agent: isWatch ? this.#watchAgent : this.#requestAgent,
      method,
      path: url.replace(/(?<=timeoutSeconds=)\d+/, (seconds) => String(Math.round(Number(seconds) / this.#times))),
      headers,
    })
    response.once('close', () => {
      if (!response.writableFinished) asking.destroy()
    })
    return new Promise((resolve, reject) => {
      asking.on('error', reject)
      asking.once('response', resolve)
      asking.end(body)
    })
  }
}
