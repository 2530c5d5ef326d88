// The operator on a real API server, with Kubernetes' own controllers and without nodes: a test says that pods run, and answers for coordinators.

import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { customResourceDefinitions } from '../../crds/custom-resource-definitions.ts'
import { issueCertificate, newAuthority } from '../../operator/certificates.ts'
import { fastClock, OperatorWorld } from '../../operator/harness/operator-world.ts'
import { operatorScenarios, upgradeCutAfter } from '../../operator/harness/scenarios.ts'
import type { ScenarioWorld } from '../../operator/harness/scenarios.ts'
import { ApiClient } from '../../operator/kubernetes/client.ts'
import type { KubeClient, KubeObject } from '../../operator/kubernetes/contract.ts'
import { connectApi } from '../../operator/kubernetes/platform/https-connection.ts'
import { types } from '../../operator/kubernetes/types.ts'
import { workerName } from '../../operator/resources/names.ts'
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

  it('replaces a set with fields that cannot be changed, and then runs as before (O10)', async () => {
    const { world, client } = await newWorld()
    const { namespace, client: admin } = world.options
    const first = await world.operate('first', { client: client() })
    const uid = await world.createJob('job', { parallelism: 2 })
    await world.until('it runs', () => world.isSettled('job'))
    await first.stop()
    const at = { namespace, name: workerName({ name: 'job', uid }) }
    // As by hand, or by a builder of another version: by the operator's own field manager, so that what the rendering lacks is to go.
    const otherwise = async (spec: object): Promise<string> => {
      const made = (await admin.get(types.statefulSet, at))!
      await admin.delete(types.statefulSet, at, { precondition: { uid: made.metadata.uid! } })
      await world.until('the set is gone', async () => (await admin.get(types.statefulSet, at)) === undefined)
      const { labels, annotations, ownerReferences } = made.metadata as Required<KubeObject['metadata']>
      const other = await client().apply(
        types.statefulSet,
        {
          apiVersion: made.apiVersion,
          kind: made.kind,
          metadata: { ...at, labels, annotations: annotations ?? {}, ownerReferences },
          spec: { ...(made['spec'] as object), ...spec },
        },
        { force: true },
      )
      return other.metadata.uid!
    }
    const replaced = async (other: string): Promise<boolean> => {
      const set = await admin.get(types.statefulSet, at)
      const { podManagementPolicy, volumeClaimTemplates } = (set?.['spec'] ?? {}) as Readonly<Record<string, unknown>>
      const isOurs = podManagementPolicy === 'Parallel' && volumeClaimTemplates === undefined
      return set !== undefined && set.metadata.uid !== other && isOurs && world.isSettled('job')
    }
    // More than one of the same object, if its version moves on before it is deleted.
    const refusals = () =>
      world.lines.filter(({ message }) => message === 'an object cannot be changed and is replaced')

    const byHand = await otherwise({ podManagementPolicy: 'OrderedReady' })
    const second = await world.operate('second', { client: client() })
    await world.until('the set is replaced', () => replaced(byHand))
    expect(new Set(refusals().map(({ fields }) => (fields as { readonly object: string }).object))).toEqual(
      new Set([`StatefulSet/${at.name}`]),
    )
    expect(refusals()[0]!.fields).toMatchObject({ error: expect.stringContaining('422') })
    expect(await world.status('job')).toMatchObject({ start: 1, workers: 2 })
    await second.stop()

    // What nobody compares, a field that the rendering does not have, comes up with the next start.
    const claim = {
      metadata: { name: 'state' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    }
    const byBuilder = await otherwise({ volumeClaimTemplates: [claim] })
    await world.operate('third', { client: client() })
    await world.edit('job', { restartNonce: 1 })
    await world.until(
      'the set is replaced for another start',
      async () => (await replaced(byBuilder)) && (await world.status('job'))!.start === 2,
    )
    expect(world.coordinators.starts.map(({ start }) => start)).toEqual([1, 2])
    expect(world.coordinators.starts[1]!.from).toContain('/chk-')
  }, 120_000)

  it('tells the coordinator of a preempted worker pod when it has failed, before it is gone (O16)', async () => {
    const { world, client } = await newWorld()
    const { namespace, client: admin } = world.options
    await world.operate('first', { client: client() })
    const uid = await world.createJob('job', { parallelism: 3 })
    await world.until('it runs', () => world.isSettled('job'))
    const nameOf = (index: number): string => `${workerName({ name: 'job', uid })}-${index}`
    const told = (index: number): boolean =>
      world.coordinators.requests.some(({ path }) => path === `/v1/workers/${nameOf(index)}/lost`)
    const preempted = async (index: number, { reason, by }: { readonly reason?: string; readonly by: string }) => {
      const at = { namespace, name: nameOf(index) }
      const pod = (await admin.get(types.pod, at))!
      const target = { type: 'DisruptionTarget', status: 'True', reason: by, message: 'another pod needs the room' }
      const sinceMs = performance.now()
      await admin.putStatus(types.pod, pod, {
        ...(pod['status'] as object),
        phase: 'Failed',
        ...(reason !== undefined && { reason }),
        conditions: [target, { type: 'Ready', status: 'False' }],
      })
      await world.until(`the loss of ${nameOf(index)} is told`, () => told(index))
      // A running job is looked at each ten seconds: it was the pod's own news.
      expect(performance.now() - sinceMs).toBeLessThan(5_000)
    }
    world.ignores = ({ metadata: { name } }) => name === nameOf(0) || name === nameOf(1)
    // The scheduler marks it and deletes it with its grace; the kubelet tells of its end before it lets it go.
    const first = (await admin.get(types.pod, { namespace, name: nameOf(0) }))!
    // One without a node would be gone at once.
    const hold = (finalizers: readonly string[]) =>
      admin.patch(types.pod, { namespace, name: nameOf(0) }, { metadata: { finalizers } })
    await hold(['tests.millrace.dev/kubelet'])
    await admin.delete(types.pod, { namespace, name: nameOf(0) }, { precondition: { uid: first.metadata.uid! } })
    await world.during(1_000)
    expect(told(0)).toBe(false)
    await preempted(0, { by: 'PreemptionByScheduler' })
    // The kubelet makes room for a critical pod.
    await preempted(1, { reason: 'Preempting', by: 'TerminationByKubelet' })
    expect(told(2)).toBe(false)
    await hold([])
    world.ignores = () => false
    await world.until('three workers run again', async () => {
      const { items } = await admin.list(types.pod, { namespace, labelSelector: `millrace.dev/job=${uid}` })
      const workers = items.filter(({ metadata: { name } }) => name.startsWith(workerName({ name: 'job', uid })))
      const running = workers.filter(({ status }) => (status as { readonly phase?: string }).phase === 'Running')
      return running.length === 3 && running.every(({ metadata }) => metadata.uid !== first.metadata.uid)
    })
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
