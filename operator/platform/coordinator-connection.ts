// Calls to a coordinator by HTTPS: one connection for the few calls of a look, and none kept between looks.

import { Agent, request as httpsRequest } from 'node:https'
import type { IncomingMessage } from 'node:http'
import type { CoordinatorDial } from '../coordinator-client.ts'
import { bodyOf } from './body.ts'

/** A job with thousands of subtasks has no larger ones. */
const answerBytesMax = 16 * 1024 * 1024

/** `at`: instead of the Service's address, all coordinators are met there; certificates are checked for the Service's name all the same. */
export function dialCoordinators(at?: { readonly host: string; readonly port: number }): CoordinatorDial {
  return ({ host, port, token, authority }, deadlineMs) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 2, ca: authority, servername: host })
    return {
      call: (method, path, body) => {
        const content = body === undefined ? undefined : JSON.stringify(body)
        return new Promise((resolve, reject) => {
          const call = httpsRequest(
            {
              agent,
              method,
              path,
              hostname: at?.host ?? host,
              port: at?.port ?? port,
              servername: host,
              signal: AbortSignal.timeout(deadlineMs),
              headers: {
                host: `${host}:${port}`,
                authorization: `Bearer ${token}`,
                ...(content !== undefined && {
                  'content-type': 'application/json',
                  'content-length': Buffer.byteLength(content),
                }),
              },
            },
            (response) => void read(response).then(resolve, (error: unknown) => reject(failureOf(error, host))),
          )
          call.on('error', (error) => reject(failureOf(error, host)))
          call.end(content)
        })
      },
      close: () => agent.destroy(),
    }
  }
}

async function read(response: IncomingMessage): Promise<{ readonly status: number; readonly body: unknown }> {
  const text = await bodyOf(response, answerBytesMax)
  try {
    return { status: response.statusCode ?? 0, body: JSON.parse(text) as unknown }
  } catch {
    return { status: response.statusCode ?? 0, body: text }
  }
}

/** Ends up in conditions: the same cause in the same words. */
function failureOf(error: unknown, host: string): Error {
  const { code, name, message } = error as NodeJS.ErrnoException
  const why =
    name === 'AbortError' || name === 'TimeoutError'
      ? 'no answer in time'
      : code === 'ECONNREFUSED'
        ? 'nobody listens'
        : (code ?? message)
  return new Error(`${host}: ${why}`, { cause: error })
}
