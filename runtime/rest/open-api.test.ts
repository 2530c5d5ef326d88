import { afterEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { requestId, slotId } from '../base/ids.ts'
import { close } from '../storage/head.ts'
import { TestJob, checkpointRef } from './test-job.ts'
import { closeServed, readerToken, serve } from './harness.ts'
import type { Call } from './harness.ts'

afterEach(closeServed)

interface Operation {
  readonly security: readonly object[]
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >
}
type JsonSchema = Parameters<typeof z.fromJSONSchema>[0]
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: { readonly schemas: { readonly Error: JsonSchema } }
}

/** A job of which there is something to tell at every path. */
async function serveAll() {
  const job = new TestJob()
  const served = await serve({
    job,
    identified: true,
    tokens: { owner: 'a-token-of-some-length', reader: readerToken },
    readHead: async () => job.head,
    pings: { storage: async () => undefined, nats: () => Promise.reject(new Error('away')) },
  })
  const { history } = served
  history.observer.began?.(job.head, job.head.restoredFrom)
  history.observer.running?.()
  history.observer.restarting?.({ message: 'MR-O11 lost', inMs: 10, tasks: 2 })
  history.observer.checkpointFailed?.({
    id: checkpointRef(2).id,
    kind: 'checkpoint',
    reason: 'expired',
    detail: 'late',
  })
  job.head = { ...job.head, retained: [checkpointRef(1)] }
  const worker = {
    name: 'w1',
    address: 'h:1',
    slots: 1,
    running: [slotId('0#1.1')],
    state: 'registered',
    sinceMs: 1,
  } as const
  job.workers = { slotsNeeded: 2, slotsOffered: 1, workers: [worker], reportLost: (name) => name === 'w1' }
  return { ...served, job }
}

describe('the OpenAPI document', () => {
  it('has every path, with who may use it', async () => {
    const { call } = await serveAll()
    const { paths } = (await call('/v1/openapi.json')).body as unknown as Document
    const told = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, { security }]) => {
        const who = security.map((scheme) => Object.keys(scheme).join()).join(' or ')
        return `${method} ${path}: ${who === '' ? 'anybody' : who}`
      }),
    )
    expect(told).toEqual([
      'get /v1/job: owner or reader',
      'get /v1/graph: owner or reader',
      'get /v1/subtasks: owner or reader',
      'get /v1/checkpoints: owner or reader',
      'post /v1/checkpoints: owner or reader',
      'get /v1/checkpoints/{id}: owner or reader',
      'get /v1/exceptions: owner or reader',
      'get /v1/restarts: owner or reader',
      'get /v1/workers: owner or reader',
      'post /v1/savepoints: owner or reader',
      'get /v1/savepoints/{request}: owner or reader',
      'post /v1/stop: owner',
      'post /v1/rescale: owner',
      'get /v1/rescale/{request}: owner or reader',
      'post /v1/close: owner',
      'post /v1/cancel: owner',
      'post /v1/workers/{name}/lost: owner',
      'get /livez: anybody',
      'get /readyz: anybody',
      'get /v1/health: owner or reader',
      'get /metrics: owner or reader',
    ])
    expect(paths['/v1/stop']!['post']!.requestBody?.content['application/json']?.schema).toMatchObject({
      required: ['drain', 'start', 'request'],
      additionalProperties: false,
    })
  })

  it('is true: every answer of every path, errors too, has the form that it says', async () => {
    const { call, fetched, job } = await serveAll()
    const document = (await call('/v1/openapi.json')).body as unknown as Document
    const own = (request: string) => ({ start: 1, request })
    const heard = new Set<string>()
    const check = async (template: string, path: string, given: Call = {}): Promise<void> => {
      const response = await fetched(path, given)
      const method = given.method?.toLowerCase() ?? (given.body === undefined ? 'get' : 'post')
      const { responses } = document.paths[template]![method]!
      const type = response.headers.get('content-type')!.split(';', 1)[0]!
      const text = await response.text()
      const answer: unknown = type === 'application/json' ? JSON.parse(text) : text
      const said = responses[String(response.status)]?.content[type]?.schema
      const where = `${method} ${template} ${response.status}`
      if (response.status >= 400 && said === undefined) {
        expect(Object.keys(responses), where).toContain('default')
        expect(z.fromJSONSchema(document.components.schemas.Error).safeParse(answer).error, where).toBeUndefined()
      } else {
        expect(said, where).toBeDefined()
        expect(z.fromJSONSchema(said!).safeParse(answer).error, where).toBeUndefined()
      }
      heard.add(where)
    }
    const gets = [
      '/v1/job',
      '/v1/graph',
      '/v1/subtasks',
      '/v1/checkpoints',
      '/v1/exceptions',
      '/v1/restarts',
      '/v1/workers',
    ]
    for (const path of [...gets, '/livez', '/readyz', '/v1/health', '/metrics']) await check(path, path)
    for (const id of [1, 2, 9]) await check('/v1/checkpoints/{id}', `/v1/checkpoints/${id}`)
    await check('/v1/checkpoints', '/v1/checkpoints', { body: own('c') })
    await check('/v1/savepoints', '/v1/savepoints', { body: own('s') })
    await check('/v1/savepoints/{request}', '/v1/savepoints/s')
    job.complete(requestId('s'), 4)
    await check('/v1/savepoints', '/v1/savepoints', { body: own('s') })
    await check('/v1/savepoints/{request}', '/v1/savepoints/none')
    await check('/v1/stop', '/v1/stop', { body: { drain: true, ...own('t') } })
    await check('/v1/stop', '/v1/stop', { body: {} })
    await check('/v1/rescale', '/v1/rescale', { body: { parallelism: 2, ...own('r') } })
    await check('/v1/rescale/{request}', '/v1/rescale/r')
    await check('/v1/workers/{name}/lost', '/v1/workers/w1/lost', { body: { reason: 'gone', ...own('l') } })
    await check('/v1/cancel', '/v1/cancel', { body: own('x'), authorization: `Bearer ${readerToken}` })
    await check('/v1/cancel', '/v1/cancel', { body: own('x') })
    await check('/v1/close', '/v1/close', { body: own('y') })
    job.head = close(job.head)
    await check('/v1/close', '/v1/close', { body: own('y') })
    await check('/v1/stop', '/v1/stop', { body: { drain: true, ...own('late') } })
    await check('/v1/rescale', '/v1/rescale', { body: { parallelism: 2, ...own('late') } })
    await check('/v1/job', '/v1/job')
    const paths = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path}`),
    )
    expect(paths.filter((path) => ![...heard].some((where) => where.startsWith(`${path} 2`)))).toEqual([])
    expect([...heard].filter((where) => /\d+$/.exec(where)![0] >= '400')).toEqual([
      'get /v1/checkpoints/{id} 404',
      'get /v1/savepoints/{request} 404',
      'post /v1/stop 400',
      'post /v1/cancel 403',
    ])
  })
})
