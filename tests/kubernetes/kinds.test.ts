// The kinds, and the children of a job, at a real API server: it takes the definitions as structural, holds objects to them by schema and CEL,
// and takes every child that is rendered, without a field that it does not know.

import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { customResourceDefinitions } from '../../crds/custom-resource-definitions.ts'
import { firstDifference } from '../../operator/resources/as-rendered.ts'
import { newTokens } from '../../operator/resources/access-secret.ts'
import { types } from '../../operator/kubernetes/types.ts'
import { controllerRevision, readRevision } from '../../operator/resources/controller-revision.ts'
import { disposalPod } from '../../operator/resources/disposal-pod.ts'
import { originTemplate } from '../../operator/resources/origin-template.ts'
import { cluster, code, job as harnessJob, revisionOf, specOf } from '../../operator/resources/harness.ts'
import type { KubernetesObject, OwnerJob } from '../../operator/resources/objects.ts'
import { fillIn, render, toApply } from '../../operator/resources/rendering.ts'
import { shortPod } from '../../operator/resources/short-pod.ts'
import { startApiServer } from '../servers/support/api-server.ts'
import type { ApiAnswer, ApiServer } from '../servers/support/api-server.ts'

const namespace = 'default'
const jobs = `/apis/millrace.dev/v1alpha1/namespaces/${namespace}/streamjobs`
const savepoints = `/apis/millrace.dev/v1alpha1/namespaces/${namespace}/savepoints`

let server: ApiServer
beforeAll(async () => {
  server = await startApiServer({ controllers: ['serviceaccount-controller', 'namespace-controller'] })
  for (const definition of customResourceDefinitions()) {
    const made = await server.request('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      method: 'POST',
      body: definition,
    })
    expect(made.status, made.text).toBe(201)
  }
  for (const path of [jobs, savepoints])
    await vi.waitUntil(async () => (await server.request(path)).status === 200, { timeout: 30_000, interval: 100 })
}, 900_000)
afterAll(() => server?.stop())

interface Condition {
  readonly type: string
  readonly status: string
}
type Any = Record<string, unknown>

const program = { module: { path: '/opt/job/job.ts' } }
let made = 0
const streamJob = (spec: Any): Any => ({
  apiVersion: 'millrace.dev/v1alpha1',
  kind: 'StreamJob',
  metadata: { name: `job-${++made}` },
  spec: { program, ...spec },
})
const create = (body: unknown, path = jobs): Promise<ApiAnswer> =>
  server.request(`${path}?fieldValidation=Strict`, { method: 'POST', body })
const merge = (path: string, body: unknown): Promise<ApiAnswer> =>
  server.request(path, { method: 'PATCH', contentType: 'application/merge-patch+json', body })

