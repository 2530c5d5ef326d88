// Calls the ledger server over HTTP; the edge at which real sockets are used.

import type { Agent, IncomingMessage, RequestOptions } from 'node:http'
import type { HttpExchange } from '../ledger-http-contract.ts'

/** Each writer has one call without answer at a time; committers and sweeps come on top. */
const SOCKETS_MAX = 64

/** Connections are kept for the next call. One that is idle does not keep the process alive. */
export function nodeHttpExchange(): HttpExchange {
  let agent: Agent | undefined
  return async ({ method, url, body }, signal) => {
    // Loaded at the first call: most jobs have no ledger, and their threads must start fast.
    const http = await import('node:http')
    agent ??= new http.Agent({ keepAlive: true, maxSockets: SOCKETS_MAX })
    const options: RequestOptions = {
      method,
      agent,
      signal,
      headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
    }
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      http.request(url, options).once('response', resolve).once('error', reject).end(body)
    })
    const pieces: Buffer[] = []
    for await (const piece of response) pieces.push(piece as Buffer)
    return { status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString() }
  }
}
