// REST of one running job, on loopback: every request carries the token, every body and every answer is checked, everything is bounded.

import { createHash, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Environment } from '../base/environment.ts'
import { InvariantError, MillraceError } from '../base/errors.ts'
import { restError, statusOf } from './errors.ts'
import { openApiDocument } from './open-api.ts'
import { route } from './route.ts'
import type { Route } from './route.ts'
import { routesOf } from './routes.ts'
import type { ServedJob } from './routes.ts'

export interface RestOptions extends ServedJob {
  readonly token: string
  readonly log: Environment['log']
}

export interface Rest {
  /** Begins to listen on a free port of 127.0.0.1; gives the address, such as http://127.0.0.1:40123. */
  listen(): Promise<string>
  /** Cuts connections off. */
  close(): Promise<void>
}

const bodyBytesMax = 16 * 1024
const requestTimeoutMs = 30_000
const keepAliveTimeoutMs = 5_000
/** A few commands and a browser; more is a client that leaks. */
const connectionsMax = 64

export async function createRest(options: RestOptions): Promise<Rest> {
  // Loading it takes as long as starting a small job: only a job that runs pays for it.
  const { fastify } = await import('fastify')
  const app = fastify({
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: keepAliveTimeoutMs,
    forceCloseConnections: true,
    // A path that is none never comes to a route.
    frameworkErrors: (error, request, reply) => void answerError({ error, request, reply, log: options.log }),
  })
  app.server.maxConnections = connectionsMax
  app.server.unref()
  takeJson(app)
  const isToken = sameAs(options.token)
  app.addHook('onRequest', async (request, reply) => {
    if (isToken(bearerOf(request.headers.authorization))) return undefined
    void reply.header('www-authenticate', 'Bearer')
    throw restError('MR-H01', `${request.method} ${pathOf(request)}.`)
  })
  app.setErrorHandler((error, request, reply) => answerError({ error, request, reply, log: options.log }))
  app.setNotFoundHandler((request) => {
    throw restError('MR-H02', `${request.method} ${pathOf(request)}.`)
  })
  for (const each of withDocument(routesOf(options))) serve(app, each)
  return {
    listen: () => app.listen({ host: '127.0.0.1', port: 0 }),
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

function serve(app: FastifyInstance, { method, path, parameters, body, answers, handle }: Route): void {
  app.route({
    method,
    url: path,
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

function bearerOf(header: string | undefined): string {
  return /^Bearer +(\S+)$/i.exec(header ?? '')?.[1] ?? ''
}

/** In constant time: of hashes, which are as long as each other. */
function sameAs(token: string): (given: string) => boolean {
  const hash = (text: string): Uint8Array => createHash('sha256').update(text).digest()
  const expected = hash(token)
  return (given) => timingSafeEqual(hash(given), expected)
}