describe('the definitions', () => {
  it('are structural and established', async () => {
    for (const { metadata } of customResourceDefinitions()) {
      const answer = await server.request(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${metadata.name}`)
      const { status } = answer.json() as { status: { conditions: Condition[] } }
      expect(status.conditions).toContainEqual(expect.objectContaining({ type: 'Established', status: 'True' }))
      expect(status.conditions.filter(({ type }) => type === 'NonStructuralSchema')).toEqual([])
    }
  })

  it('fill in the defaults of the schema', async () => {
    const { spec } = (await create(streamJob({}))).json() as { spec: Any }
    expect(spec).toEqual({
      state: 'running',
      program: { module: { path: '/opt/job/job.ts' }, args: {} },
      parallelism: 1,
      upgradeMode: 'last-state',
      restoreMode: 'no-claim',
      allowNonRestoredState: false,
      checkpointing: {},
      stateBackend: { type: 'heap' },
      rollback: { enabled: true, progressDeadline: '5m' },
      deletion: { savepoint: false, deadline: '45s' },
      logLevel: 'info',
      coordinator: {},
      worker: { slots: 1 },
    })
  })

  it('keep what is free-form as it is', async () => {
    const args = { rows: [1, { deep: { er: null } }], text: 'x' }
    const podTemplate = { spec: { nodeSelector: { disk: 'ssd' }, containers: [{ name: 'worker', env: [] }] } }
    const { spec } = (await create(streamJob({ program: { ...program, args }, worker: { podTemplate } }))).json() as {
      spec: { program: { args: Any }; worker: { podTemplate: Any } }
    }
    expect(spec.program.args).toEqual(args)
    expect(spec.worker.podTemplate).toEqual(podTemplate)
  })

  it.each<[string, Any]>([
    [
      'amounts as numbers and texts',
      { worker: { resources: { requests: { cpu: 1, memory: '512Mi' }, limits: { cpu: '1500m' } } } },
    ],
    ['a number of tolerable failures', { checkpointing: { tolerableFailures: 3 } }],
    ['no limit of them', { checkpointing: { tolerableFailures: 'unlimited' } }],
    ['a restart strategy', { restartStrategy: { type: 'failure-rate', failuresPerInterval: 2, interval: '5m' } }],
    ['parallelism up to maxParallelism', { parallelism: 128, maxParallelism: 128 }],
  ])('take %s', async (_, spec) => {
    const answer = await create(streamJob(spec))
    expect(answer.status, answer.text).toBe(201)
  })

  it.each<[Any, string]>([
    [{ parallelism: 5, maxParallelism: 4 }, 'parallelism must be at most maxParallelism'],
    [{ program: { module: {} } }, 'must have either configMap or path, and not both'],
    [{ program: { module: { path: '/a', configMap: { name: 'a', key: 'b' } } } }, 'must have either configMap or path'],
    [{ restartStrategy: { type: 'fixed-delay' } }, 'attempts is missing, which fixed-delay needs'],
    [{ restartStrategy: { type: 'none', delay: '1s' } }, 'delay belongs to fixed-delay and failure-rate only'],
    [{ parallelism: 0 }, 'should be greater than or equal to 1'],
    [{ checkpointing: { interval: '10' } }, 'spec.checkpointing.interval'],
    [{ checkpointing: { tolerableFailures: 'many' } }, 'spec.checkpointing.tolerableFailures'],
    [{ checkpointing: { tolerableFailures: -1 } }, 'spec.checkpointing.tolerableFailures'],
    [{ stateBackend: { type: 'rocksdb' } }, 'spec.stateBackend.type'],
    [{ restoreMode: 'claim' }, 'spec.restoreMode'],
    [{ worker: { resources: { requests: { cpu: 'much' } } } }, 'spec.worker.resources.requests.cpu'],
    [{ paralellism: 2 }, 'unknown field \\"spec.paralellism\\"'],
    [{ localRecovery: {} }, 'unknown field \\"spec.localRecovery\\"'],
  ])('refuse %j', async (spec, message) => {
    const answer = await create(streamJob(spec))
    expect(answer.status, answer.text).toBeGreaterThanOrEqual(400)
    expect(answer.text).toContain(message)
  })

  it('scale by /scale, up to maxParallelism', async () => {
    const body = streamJob({ parallelism: 2, maxParallelism: 8 })
    const { name } = body['metadata'] as { name: string }
    await create(body)
    await merge(`${jobs}/${name}/status`, { status: status({ parallelism: 2, labelSelector: 'a=b' }) })
    const scale = (await server.request(`${jobs}/${name}/scale`)).json() as Any
    expect(scale).toMatchObject({ spec: { replicas: 2 }, status: { replicas: 2, selector: 'a=b' } })
    expect((await merge(`${jobs}/${name}/scale`, { spec: { replicas: 8 } })).status).toBe(200)
    expect((await server.request(`${jobs}/${name}`)).json()).toMatchObject({ spec: { parallelism: 8 } })
    const above = await merge(`${jobs}/${name}/scale`, { spec: { replicas: 9 } })
    expect(above.status).toBe(422)
    expect(above.text).toContain('parallelism must be at most maxParallelism')
  })

  it('keep the whole status that an operator writes, and show the columns', async () => {
    const body = streamJob({})
    const { name } = body['metadata'] as { name: string }
    await create(body)
    const written = status({})
    const answer = await server.request(`${jobs}/${name}/status?fieldValidation=Strict`, {
      method: 'PATCH',
      contentType: 'application/merge-patch+json',
      body: { status: written },
    })
    expect(answer.status, answer.text).toBe(200)
    expect((await server.request(`${jobs}/${name}`)).json()).toMatchObject({ status: written })
  })

  it('let a Savepoint say once what it is', async () => {
    const savepoint = (name: string, spec: Any): Any => ({
      apiVersion: 'millrace.dev/v1alpha1',
      kind: 'Savepoint',
      metadata: { name },
      spec,
    })
    const first = await create(savepoint('first', { job: { name: 'flights' } }), savepoints)
    expect(first.json()).toMatchObject({ spec: { disposal: 'retain' } })
    expect((await merge(`${savepoints}/first`, { spec: { disposal: 'delete' } })).status).toBe(200)
    for (const spec of [{ job: { name: 'another' } }, { path: 's3://a/b' }]) {
      const changed = await merge(`${savepoints}/first`, { spec })
      expect(changed.status).toBe(422)
      expect(changed.text).toContain('cannot change; make another Savepoint')
    }
    expect((await create(savepoint('second', { job: { name: 'a' }, path: 's3://a/b' }), savepoints)).status).toBe(201)
    expect((await merge(`${savepoints}/second`, { metadata: { labels: { a: 'b' } } })).status).toBe(200)
    const volume = savepoint('third', { job: { name: 'a' }, path: '/mnt/jobs/savepoint-7' })
    expect((await create(volume, savepoints)).status).toBe(201)
    for (const path of ['savepoint-7', 's3://bucket', '/a b']) {
      const refused = await create(savepoint('bad', { job: { name: 'a' }, path }), savepoints)
      expect(refused.status).toBe(422)
      expect(refused.text).toContain('must be the folder of a savepoint, such as s3://bucket/prefix/savepoint-7')
    }
  })
})

/** Every field that a status can have. */
function status(over: Any): Any {
  const time = '2026-03-01T12:00:00Z'
  const point = {
    kind: 'checkpoint',
    path: 's3://a/chk-7',
    id: 7,
    start: 2,
    madeBy: 2,
    unconfirmed: false,
    readAt: time,
  }
  return {
    version: 1,
    observedGeneration: 3,
    jobId: 'uid',
    phase: 'UPGRADING',
    conditions: [
      {
        type: 'Ready',
        status: 'False',
        reason: 'Upgrading',
        message: 'x',
        lastTransitionTime: time,
        observedGeneration: 3,
      },
    ],
    start: 2,
    revision: 'r2',
    stableRevision: 'r1',
    begin: { parallelism: 2, from: 's3://a/b', empty: false, allowNonRestoredState: true },
    restorePoint: point,
    rollbackPoint: point,
    rollbackParallelism: 2,
    rolledBackStart: 2,
    transition: {
      kind: 'upgrade',
      step: 'closing',
      request: 'close-2',
      mode: 'last-state',
      attempt: 1,
      retry: { at: time, why: 'x' },
      from: 'r1',
      to: 'r2',
      parallelism: 2,
      begunAt: time,
      stepAt: time,
      progressAt: time,
      held: { since: time, why: 'x' },
      progress: 'p',
    },
    blocked: { key: 'k', reason: 'R', message: 'm' },
    workers: 2,
    asked: { kind: 'savepoint', request: 's', at: time, nonce: 1, object: 'uid' },
    periodic: { number: 1, at: time },
    lastCheckpoint: { id: 7, path: 's3://a/chk-7', time, bytes: 1, durationMs: 12, kind: 'checkpoint' },
    savepoints: [{ path: 's3://a/sp-1', id: 6, time, request: 's' }],
    restarts: 0,
    parallelism: 2,
    labelSelector: 'a=b',
    answered: { restart: 1, restore: 1, savepoint: 1, checkpoint: 1 },
    timeline: [{ step: 'closing', seconds: 1.5 }],
    ended: 'FAILED',
    finishedAt: time,
    failure: 'x',
    ...over,
  }
}

describe('the children of a job', () => {
  const most = specOf({
    program: { module: { configMap: { name: 'flights', key: 'job.ts' } } },
    ingress: { host: 'flights.example.com', className: 'nginx', tlsSecret: 'tls' },
    coordinator: { resources: { requests: { cpu: '1000m', memory: '1024Mi' }, limits: { memory: 1_073_741_824 } } },
    worker: {
      podTemplate: {
        metadata: { annotations: { note: 'x' } },
        spec: {
          nodeSelector: { disk: 'ssd' },
          volumes: [{ name: 'tmp', emptyDir: { sizeLimit: '1024Mi' } }],
          containers: [{ name: 'worker', env: [{ name: 'TZ', value: 'UTC' }] }],
        },
      },
    },
  })
  const rendering = (job: OwnerJob) => render(job, revisionOf(most, code), { ...cluster, networkPolicy: true })
  const started = (job: OwnerJob) => fillIn(rendering(job), { start: 7, begin: { parallelism: 2 }, workers: 2 })
  const access = {
    ...newTokens((bytes) => new Uint8Array(bytes)),
    authority: 'A',
    authorityKey: 'B',
    certificate: 'C',
    certificateKey: 'D',
    natsCredentials: 'E',
  }

  /** One that is there, so that garbage collection would let its children live. */
  async function owner(): Promise<OwnerJob> {
    const { metadata } = (await create(streamJob({}))).json() as { metadata: { name: string; uid: string } }
    return { namespace, name: metadata.name, uid: metadata.uid }
  }

  function pathOf({ apiVersion, kind, metadata }: KubernetesObject): string {
    const group = apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`
    const plural =
      kind === 'Ingress' ? 'ingresses' : kind === 'NetworkPolicy' ? 'networkpolicies' : `${kind.toLowerCase()}s`
    return `${group}/namespaces/${metadata.namespace}/${plural}/${metadata.name}`
  }

  const apply = (object: KubernetesObject): Promise<ApiAnswer> =>
    server.request(`${pathOf(object)}?fieldManager=millrace&fieldValidation=Strict&force=true`, {
      method: 'PATCH',
      contentType: 'application/apply-patch+yaml',
      body: object,
    })

  it('are taken as they are, and are then as rendered; a second apply changes nothing', async () => {
    const job = await owner()
    for (const object of toApply(job, started(job), { access, files: { 'job.ts': 'export default 1' } })) {
      const answer = await apply(object)
      expect(answer.status, answer.text).toBe(201)
      const live = answer.json() as KubernetesObject & { readonly metadata: { readonly resourceVersion: string } }
      expect(firstDifference(object, live), object.kind).toBeUndefined()
      const again = (await apply(object)).json() as typeof live
      expect(again.metadata.resourceVersion, object.kind).toBe(live.metadata.resourceVersion)
    }
  })

  it('are not as rendered when somebody edits them, and are again when they are applied again; what he added stays', async () => {
    const job = await owner()
    const set = Object.values(started(job)).find(({ kind }) => kind === 'StatefulSet')!
    await apply(set)
    const edit = {
      metadata: { labels: { team: 'air' } },
      spec: {
        template: {
          spec: {
            containers: [
              {
                name: 'worker',
                env: [
                  { name: 'TZ', value: 'CET' },
                  { name: 'MINE', value: '1' },
                ],
              },
            ],
          },
        },
      },
    }
    const edited = await server.request(pathOf(set), {
      method: 'PATCH',
      contentType: 'application/strategic-merge-patch+json',
      body: edit,
    })
    expect(firstDifference(set, edited.json() as KubernetesObject)).toMatch(/env\[\d\]\.value$/)
    const repaired = (await apply(set)).json() as KubernetesObject
    expect(firstDifference(set, repaired)).toBeUndefined()
    expect(repaired.metadata.labels['team']).toBe('air')
    expect(JSON.stringify(repaired['spec'])).toContain('"MINE"')
  })

  it('include pods that run one command, and a revision that comes back as it was', async () => {
    const job = await owner()
    const pod = shortPod({
      job,
      purpose: 'admin-close',
      request: 'close-7-1',
      revision: 'r',
      rendering: rendering(job),
      start: 7,
      begin: { parallelism: 2 },
      arguments: ['admin', 'close', '--yes', '--output', 'json'],
    })
    const origin = {
      jobId: job.uid,
      image: 'millrace/runtime:0.1.0',
      storage: 's3://millrace/jobs/x',
      s3: { endpoint: 'http://s3:7070', region: 'us-east-1', forcePathStyle: true, credentialsSecret: 's3' },
      podTemplate: originTemplate({
        spec: {
          imagePullSecrets: [{ name: 'registry' }],
          tolerations: [{ key: 'jobs', operator: 'Exists' }],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [{ matchExpressions: [{ key: 'disk', operator: 'In', values: ['ssd'] }] }],
              },
            },
          },
          containers: [
            {
              name: 'coordinator',
              env: [
                { name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' },
                { name: 'TOKEN', valueFrom: { secretKeyRef: { name: 'store', key: 'token' } } },
              ],
              envFrom: [{ secretRef: { name: 'more' } }, { configMapRef: { name: 'other' } }],
              volumeMounts: [
                { name: 'ca', mountPath: '/ca' },
                { name: 'extra', mountPath: '/extra' },
              ],
            },
          ],
          volumes: [
            { name: 'ca', projected: { sources: [{ configMap: { name: 'ca' } }] } },
            { name: 'extra', secret: { secretName: 'extra' } },
          ],
        },
      })!,
    }
    const disposal = disposalPod({
      savepoint: { namespace, name: 'before-upgrade', uid: harnessJob.uid },
      origin,
      arguments: ['admin', 'dispose', 's3://millrace/jobs/x/sp-7', '--yes'],
    })
    for (const object of [pod, disposal]) {
      const answer = await server.request(`/api/v1/namespaces/${namespace}/pods?fieldValidation=Strict`, {
        method: 'POST',
        body: object,
      })
      expect(answer.status, answer.text).toBe(201)
    }
    // What the definition does not know would be dropped from status, without a word.
    const { apiVersion, kind } = types.savepoint
    const made = await server.request(savepoints, {
      method: 'POST',
      body: { apiVersion, kind, metadata: { name: 'before-upgrade' }, spec: { job: { name: job.name } } },
    })
    expect(made.status, made.text).toBe(201)
    const status = { state: 'completed', path: 's3://millrace/jobs/x/sp-7', origin }
    const written = await server.request(`${savepoints}/before-upgrade/status`, {
      method: 'PUT',
      body: { ...(made.json() as object), status },
    })
    expect(written.json()).toMatchObject({ status })
    const revision = {
      version: 1 as const,
      name: `${job.name}-r3`,
      number: 3,
      spec: most,
      image: 'millrace/runtime:0.1.0',
      code,
      operatorVersion: '0.1.0',
      rendering: rendering(job),
      hash: 'h',
      parallelism: 2,
    }
    const answer = await apply(controllerRevision(job, revision))
    expect(answer.status, answer.text).toBe(201)
    expect(readRevision(answer.json() as KubernetesObject)).toEqual(JSON.parse(JSON.stringify(revision)))
  })
})
