// Install, upgrade and uninstall of the chart by Helm at a real API server without nodes: every object is taken, secrets are kept, definitions
// and jobs stay, and the operator's account may do what it must and nothing else.

import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { helmBinary } from '../../e2e/cluster/helm.ts'
import { startApiServer } from '../servers/support/api-server.ts'
import type { ApiServer } from '../servers/support/api-server.ts'

const chart = fileURLToPath(new URL('../../charts/millrace', import.meta.url))
const run = promisify(execFile)
const namespace = 'streams'
const jobs = '/apis/millrace.dev/v1alpha1/namespaces/analytics/streamjobs'

let server: ApiServer
let helm: string
beforeAll(async () => {
  helm = await helmBinary()
  server = await startApiServer({ controllers: ['serviceaccount-controller', 'namespace-controller'] })
  for (const name of [namespace, 'analytics', 'other']) {
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
    expect((await server.request('/api/v1/namespaces', { method: 'POST', body })).status).toBe(201)
  }
}, 900_000)
afterAll(() => server?.stop())

/** Hooks need nodes. */
async function runHelm(verb: string, ...words: string[]): Promise<string> {
  const { stdout } = await run(helm, [verb, ...words, '-n', namespace, '--kubeconfig', server.kubeconfig, '--no-hooks'])
  return stdout
}

async function read(path: string): Promise<unknown> {
  const answer = await server.request(path)
  return answer.status === 404 ? undefined : answer.json()
}

const s3Secret = `/api/v1/namespaces/${namespace}/secrets/millrace-s3`
const deployment = `/apis/apps/v1/namespaces/${namespace}/deployments/millrace-operator`
const definition = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/streamjobs.millrace.dev'

describe('the chart', () => {
  let credentials: unknown

  it('is installed whole', async () => {
    expect(await runHelm('install', 'millrace', chart)).toContain(
      'Millrace 0.1.0 looks after StreamJobs in all namespaces.',
    )
    for (const path of [s3Secret, deployment, definition]) expect(await read(path), path).toBeDefined()
    credentials = ((await read(s3Secret)) as { data: unknown }).data
    await expect.poll(async () => (await server.request(jobs)).status, { timeout: 30_000 }).toBe(200)
    const body = {
      apiVersion: 'millrace.dev/v1alpha1',
      kind: 'StreamJob',
      metadata: { name: 'flights' },
      spec: { program: { module: { path: '/opt/job/job.ts' } } },
    }
    expect((await server.request(jobs, { method: 'POST', body })).status).toBe(201)
  })

  it("keeps in an upgrade the credentials of its S3 server, and what the operator wrote into the webhook's configuration", async () => {
    const configuration = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/streams-millrace'
    const ca = Buffer.from(server.ca).toString('base64')
    const { webhooks } = (await read(configuration)) as { webhooks: { clientConfig: object }[] }
    // As the leader does.
    const written = await server.request(`${configuration}?fieldManager=millrace-operator`, {
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: {
        webhooks: webhooks.map((each) => ({ ...each, clientConfig: { ...each.clientConfig, caBundle: ca } })),
      },
    })
    expect(written.status, written.text).toBe(200)
    await runHelm('upgrade', 'millrace', chart, '--set', 'operator.replicas=2')
    expect(await read(deployment)).toMatchObject({ spec: { replicas: 2 } })
    expect(((await read(s3Secret)) as { data: unknown }).data).toEqual(credentials)
    expect(await read(configuration)).toMatchObject({
      webhooks: [{ clientConfig: { caBundle: ca } }, { clientConfig: { caBundle: ca } }],
    })
  })

  /** Whether the operator's account may, as the API server says. */
  async function may(
    verb: string,
    group: string,
    resource: string,
    where: string | undefined,
    name?: string,
  ): Promise<boolean> {
    const token = await server.accountToken(namespace, 'millrace-operator')
    const [plain, subresource] = resource.split('/')
    const answer = await server.request('/apis/authorization.k8s.io/v1/selfsubjectaccessreviews', {
      method: 'POST',
      token,
      body: {
        apiVersion: 'authorization.k8s.io/v1',
        kind: 'SelfSubjectAccessReview',
        spec: { resourceAttributes: { verb, group, resource: plain, subresource, namespace: where, name } },
      },
    })
    return (answer.json() as { status: { allowed: boolean } }).status.allowed
  }

  it('gives the operator what it needs everywhere, and nothing of what it does not', async () => {
    for (const [verb, group, resource] of [
      ['watch', 'millrace.dev', 'streamjobs'],
      ['update', 'millrace.dev', 'streamjobs/status'],
      ['create', 'apps', 'statefulsets'],
      ['delete', '', 'pods'],
      ['get', '', 'pods/log'],
      ['create', 'events.k8s.io', 'events'],
      ['get', '', 'namespaces'],
    ] as const)
      expect(await may(verb, group, resource, 'analytics'), `${verb} ${resource}`).toBe(true)
    expect(await may('list', '', 'nodes', undefined)).toBe(true)
    for (const [verb, group, resource] of [
      ['create', '', 'pods/exec'],
      ['create', '', 'serviceaccounts/token'],
      ['create', 'rbac.authorization.k8s.io', 'rolebindings'],
      ['delete', '', 'namespaces'],
      ['delete', '', 'persistentvolumeclaims'],
    ] as const)
      expect(await may(verb, group, resource, 'analytics'), `${verb} ${resource}`).toBe(false)
    expect(await may('patch', '', 'nodes', undefined)).toBe(false)
  })

  it('limited to namespaces, it may do nothing elsewhere', async () => {
    await runHelm('upgrade', 'millrace', chart, '--set', 'namespaces={analytics}')
    await expect.poll(() => may('list', '', 'nodes', undefined), { timeout: 30_000 }).toBe(false)
    expect(await may('create', 'apps', 'statefulsets', 'analytics')).toBe(true)
    expect(await may('get', '', 'namespaces', 'analytics', 'analytics')).toBe(true)
    expect(await may('create', 'apps', 'statefulsets', 'other')).toBe(false)
    expect(await may('get', '', 'secrets', 'other')).toBe(false)
    expect(await may('list', '', 'secrets', namespace)).toBe(false)
    expect(await may('get', '', 'secrets', namespace, 'millrace-nats-keys')).toBe(true)
    expect(await may('get', '', 'secrets', namespace, 'somebody-elses')).toBe(false)
    const patch = (name: string): Promise<boolean> =>
      may('patch', 'admissionregistration.k8s.io', 'validatingwebhookconfigurations', undefined, name)
    expect(await patch('streams-millrace')).toBe(true)
    expect(await patch('another')).toBe(false)
    const copy = (await read('/api/v1/namespaces/analytics/secrets/millrace-s3')) as { data: unknown }
    expect(copy.data).toEqual(credentials)
  })

  it('leaves definitions and jobs when it is uninstalled, and can be installed again', async () => {
    await runHelm('uninstall', 'millrace')
    expect(await read(deployment)).toBeUndefined()
    expect(await read(`${jobs}/flights`)).toMatchObject({ metadata: { name: 'flights' } })
    await runHelm('install', 'millrace', chart)
    expect(await read(`${jobs}/flights`)).toMatchObject({ metadata: { name: 'flights' } })
  })
})
