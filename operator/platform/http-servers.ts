// The operator's two servers: plain HTTP for probes and metrics, HTTPS for the API server's admission reviews.

import { createServer } from 'node:http'
import type { Server, ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Server as SecureServer } from 'node:https'
import { bodyOf } from './body.ts'

/** etcd takes no larger object. */
const bodyBytesMax = 3 * 1024 * 1024
const requestTimeoutMs = 10_000

export interface PlainAnswer {
  readonly status: number
  readonly body: string
  readonly contentType?: string
}

export interface RunningServer {
  readonly port: number
  close(): Promise<void>
}

/** By path; GET alone. Rejects when the port cannot be had. */
export async function serveHealth(
  port: number,
  paths: Readonly<Record<string, () => PlainAnswer | Promise<PlainAnswer>>>,
): Promise<RunningServer> {
  const server = createServer((request, response) => {
    const answer = paths[(request.url ?? '').split('?')[0]!]
    if (request.method !== 'GET' || answer === undefined) return send(response, { status: 404, body: 'not found\n' })
    return void Promise.resolve()
      .then(answer)
      .then(
        (answered) => send(response, answered),
        () => send(response, { status: 500, body: 'failed\n' }),
      )
  })
  return listening(server, port)
}

export interface WebhookServer extends RunningServer {
  /** PEM; for connections from now on. */
  use(certificate: { readonly cert: string; readonly key: string }): void
}

/** POST /validate. `review`: undefined: it is none. `failed` hears of what it throws: the API server may then let the object in. */
export async function serveWebhook(
  port: number,
  certificate: { readonly cert: string; readonly key: string },
  review: (body: unknown) => object | undefined,
  failed: (error: unknown) => void,
): Promise<WebhookServer> {
  const server = createSecureServer({ ...certificate }, (request, response) => {
    if (request.method !== 'POST' || (request.url ?? '').split('?')[0] !== '/validate')
      return send(response, { status: 404, body: 'not found\n' })
    return void bodyOf(request, bodyBytesMax).then(
      (text) => send(response, answerOf(text, review, failed)),
      () => send(response, { status: 413, body: 'too large\n' }),
    )
  })
  const running = await listening(server, port)
  return { ...running, use: (next) => server.setSecureContext(next) }
}

const noReview: PlainAnswer = { status: 400, body: 'it is no AdmissionReview\n' }

function answerOf(
  text: string,
  review: (body: unknown) => object | undefined,
  failed: (error: unknown) => void,
): PlainAnswer {
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    return noReview
  }
  try {
    const answer = review(body)
    return answer === undefined
      ? noReview
      : { status: 200, body: JSON.stringify(answer), contentType: 'application/json' }
  } catch (error) {
    failed(error)
    return { status: 500, body: 'the review failed; see the log of the operator\n' }
  }
}

function send(
  response: ServerResponse,
  { status, body, contentType = 'text/plain; charset=utf-8' }: PlainAnswer,
): void {
  response.writeHead(status, { 'content-type': contentType, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

async function listening(server: Server | SecureServer, port: number): Promise<RunningServer> {
  server.requestTimeout = requestTimeoutMs
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const address = server.address()
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
