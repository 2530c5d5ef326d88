// The OpenAPI document, from the same schemas that check requests and answers.

import { z } from 'zod'
import { errorAnswer } from './resources.ts'
import type { Route } from './route.ts'

export function openApiDocument(routes: readonly Route[]): Readonly<Record<string, unknown>> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, '{$1}')
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: operation(route) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'A Millrace job', version: '1' },
    paths,
    components: {
      securitySchemes: {
        owner: {
          type: 'http',
          scheme: 'bearer',
          description: 'The token of whoever owns the job; it opens every path',
        },
        reader: { type: 'http', scheme: 'bearer', description: 'A token to look at the job; a local job has none' },
      },
      schemas: { Error: schemaOf(errorAnswer) },
    },
  }
}

function operation({
  summary,
  access,
  parameters,
  body,
  answers,
  contentType,
}: Route): Readonly<Record<string, unknown>> {
  const named = Object.entries(parameters.shape)
  return {
    summary,
    security: securityOf(access),
    ...(named.length > 0 && {
      parameters: named.map(([name, schema]) => ({
        name,
        in: 'path',
        required: true,
        schema: schemaOf(schema as z.ZodType),
      })),
    }),
    ...(Object.keys(body.shape).length > 0 && { requestBody: { content: json(schemaOf(body)) } }),
    responses: {
      ...Object.fromEntries(
        Object.entries(answers).map(([status, schema]) => [
          status,
          { description: 'Done or accepted', content: content(contentType, schemaOf(schema)) },
        ]),
      ),
      default: { description: 'An error', content: json({ $ref: '#/components/schemas/Error' }) },
    },
  }
}

function securityOf(access: Route['access']): readonly Readonly<Record<string, readonly string[]>>[] {
  if (access === 'open') return []
  return access === 'reader' ? [{ owner: [] }, { reader: [] }] : [{ owner: [] }]
}

/** Of a type of its own without what stands behind the `;`. */
function content(type: string | undefined, schema: unknown): Readonly<Record<string, unknown>> {
  return type === undefined ? json(schema) : { [type.split(';', 1)[0]!]: { schema } }
}

function json(schema: unknown): Readonly<Record<string, unknown>> {
  return { 'application/json': { schema } }
}

function schemaOf(schema: z.ZodType): unknown {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema)
  return rest
}
