// One path of REST: who may use it, what it takes and answers, for the server, which checks all of it, and for the OpenAPI document.

import { z } from 'zod'
import type { OwnerAction } from './access.ts'

export interface Answer {
  readonly status: number
  readonly body: unknown
}

export interface Route {
  readonly method: 'GET' | 'POST'
  /** As fastify writes it: `/v1/savepoints/:request`. */
  readonly path: string
  readonly summary: string
  /** open: without a token. reader: with any. Else what only the owner may do. */
  readonly access: 'open' | 'reader' | { readonly owner: OwnerAction }
  readonly parameters: z.ZodObject
  readonly body: z.ZodObject
  /** By status; errors have their own shape. */
  readonly answers: Readonly<Record<number, z.ZodType>>
  /** Of the answer, which is then a string as it stands; undefined: JSON. */
  readonly contentType: string | undefined
  /** Gets what the schemas made of the request. Throws MillraceError. */
  readonly handle: (request: { readonly parameters: unknown; readonly body: unknown }) => Promise<Answer> | Answer
}

const none = z.strictObject({})

export interface RouteWords<Parameters extends z.ZodObject, Body extends z.ZodObject> {
  readonly method: Route['method']
  readonly path: string
  readonly summary: string
  /** Default: reader. */
  readonly access?: Route['access']
  readonly parameters?: Parameters
  readonly body?: Body
  readonly answers: Route['answers']
  readonly contentType?: string
  readonly handle: (request: HandledRequest<Parameters, Body>) => Promise<Answer> | Answer
}

export interface HandledRequest<Parameters extends z.ZodObject, Body extends z.ZodObject> {
  readonly parameters: z.output<Parameters>
  readonly body: z.output<Body>
}

/** Ties the handler's types to the schemas. */
export function route<Parameters extends z.ZodObject = typeof none, Body extends z.ZodObject = typeof none>(
  words: RouteWords<Parameters, Body>,
): Route {
  return {
    ...words,
    access: words.access ?? 'reader',
    contentType: words.contentType,
    parameters: words.parameters ?? none,
    body: words.body ?? none,
    handle: (request) => words.handle(request as HandledRequest<Parameters, Body>),
  }
}

export function ok(body: unknown): Answer {
  return { status: 200, body }
}
