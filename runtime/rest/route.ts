// One path of REST: what it takes and answers, for the server, which checks both, and for the OpenAPI document.

import { z } from 'zod'

export interface Answer {
  readonly status: number
  readonly body: unknown
}

export interface Route {
  readonly method: 'GET' | 'POST'
  /** As fastify writes it: `/v1/savepoints/:request`. */
  readonly path: string
  readonly summary: string
  readonly parameters: z.ZodObject
  readonly body: z.ZodObject
  /** By status; errors have their own shape. */
  readonly answers: Readonly<Record<number, z.ZodType>>
  /** Gets what the schemas made of the request. Throws MillraceError. */
  readonly handle: (request: { readonly parameters: unknown; readonly body: unknown }) => Promise<Answer> | Answer
}

const none = z.strictObject({})

export interface RouteWords<Parameters extends z.ZodObject, Body extends z.ZodObject> {
  readonly method: Route['method']
  readonly path: string
  readonly summary: string
  readonly parameters?: Parameters
  readonly body?: Body
  readonly answers: Route['answers']
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
    parameters: words.parameters ?? none,
    body: words.body ?? none,
    handle: (request) => words.handle(request as HandledRequest<Parameters, Body>),
  }
}
