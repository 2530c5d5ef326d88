import { run } from '../../e2e/cluster/run.ts'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startApiServer } from '../servers/support/api-server.ts'
import type { ApiServer } from '../servers/support/api-server.ts'
import { until } from '../servers/support/server-process.ts'

let server: ApiServer
beforeAll(async () => {
  const begunMs = performance.now()
  server = await startApiServer()
  console.log(`API server and controllers ready after ${Math.round(performance.now() - begunMs)} ms`)
}, 1_500_000)
afterAll(() => server?.stop())

const maps = '/api/v1/namespaces/default/configmaps'
const configMap = (name: string, more: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, ...more },
})

/** A kind whose rule only CEL can tell. */
const kind = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'rules.tests.millrace.dev' },
  spec: {
    group: 'tests.millrace.dev',
    scope: 'Namespaced',
    names: { plural: 'rules', singular: 'rule', kind: 'Rule' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: { least: { type: 'integer' }, most: { type: 'integer' } },
                'x-kubernetes-validations': [{ rule: 'self.least <= self.most', message: 'least is above most' }],
              },
            },
          },
        },
      },
    ],
  },
}

describe('the API server for tests', () => {
  it('checks objects by CEL', async () => {
    const made = await server.request('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      method: 'POST',
      body: kind,
    })
    expect(made.status).toBe(201)
    const rules = '/apis/tests.millrace.dev/v1/namespaces/default/rules'
    await until('the kind is served', async () => (await server.request(rules)).status === 200)
    const rule = (name: string, least: number): object => ({
      apiVersion: 'tests.millrace.dev/v1',
      kind: 'Rule',
      metadata: { name },
      spec: { least, most: 2 },
    })
    const bad = await server.request(rules, { method: 'POST', body: rule('bad', 3) })
    expect(bad).toMatchObject({ status: 422, text: expect.stringContaining('least is above most') as string })
    expect((await server.request(rules, { method: 'POST', body: rule('good', 1) })).status).toBe(201)
  })

  it('applies on the server: a field of another manager is a conflict', async () => {
    const apply = (manager: string, value: string) =>
      server.request(`${maps}/applied?fieldManager=${manager}`, {
        method: 'PATCH',
        contentType: 'application/apply-patch+yaml',
        body: { ...configMap('applied'), data: { key: value } },
      })
    expect((await apply('one', 'a')).status).toBe(201)
    expect((await apply('one', 'b')).status).toBe(200)
    expect((await apply('other', 'c')).status).toBe(409)
  })

  it('collects what its owner leaves', async () => {
    const made = await server.request(maps, { method: 'POST', body: configMap('owner') })
    const { uid } = (made.json() as { readonly metadata: { readonly uid: string } }).metadata
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }]
    await server.request(maps, { method: 'POST', body: configMap('owned', { ownerReferences }) })
    expect((await server.request(`${maps}/owned`)).status).toBe(200)
    await server.request(`${maps}/owner`, { method: 'DELETE' })
    await until('the owned object is gone', async () => (await server.request(`${maps}/owned`)).status === 404, 60_000)
  })

  it('lets an account do what its rights allow', async () => {
    const token = await server.accountToken('default', 'default')
    expect((await server.request(maps, { token })).status).toBe(403)
    expect((await server.request(maps, { token: 'nobody' })).status).toBe(401)
  })

  it('is reached by kubectl, and counts its requests', async () => {
    const { stdout } = await run(server.kubectl, ['--kubeconfig', server.kubeconfig, 'get', 'namespaces', '-o', 'name'])
    expect(stdout).toContain('namespace/default\n')
    expect(await server.metrics()).toMatch(/^apiserver_request_total\{.*resource="namespaces".*\} \d/m)
  })

  it('keeps what was written when it is killed, and has its address afterwards', async () => {
    const { url } = server
    await server.request(maps, { method: 'POST', body: configMap('kept') })
    await server.kill()
    await expect(server.request('/readyz')).rejects.toThrow('ECONNREFUSED')
    await server.restart()
    expect(server.url).toBe(url)
    expect((await server.request(`${maps}/kept`)).status).toBe(200)
  })
})
