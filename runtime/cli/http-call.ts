// One HTTP call, on a connection of its own: a kept one would be cut off in the middle of the next call when the process ends.

import { request as requestPlain } from 'node:http'
import type { IncomingMessage } from 'node:http'
import { request as requestSecure } from 'node:https'

export interface HttpCall {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly token: string
  /** Sent as JSON. */
  readonly body: object | undefined
  /** Of certificates that count, PEM; undefined: those that Node knows. */
  readonly ca: string | undefined
  /** From the call to the last byte of the answer. */
  readonly deadlineMs: number
}

export type HttpAnswer =
  /** JSON, or the text where it is none. */
  | { readonly kind: 'answer'; readonly status: number; readonly body: unknown }
  /** Nobody listens. */
  | { readonly kind: 'nobody'; readonly why: string; readonly mayPass: true }
  /**
   * Whether anybody is there, and did it, is unknown. `mayPass`: another try may go better; false: whoever is there is not trusted or speaks
   * another language.
   */
  | { readonly kind: 'silent'; readonly why: string; readonly mayPass: boolean }

/** An answer of a job with thousands of subtasks has a few MB. */
const answerBytesMax = 64 * 1024 * 1024

/** Of a process that is just not there, or a network that does not reach it now. */
const passing: ReadonlySet<string | undefined> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/** Never rejects. */
export function callHttp({ method, url, token, body, ca, deadlineMs }: HttpCall): Promise<HttpAnswer> {
  const content = body === undefined ? undefined : JSON.stringify(body)
  return new Promise((resolve) => {
    const silent = (error: unknown): void => resolve(failureOf(error))
    const request = url.startsWith('https:') ? requestSecure : requestPlain
    const call = request(
      url,
      {
        method,
        agent: false,
        ...(ca !== undefined && { ca }),
        headers: {
          authorization: `Bearer ${token}`,
          ...(content !== undefined && {
            'content-type': 'application/json',
            'content-length': Buffer.byteLength(content),
          }),
        },
        signal: AbortSignal.timeout(deadlineMs),
      },
      (response) => void readAnswer(response).then(resolve, silent),
    )
    call.on('error', silent)
    call.end(content)
  })
}

async function readAnswer(response: IncomingMessage): Promise<HttpAnswer> {
  const chunks: Uint8Array[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > answerBytesMax) throw new Error(`an answer of more than ${answerBytesMax} bytes`)
    chunks.push(chunk)
  }
  return { kind: 'answer', status: response.statusCode ?? 0, body: jsonOf(Buffer.concat(chunks).toString('utf8')) }
}

function failureOf(error: unknown): HttpAnswer {
  const { code, name, message } = error as NodeJS.ErrnoException
  if (code === 'ECONNREFUSED') return { kind: 'nobody', why: code, mayPass: true }
  if (name === 'AbortError' || name === 'TimeoutError')
    return { kind: 'silent', why: 'no answer in time', mayPass: true }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID')
    return { kind: 'silent', why: `${otherNames(error as OtherNamesError)} (${code})`, mayPass: false }
  return { kind: 'silent', why: code ?? message, mayPass: passing.has(code) }
}

/** As Node makes it: what was dialled, and the certificate that was shown. */
interface OtherNamesError {
  readonly host: string
  readonly cert: { readonly subjectaltname?: string }
}

function otherNames({ host, cert }: OtherNamesError): string {
  const names = (cert.subjectaltname ?? '').split(', ').map((name) => name.replace(/^(DNS|IP Address):/, ''))
  return `its certificate is not for ${host}, only for ${names.join(', ')}`
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
