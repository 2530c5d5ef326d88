// What the client and the server say when something fails, as errors that say what to do. Nothing in them is secret: addresses
// are shown without what stands before an @, and the client's messages name no credentials.

import { MillraceError } from '../../base/errors.ts'
import { networkError } from '../errors.ts'
import { PAYLOAD_BYTES_MIN } from './limits.ts'

/** Of a failed attempt: MR-W30, W31, W32, or the MillraceError that it is already. */
export function dialFailure(error: unknown, server: string): MillraceError {
  if (error instanceof MillraceError) return error
  const where = `At ${server}`
  const said = saidBy(error)
  if (/authorization violation|account authentication expired|user authentication (expired|revoked)/i.test(said))
    return networkError('MR-W31', `${where}: ${said}.`, error)
  if (isTlsFailure(error, said)) return networkError('MR-W32', `${where}: ${said}.`, error)
  return networkError('MR-W30', `${where}: ${said}.`, error)
}

export function payloadTooSmall(maxPayload: number, server: string): MillraceError {
  return networkError(
    'MR-W33',
    `${server} takes messages of up to ${maxPayload} bytes (max_payload); ${PAYLOAD_BYTES_MIN} are needed.`,
  )
}

/** A permission that the server refuses, or anything else that it says without being asked. `allowed`: what the job needs. */
export function serverError(error: Error, allowed: readonly string[]): MillraceError {
  const refused = refusalIn(error)
  if (refused === null) return networkError('MR-W35', `It says: ${error.message}.`, error)
  const what = refused[1]!.toLowerCase() === 'publish' ? 'Sending to' : 'Listening on'
  return networkError('MR-W34', `${what} ${refused[2]} is refused; the job needs ${allowed.join(' and ')}.`, error)
}

/** Whether it is a refusal of something that `allowed` names. */
export function refusesOwn(error: Error, allowed: readonly string[]): boolean {
  const subject = refusalIn(error)?.[2]
  return subject !== undefined && allowed.some((pattern) => subject.startsWith(pattern.replace(/>$/, '')))
}

const refusalIn = ({ message }: Error): RegExpExecArray | null =>
  /Permissions Violation for (Publish|Subscription) to "([^"]+)"/i.exec(message)

export function isAuthenticationEnd(error: Error): boolean {
  return /authentication (expired|revoked|timeout)|authorization violation/i.test(error.message)
}

/** An error's own words and its cause's. */
export function saidBy(error: unknown): string {
  if (!(error instanceof Error)) return typeof error === 'string' ? error : 'the connection was closed'
  const cause = error.cause instanceof Error ? error.cause.message : ''
  const message = error.message === '' ? error.name : error.message
  return cause === '' || message.includes(cause) ? message : `${message} (${cause})`
}

/** What Node's TLS and OpenSSL call their errors; and what the client says where only one side wants TLS. */
function isTlsFailure(error: unknown, said: string): boolean {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as { readonly code?: unknown }
    if (
      typeof code === 'string' &&
      /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|INVALID_CA|EPROTO)/.test(
        code,
      )
    )
      return true
  }
  return /'tls'|PEM routines|certificate/i.test(said)
}
