// The operator on a real API server, with Kubernetes' own controllers and without nodes: a test says that pods run, and answers for coordinators.

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { customResourceDefinitions } from '../../crds/custom-resource-definitions.ts'
import { issueCertificate, newAuthority } from '../../operator/certificates.ts'
import { fastClock, OperatorWorld } from '../../operator/harness/operator-world.ts'
import { operatorScenarios, upgradeCutAfter } from '../../operator/harness/scenarios.ts'
import type { ScenarioWorld } from '../../operator/harness/scenarios.ts'
import { ApiClient } from '../../operator/kubernetes/client.ts'
import type { KubeClient } from '../../operator/kubernetes/contract.ts'
import { connectApi } from '../../operator/kubernetes/platform/https-connection.ts'
import { types } from '../../operator/kubernetes/types.ts'
import { serveWebhook } from '../../operator/platform/http-servers.ts'
import { review } from '../../operator/webhook/review.ts'
import { testConfig } from '../../operator/harness/operator-world.ts'
import { startApiServer } from '../servers/support/api-server.ts'
import type { ApiServer } from '../servers/support/api-server.ts'

let server: ApiServer
beforeAll(async () => {
  server = await startApiServer()
  for (const definition of customResourceDefinitions()) {
    const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
    expect((await server.request(path, { method: 'POST', body: definition })).status).toBe(201)
  }
  for (const kind of ['streamjobs', 'savepoints'])
    await vi.waitUntil(async () => (await server.request(`/apis/millrace.dev/v1alpha1/${kind}`)).status === 200, {
      timeout: 60_000,
      interval: 100,
    })
}, 1_500_000)
afterAll(() => server?.stop())

const worlds: OperatorWorld[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

const connect = (fieldManager: string): KubeClient =>
  new ApiClient({ connection: connectApi({ kubeconfig: server.kubeconfig }), fieldManager })

let namespaces = 0

async function newWorld(): Promise<ScenarioWorld> {
  const namespace = `world-${++namespaces}`
  const admin = connect('test')
  await admin.create(types.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } })
  // Pods are refused before the namespace has its account.
  await vi.waitUntil(() => admin.get(types.serviceAccount, { namespace, name: 'default' }), { timeout: 30_000 })
  const world = new OperatorWorld({
    client: admin,
    clock: fastClock(1),
    makesPods: false,
    namespace,
    deadlineMs: 60_000,
    config: { ...testConfig, namespaces: [namespace] },
  })
  worlds.push(world)
  return { world, client: () => connect('millrace-operator'), quietMs: 15_000 }
}

describe('the operator at a real API server', () => {
  operatorScenarios(newWorld, 200_000)

  it('a job is deleted in the foreground only while the webhook is away, and HEAD is closed all the same', async () => {
    const { world, client } = await newWorld()
    const { namespace } = world.options
    const authority = await newAuthority('webhook', Date.now())
    const issued = await issueCertificate(authority, { hosts: ['127.0.0.1'], nowMs: Date.now() })
    const webhook = await serveWebhook(
      0,
      { cert: issued.certificate, key: issued.key },
      (body) => review(body, { validate: () => ({ fits: false, problems: [] }), runningOf: () => undefined }),
      () => undefined,
    )
    const configurations = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations'
    const made = await server.request(configurations, {
      method: 'POST',
      body: {
        metadata: { name: 'deletion' },
        webhooks: [
          {
            name: 'deletion.millrace.dev',
            admissionReviewVersions: ['v1'],
            sideEffects: 'None',
            failurePolicy: 'Ignore',
            timeoutSeconds: 5,
            clientConfig: {
              url: `https://127.0.0.1:${webhook.port}/validate`,
              caBundle: Buffer.from(authority.certificate).toString('base64'),
            },
            rules: [
              {
                apiGroups: ['millrace.dev'],
                apiVersions: ['v1alpha1'],
                operations: ['DELETE'],
                resources: ['streamjobs'],
                scope: 'Namespaced',
              },
            ],
          },
        ],
      },
    })
    expect(made.status, made.text).toBe(201)
    try {
      await world.operate('first', { client: client() })
      const uid = await world.createJob('job')
      await world.until('it runs', () => world.isSettled('job'))
      const jobs = `/apis/millrace.dev/v1alpha1/namespaces/${namespace}/streamjobs`
      const deletion = (path: string, propagationPolicy: string) =>
        server.request(`${path}?propagationPolicy=${propagationPolicy}`, { method: 'DELETE' })
      const dryRun = '&dryRun=All'
      // A new webhook is asked within a second or so.
      await expect
        .poll(async () => (await deletion(`${jobs}/job`, `Foreground${dryRun}`)).text, { timeout: 20_000 })
        .toContain('--cascade=background')
      expect((await deletion(`${jobs}/job`, `Background${dryRun}`)).status).toBe(200)
      // As a namespace that goes does it, and each object by itself.
      expect((await deletion(jobs, `Background${dryRun}`)).status).toBe(200)
      await webhook.close()
      expect((await deletion(`${jobs}/job`, 'Foreground')).status).toBe(200)
      await world.until('it is gone', async () => (await world.job('job')) === undefined)
      expect(world.coordinators.heads.get(uid)!.end).toBe('cancelled')
      const { items } = await world.options.client.list(types.event, { namespace })
      const reasons = items.map(({ reason }) => reason)
      expect(reasons).toContain('ForegroundDeletion')
      expect(reasons).not.toContain('DeletionIncomplete')
    } finally {
      await server.request(`${configurations}/deletion`, { method: 'DELETE' })
    }
  }, 120_000)

  it('comes to the same end wherever in an upgrade it was killed (O4)', { timeout: 900_000 }, async () => {
    const whole = await upgradeCutAfter(await newWorld(), Number.POSITIVE_INFINITY)
    expect(whole.wasCut).toBe(false)
    expect(whole.writes).toBeGreaterThan(12)
    for (let after = 1; after <= whole.writes; after++) {
      const { wasCut } = await upgradeCutAfter(await newWorld(), after)
      for (const world of worlds.splice(0)) await world.close()
      // How often status is refreshed on the way depends on time: the last writes may not come.
      if (after <= 12) expect(wasCut, `cut after ${after}`).toBe(true)
    }
  })
})
