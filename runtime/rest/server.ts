// REST of one running job: every request but the probes carries a token, every body and every answer is checked, everything is bounded.

import type { FastifyInstance, FastifyReply, FastifyRequest, FastifyServerOptions } from 'fastify'
import { z } from 'zod'
import type { Environment } from '../base/environment.ts'
import { InvariantError, MillraceError } from '../base/errors.ts'
import { AccessCheck, ownerNeeded } from './access.ts'
import type { KubernetesJob, Tokens } from './access.ts'
import { restError, statusOf } from './errors.ts'
import { openApiDocument } from './open-api.ts'
import { route } from './route.ts'
import type { Route } from './route.ts'
import { routesOf } from './routes.ts'
import type { ServedJob } from './served-job.ts'

interface ServerCertificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

export interface ListenOptions {
  /** 127.0.0.1 for this machine alone, 0.0.0.0 or :: for all. */
  readonly host: string
  /** 0: a free one. */
  readonly port: number
  /** Absent: plain HTTP, for loopback. */
  readonly tls?: ServerCertificate | undefined
}

export interface RestOptions extends ServedJob {
  readonly tokens: Tokens
  readonly listen: ListenOptions
  /** For whoever has the reader's token and wants what is the owner's; undefined: no operator owns the job. */
  readonly kubernetes?: KubernetesJob | undefined
  readonly log: Environment['log']
}

export interface Rest {
  /** Begins to listen; gives the address, such as http://127.0.0.1:40123. Rejects with MR-H10 when the host or the port cannot be had. */
  listen(): Promise<string>
  /** Over TLS: for connections from now on. Throws for what is no certificate. */
  renewCertificate(renewed: ServerCertificate): void
  /** Cuts connections off. */
  close(): Promise<void>
}

interface SecureServer {
  setSecureContext(certificate: ServerCertificate): void
}

const bodyBytesMax = 16 * 1024
const requestTimeoutMs = 30_000
const keepAliveTimeoutMs = 5_000
/** A few commands and a browser; more is a client that leaks. */
const connectionsMax = 64
/** Who connects and says nothing is cut off soon: such connections keep the probes of the cluster out, and a coordinator that does not answer these is killed. */
const silentMsMax = 5_000
const http = { headersTimeout: silentMsMax, connectionsCheckingInterval: 1_000 }

export async function createRest(options: RestOptions): Promise<Rest> {
  // Loading it takes as long as starting a small job: only a job that runs pays for it.
  const { fastify } = await import('fastify')
  const { tls, host, port } = options.listen
  const app: FastifyInstance = fastify({
    ...(tls === undefined
      ? { http }
      : { https: { ...http, cert: tls.cert, key: tls.key, handshakeTimeout: silentMsMax } }),
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: true,
    // A path that is none never comes to a route.
    frameworkErrors: (error, request, reply) => void answerError({ error, request, reply, log: options.log }),
  } as FastifyServerOptions)
  app.server.maxConnections = connectionsMax
  app.server.unref()
  takeJson(app)
  const check = new AccessCheck(options.tokens)
  app.addHook('onRequest', async (request, reply) => {
    // A path that is none has no access of its own: nobody finds out without a token what is there.
    const { access = 'reader' } = request.routeOptions.config as Partial<Pick<Route, 'access'>>
    if (access === 'open') return undefined
    const what = `${request.method} ${pathOf(request)}`
    const granted = check.granted(request.headers.authorization)
    if (granted === undefined) {
      void reply.header('www-authenticate', 'Bearer')
      throw restError('MR-H01', `${what}.`)
    }
    if (access !== 'reader' && granted !== 'owner') throw ownerNeeded(what, access.owner, options.kubernetes)
    return undefined
  })
  app.setErrorHandler((error, request, reply) => answerError({ error, request, reply, log: options.log }))
  app.setNotFoundHandler((request) => {
    throw restError('MR-H02', `${request.method} ${pathOf(request)}.`)
  })
  for (const each of withDocument(routesOf(options))) serve(app, each)
  return {
    listen: async () => {
      try {
        return await app.listen({ host, port })
      } catch (error) {
        throw restError('MR-H10', `${host}, port ${port}: ${(error as Error).message}.`, error)
      }
    },
    // Fastify's types know the server without TLS alone.
    renewCertificate: (renewed) => (app.server as Partial<SecureServer>).setSecureContext?.(renewed),
    close: () => app.close(),
  }
}

function withDocument(routes: readonly Route[]): readonly Route[] {
  const document = openApiDocument(routes)
  return [
    ...routes,
    route({
      method: 'GET',
      path: '/v1/openapi.json',
      summary: 'This document',
      answers: { 200: z.record(z.string(), z.unknown()) },
      handle: () => ({ status: 200, body: document }),
    }),
  ]
}

/** A POST without a body is one with an empty object; any other type than JSON is refused by fastify (415). */
function takeJson(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, text, done) => {
    if (text === '') return done(null, {})
    try {
      return done(null, JSON.parse(String(text)))
    } catch (cause) {
      return done(restError('MR-H03', `Its body is no JSON: ${(cause as Error).message}.`, cause))
    }
  })
}

function serve(app: FastifyInstance, served: Route): void {
  const { method, path, access, parameters, body, answers, contentType, handle } = served
  app.route({
    method,
    url: path,
    config: { access },
    handler: async (request, reply) => {
      const { status, body: answer } = await handle({
        parameters: checked('path', parameters, request.params),
        body: checked('body', body, request.body ?? {}),
      })
      const schema = answers[status]
      if (schema === undefined) throw new InvariantError(`${method} ${path} answers ${status}`)
      const fits = schema.safeParse(answer)
      if (!fits.success)
        throw new InvariantError(`${method} ${path} answers what it does not say: ${fits.error.message}`)
      if (contentType !== undefined) void reply.type(contentType)
      return reply.code(status).send(fits.data)
    },
  })
}

function checked(what: string, schema: z.ZodType, value: unknown): unknown {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const problems = read.error.issues.map(({ path, message }) => `${[what, ...path].join('.')}: ${message}`)
  throw restError('MR-H03', `${problems.join('; ')}.`)
}

function answerError({
  error,
  request,
  reply,
  log,
}: {
  readonly error: unknown
  readonly request: FastifyRequest
  readonly reply: FastifyReply
  readonly log: Environment['log']
}): FastifyReply {
  const known = error instanceof MillraceError ? error : translated(error, request)
  const status = error instanceof MillraceError ? statusOf(error.code) : (clientStatus(error) ?? 500)
  if (status === 500) log('warn', 'a REST request failed', { path: pathOf(request), error: String(error) })
  return reply.code(status).send({ code: known.code, message: known.message })
}

/** What fastify refuses itself: too large, another type, a broken path. */
function translated(error: unknown, request: FastifyRequest): MillraceError {
  const detail = `${request.method} ${pathOf(request)}: ${error instanceof Error ? error.message : String(error)}.`
  return restError(clientStatus(error) === undefined ? 'MR-H06' : 'MR-H03', detail, error)
}

function clientStatus(error: unknown): number | undefined {
  const { statusCode } = error as { readonly statusCode?: number }
  return statusCode !== undefined && statusCode >= 400 && statusCode < 500 ? statusCode : undefined
}

/** Without its query, which may hold anything. */
function pathOf({ url }: FastifyRequest): string {
  return url.split('?', 1)[0]!
}
