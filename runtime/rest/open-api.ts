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
    security: [{ token: [] }],
    paths,
    components: {
      securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
      schemas: { Error: schemaOf(errorAnswer) },
    },
  }
}

function operation({ summary, parameters, body, answers }: Route): Readonly<Record<string, unknown>> {
  const named = Object.entries(parameters.shape)
  return {
    summary,
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
        Object.entries(answers).map(([status, schema]) => [status, described('Done or accepted', schemaOf(schema))]),
      ),
      default: described('An error', { $ref: '#/components/schemas/Error' }),
    },
  }
}

function described(description: string, schema: unknown): Readonly<Record<string, unknown>> {
  return { description, content: json(schema) }
}

function json(schema: unknown): Readonly<Record<string, unknown>> {
  return { 'application/json': { schema } }
}

function schemaOf(schema: z.ZodType): unknown {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema)
  return rest
}
