import { describe, expect, it } from 'vitest'
import { parseProcessConfig } from '../../runtime/distributed/process-config.ts'
import { asRendered } from './as-rendered.ts'
import { accessSecret } from './access-secret.ts'
import { cluster, code, job, revisionOf, specOf } from './harness.ts'
import { configName, coordinatorName, workerName } from './names.ts'
import type { KubernetesObject } from './objects.ts'
import { coordinatorHosts, processConfig } from './process-config.ts'
import { configTextOf, fillIn, render, toApply } from './rendering.ts'
import { shortPod } from './short-pod.ts'

const least = specOf({})
const most = specOf({
  program: { module: { configMap: { name: 'flight-delays', key: 'job.ts' } }, args: { rows: 10, from: 's3://in' } },
  parallelism: 4,
  maxParallelism: 256,
  checkpointing: {
    interval: '5s',
    mode: 'at-least-once',
    timeout: '2m',
    minPause: '1s',
    tolerableFailures: 'unlimited',
    retained: 5,
    onCancellation: 'delete',
  },
  restartStrategy: { type: 'exponential-delay', initialDelay: '500ms' },
  failoverStrategy: 'full',
  serviceAccountName: 'flights',
  nats: { url: 'tls://nats-0:4222,tls://nats-1:4222', credentialsSecret: 'flights-nats', tls: true },
  logLevel: 'debug',
  ingress: { host: 'flights.example.com', className: 'nginx', tlsSecret: 'flights-tls' },
  coordinator: { resources: { requests: { cpu: '1' }, limits: { memory: '1Gi' } } },
  worker: {
    slots: 2,
    podTemplate: {
      metadata: { labels: { team: 'air' }, annotations: { note: 'x' } },
      spec: {
        nodeSelector: { disk: 'ssd' },
        containers: [
          { name: 'worker', env: [{ name: 'TZ', value: 'UTC' }], volumeMounts: [{ name: 'data', mountPath: '/data' }] },
          { name: 'proxy', image: 'proxy:1' },
        ],
        volumes: [
          { name: 'data', persistentVolumeClaim: { claimName: 'data' } },
          { name: 'tmp', emptyDir: { sizeLimit: '1Gi' } },
        ],
        tolerations: [
          { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute', operator: 'Exists', tolerationSeconds: 5 },
        ],
      },
    },
  },
})

const jobs = {
  least: render(job, revisionOf(least, undefined), cluster),
  most: render(job, revisionOf(most, code), {
    natsCredentials: { kind: 'secret', name: 'flights-nats' },
    networkPolicy: true,
  }),
}
const begin = { parallelism: 4 }
const started = (name: keyof typeof jobs) => fillIn(jobs[name], { start: 7, begin, workers: 2 })

const access = {
  workerToken: 'w',
  ownerToken: 'o',
  readerToken: 'r',
  authority: 'CA',
  authorityKey: 'CAKEY',
  certificate: 'CERT',
  certificateKey: 'KEY',
  natsCredentials: 'CREDS',
}

interface PodSpec {
  readonly containers: readonly (Readonly<Record<string, unknown>> & { readonly name: string })[]
  readonly volumes: readonly (Readonly<Record<string, unknown>> & { readonly name: string })[]
}
const podSpecOf = (object: KubernetesObject): PodSpec =>
  object.kind === 'Pod'
    ? (object['spec'] as PodSpec)
    : (object['spec'] as { readonly template: { readonly spec: PodSpec } }).template.spec

describe('a rendering', () => {
  it.each(['least', 'most'] as const)('of the %s that a spec says is as it was', async (name) => {
    const json = `${JSON.stringify(started(name), null, 2)}\n`
    await expect(json).toMatchFileSnapshot(`testdata/${name}.json`)
  })

  it('is JSON: it comes back from a ControllerRevision as it was', () => {
    for (const rendering of Object.values(jobs)) expect(JSON.parse(JSON.stringify(rendering))).toEqual(rendering)
  })

  it('names its children by kind and name, the start where there is one', () => {
    expect(Object.keys(jobs.most)).toContain(`ConfigMap/${configName(job, '{start}')}`)
    expect(Object.keys(started('most'))).toContain(`ConfigMap/${configName(job, '7')}`)
    expect(JSON.stringify(started('most'))).not.toContain('{start}')
    expect(JSON.stringify(started('least'))).not.toContain('{start}')
  })

  it("leaves the job's own args as they are, whatever they say", () => {
    const spec = specOf({ program: { module: { path: '/opt/job/job.ts' }, args: { out: '/out/{start}' } } })
    const filled = fillIn(render(job, revisionOf(spec, undefined), cluster), {
      start: 7,
      begin: { parallelism: 1 },
      workers: 1,
    })
    const map = filled[`ConfigMap/${configName(job, '7')}`] as unknown as { data: { 'process.json': string } }
    expect(JSON.parse(map.data['process.json'])).toMatchObject({ job: { args: { out: '/out/{start}' } } })
  })

  it('says the start wherever a podTemplate asks for it', () => {
    const spec = specOf({
      worker: { podTemplate: { metadata: { annotations: { 'example.org/logs': 'orders/{start}' } } } },
    })
    const filled = fillIn(render(job, revisionOf(spec, undefined), cluster), {
      start: 7,
      begin: { parallelism: 1 },
      workers: 1,
    })
    const workers = Object.values(filled).find(({ kind }) => kind === 'StatefulSet') as unknown as {
      readonly spec: { readonly template: { readonly metadata: { readonly annotations: Record<string, string> } } }
    }
    expect(workers.spec.template.metadata.annotations).toMatchObject({ 'example.org/logs': 'orders/7' })
  })

  it('holds neither a secret nor code', () => {
    const { [`Secret/${accessSecret(job, undefined).metadata.name}`]: secret, ...others } = jobs.most
    expect(secret).not.toHaveProperty('data')
    expect(Object.keys(others).filter((key) => key.startsWith('Secret/'))).toEqual([])
    expect(
      Object.keys(others)
        .filter((key) => key.includes('-code-'))
        .map((key) => others[key]),
    ).toEqual([expect.not.objectContaining({ data: expect.anything() })])
  })

  it('is applied with them; code that is not known is left as it is', () => {
    const objects = toApply(job, started('most'), { access, files: { 'job.ts': 'export default 1' } })
    expect(objects).toHaveLength(Object.keys(jobs.most).length)
    const secret = objects.find(({ kind }) => kind === 'Secret')!
    expect((secret['data'] as Record<string, string>)['owner-token']).toBe(Buffer.from('o').toString('base64'))
    const codeMap = objects.find(({ metadata }) => metadata.name.includes('-code-'))!
    expect(codeMap).toMatchObject({
      immutable: true,
      data: { 'job.ts': 'export default 1', 'package.json': '{"type":"module"}\n' },
    })
    const without = toApply(job, started('most'), { access, files: undefined })
    expect(without).toHaveLength(objects.length - 1)
    expect(without.filter(({ metadata }) => metadata.name.includes('-code-'))).toEqual([])
  })
})

describe('process.json', () => {
  it.each(['least', 'most'] as const)('of the %s is taken by the runtime', (name) => {
    const config = parseProcessConfig(configTextOf(started(name)), 'process.json')
    expect(config.job).toMatchObject({ id: job.uid, name: job.name, start: 7, parallelism: 4 })
    expect(config.storage.checkpoints).toBe(`s3://millrace/jobs/analytics/flight-delays/${job.uid}`)
  })

  it("gives the job a place of its own below storage.savepoints, by the same server's settings", () => {
    const storage = { checkpoints: 's3://millrace/jobs', savepoints: 's3://kept/sp/', s3: { credentialsSecret: 's3' } }
    const spec = specOf({ storage })
    const config = processConfig({ job, spec, codeKey: undefined, natsCredentials: { kind: 'of the job' } })
    expect(config['storage']).toMatchObject({
      checkpoints: `s3://millrace/jobs/analytics/flight-delays/${job.uid}`,
      savepoints: `s3://kept/sp/analytics/flight-delays/${job.uid}`,
      s3: { accessKeyIdFile: expect.any(String) },
    })
  })

  it('says what the spec says, in the words of the job', () => {
    const config = parseProcessConfig(configTextOf(started('most')), 'process.json')
    expect(config.job.settings).toEqual({
      checkpointIntervalMs: 5_000,
      checkpointMode: 'at-least-once',
      checkpointTimeoutMs: 120_000,
      minPauseMs: 1_000,
      tolerableFailures: 'unlimited',
      retained: 5,
      onCancellation: 'delete',
      restartStrategy: {
        type: 'exponential-delay',
        initialDelayMs: 500,
        maxDelayMs: 60_000,
        multiplier: 1.5,
        resetAfterMs: 600_000,
        jitter: 0.1,
      },
      failoverStrategy: 'full',
    })
    expect(config.job).toMatchObject({
      file: '/opt/job/job.ts',
      args: { rows: 10, from: 's3://in' },
      maxParallelism: 256,
    })
    expect(config.nats).toEqual({
      servers: ['tls://nats-0:4222', 'tls://nats-1:4222'],
      credentialsFile: '/var/run/millrace/nats/nats.creds',
      tls: {},
    })
    expect(config.worker).toEqual({ slots: 2, graceMs: 25_000 })
    expect(config.logLevel).toBe('debug')
    const host = `${coordinatorName(job)}.analytics.svc`
    expect(config.coordinator).toMatchObject({ restAddress: `${host}:8081`, workersAddress: `${host}:8082` })
    expect(coordinatorHosts(job)).toContain(host)
    // By kubectl port-forward.
    expect(coordinatorHosts(job)).toEqual(expect.arrayContaining(['localhost', '127.0.0.1', '::1']))
  })

  it('leaves to the job what the spec leaves out', () => {
    expect(parseProcessConfig(configTextOf(started('least')), 'process.json').job.settings).toEqual({})
  })

  it.each([
    [
      { parallelism: 2, from: 's3://b/sp-1', allowNonRestoredState: true },
      { from: 's3://b/sp-1', allowNonRestoredState: true },
    ],
    [{ parallelism: 2, empty: true }, { empty: true }],
    [{ parallelism: 2 }, undefined],
  ])('says how the start begins: %j', (asked, restore) => {
    const filled = fillIn(jobs.least, { start: 1, begin: asked, workers: 1 })
    expect(parseProcessConfig(configTextOf(filled), 'process.json').job.restore).toEqual(restore)
  })
})

describe('the pods', () => {
  const deployment = started('most')[`Deployment/${coordinatorName(job)}`]!
  const set = started('most')[`StatefulSet/${workerName(job)}`]!

  it.each([
    ['coordinator', deployment],
    ['worker', set],
    ['coordinator', started('least')[`Deployment/${coordinatorName(job)}`]!],
    ['worker', started('least')[`StatefulSet/${workerName(job)}`]!],
  ])('%s has no privilege and no token', (name, workload) => {
    const spec = podSpecOf(workload)
    expect(spec).toMatchObject({
      automountServiceAccountToken: false,
      securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    })
    expect(spec.containers.find((container) => container.name === name)).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
    })
  })

  it('see the secrets that they need and no others', () => {
    const keysOf = (name: string, workload: string): string[] => {
      const volume = podSpecOf(started('least')[`${workload}/${name}`]!).volumes.find((each) => each.name === 'access')!
      return (volume['secret'] as { items: { key: string }[] }).items.map(({ key }) => key)
    }
    expect(keysOf(workerName(job), 'StatefulSet')).toEqual(['worker-token', 'ca.crt', 'nats.creds'])
    expect(keysOf(coordinatorName(job), 'Deployment').toSorted()).toEqual([
      'ca.crt',
      'nats.creds',
      'owner-token',
      'reader-token',
      'tls.crt',
      'tls.key',
      'worker-token',
    ])
  })

  it('are selected by the uid, and by what a podTemplate cannot take away', () => {
    const { selector, template } = set['spec'] as {
      selector: { matchLabels: Record<string, string> }
      template: { metadata: { labels: Record<string, string>; annotations: Record<string, string> } }
    }
    expect(selector.matchLabels).toEqual({ 'millrace.dev/job': job.uid, 'app.kubernetes.io/component': 'worker' })
    expect(template.metadata.labels).toMatchObject({ ...selector.matchLabels, team: 'air', 'millrace.dev/start': '7' })
    expect(template.metadata.annotations).toEqual({ note: 'x' })
    const stolen = render(
      job,
      revisionOf(
        specOf({ worker: { podTemplate: { metadata: { labels: { 'millrace.dev/job': 'another' } } } } }),
        undefined,
      ),
      cluster,
    )
    expect(stolen[`StatefulSet/${workerName(job)}`]).toMatchObject({
      spec: { template: { metadata: { labels: { 'millrace.dev/job': job.uid } } } },
    })
  })

  it('of workers are as many as are asked for', () => {
    expect(set['spec']).toMatchObject({ replicas: 2 })
    expect(jobs.most[`StatefulSet/${workerName(job)}`]!['spec']).not.toHaveProperty('replicas')
  })
})

describe('a short pod', () => {
  const pod = shortPod({
    job,
    purpose: 'preflight',
    request: 'preflight-r3',
    revision: 'flight-delays-90bcbb1e-r3',
    rendering: jobs.most,
    start: 8,
    begin: { parallelism: 4, empty: true },
    arguments: ['preflight', '--output', 'json'],
  })

  it('is the coordinator with another command, and no server', async () => {
    await expect(`${JSON.stringify(pod, null, 2)}\n`).toMatchFileSnapshot('testdata/preflight.json')
    const [container, ...others] = podSpecOf(pod).containers
    expect(others).toEqual([])
    expect(container).toMatchObject({
      command: ['millrace', 'preflight', '--output', 'json', '--config', '/etc/millrace/process.json'],
    })
    for (const name of ['ports', 'livenessProbe', 'startupProbe', 'readinessProbe'])
      expect(container).not.toHaveProperty(name)
  })

  it('brings its config itself', () => {
    const text = pod.metadata.annotations!['millrace.dev/process-config']!
    expect(parseProcessConfig(text, 'process.json').job).toMatchObject({ start: 8, restore: { empty: true } })
    const config = podSpecOf(pod).volumes.find(({ name }) => name === 'config')
    expect(config).toEqual({
      name: 'config',
      downwardAPI: {
        items: [
          { path: 'process.json', fieldRef: { fieldPath: "metadata.annotations['millrace.dev/process-config']" } },
        ],
      },
    })
  })

  it('sees no secret of the job but those of its storage, and needs nothing of the job to be there', () => {
    const { volumes, containers } = podSpecOf(pod)
    expect(volumes.map(({ name }) => name).toSorted()).toEqual(['code', 'config', 's3-credentials', 'tmp'])
    const mounts = containers[0]!['volumeMounts'] as readonly { readonly name: string }[]
    expect(mounts.map(({ name }) => name).toSorted()).toEqual(['code', 'config', 's3-credentials', 'tmp'])
    expect(podSpecOf(pod)).toHaveProperty('serviceAccountName', 'flights')
    const plain = shortPod({
      job,
      purpose: 'admin-close',
      request: 'close-1',
      revision: 'r',
      rendering: jobs.least,
      start: 1,
      begin,
      arguments: ['admin', 'close', '--yes'],
    })
    expect(podSpecOf(plain)).not.toHaveProperty('serviceAccountName')
    expect(JSON.stringify(plain)).not.toContain('"secretName":"flight-delays-90bcbb1e-access"')
  })
})

describe('whether an object is as rendered', () => {
  const rendered = started('most')[`StatefulSet/${workerName(job)}`]!
  const live = (change: (object: Record<string, unknown>) => void): KubernetesObject => {
    const object = structuredClone(rendered) as unknown as Record<string, unknown>
    change(object)
    return object as unknown as KubernetesObject
  }
  type Any = Record<string, unknown>
  const at = (object: unknown, path: string): Any =>
    path.split('.').reduce((inner, name) => inner[name] as Any, object as Any)

  it('is not troubled by what others and the API server add', () => {
    const served = live((object) => {
      Object.assign(object, { status: { replicas: 2 } })
      Object.assign(at(object, 'metadata'), { uid: 'u', resourceVersion: '7', finalizers: ['x'] })
      Object.assign(at(object, 'metadata.labels'), { 'somebody.else/label': 'y' })
      const spec = at(object, 'spec.template.spec')
      Object.assign(spec, { dnsPolicy: 'ClusterFirst', restartPolicy: 'Always', schedulerName: 'default-scheduler' })
      const containers = spec['containers'] as Any[]
      containers.unshift({ name: 'injected', image: 'mesh' })
      containers[1]!['imagePullPolicy'] = 'IfNotPresent'
      ;(containers[1]!['env'] as Any[]).unshift({ name: 'FOREIGN', value: '1' })
      at(object, 'spec')['replicas'] = 9
    })
    expect(asRendered(rendered, served)).toBe(true)
  })

  it('takes amounts for what they are', () => {
    const deployment = render(
      job,
      revisionOf(specOf({ coordinator: { resources: { requests: { cpu: '1000m', memory: '1024Mi' } } } }), undefined),
      cluster,
    )[`Deployment/${coordinatorName(job)}`]!
    const served = (cpu: string, memory: string): KubernetesObject => {
      const object = structuredClone(deployment)
      at(object, 'spec.template.spec.containers.0.resources.requests')['cpu'] = cpu
      at(object, 'spec.template.spec.containers.0.resources.requests')['memory'] = memory
      return object
    }
    expect(asRendered(deployment, served('1', '1Gi'))).toBe(true)
    expect(asRendered(deployment, served('1001m', '1Gi'))).toBe(false)
    expect(asRendered(deployment, served('1', '1G'))).toBe(false)
  })

  it.each<[string, unknown, string]>([
    ['nvidia.com/gpu', 1, '1'],
    ['example.com/a.b', '2000m', '2'],
    ['ephemeral-storage', '1024Mi', '1Gi'],
    ['hugepages-2Mi', 1_048_576, '1Mi'],
    ['nvidia.com/gpu', 0, '0'],
  ])('takes an amount of %s for what it is', (name, written, kept) => {
    const set = render(
      job,
      revisionOf(specOf({ worker: { resources: { limits: { [name]: written } } } }), undefined),
      cluster,
    )[`StatefulSet/${workerName(job)}`]!
    const served = (amount: string): KubernetesObject => {
      const object = structuredClone(set)
      at(object, 'spec.template.spec.containers.0.resources.limits')[name] = amount
      return object
    }
    expect(asRendered(set, served(kept))).toBe(true)
    expect(asRendered(set, served('7'))).toBe(false)
  })

  it("takes amounts elsewhere in a user's template for what they are", () => {
    const podTemplate = {
      spec: {
        overhead: { 'example.com/x': 1 },
        containers: [{ name: 'worker', env: [{ name: 'CPU', valueFrom: { resourceFieldRef: { divisor: 1 } } }] }],
        volumes: [{ name: 'tmp', emptyDir: { sizeLimit: '1024Mi' } }],
      },
    }
    const set = (template: object): KubernetesObject =>
      render(job, revisionOf(specOf({ worker: { podTemplate: template } }), undefined), cluster)[
        `StatefulSet/${workerName(job)}`
      ]!
    const kept = JSON.stringify(podTemplate)
      .replace('"divisor":1', '"divisor":"1"')
      .replace('"example.com/x":1', '"example.com/x":"1"')
      .replace('1024Mi', '1Gi')
    expect(asRendered(set(podTemplate), set(JSON.parse(kept) as object))).toBe(true)
  })

  it.each<[string, (object: Record<string, unknown>) => void]>([
    [
      'an edited variable',
      (object) =>
        (at(object, 'spec.template.spec.containers.0.env.0.valueFrom.fieldRef')['fieldPath'] = 'metadata.uid'),
    ],
    ['another image', (object) => (at(object, 'spec.template.spec.containers.0')['image'] = 'other')],
    [
      'a word more in the command',
      (object) => (at(object, 'spec.template.spec.containers.0')['command'] as string[]).push('--x'),
    ],
    ['a container that is gone', (object) => (at(object, 'spec.template.spec')['containers'] = [])],
    ['a field that is gone', (object) => delete at(object, 'spec')['updateStrategy']],
    ['a label that is gone', (object) => delete at(object, 'metadata.labels')['millrace.dev/job']],
    [
      'a privilege',
      (object) => (at(object, 'spec.template.spec.containers.0.securityContext')['readOnlyRootFilesystem'] = false),
    ],
  ])('sees %s', (_, change) => {
    expect(asRendered(rendered, live(change))).toBe(false)
  })

  it('sees a config whose data was edited', () => {
    const config = started('most')[`ConfigMap/${configName(job, '7')}`]!
    expect(asRendered(config, { ...config, data: { 'process.json': '{}' } })).toBe(false)
    const { version, ...rest } = JSON.parse((config['data'] as Record<string, string>)['process.json']!) as Record<
      string,
      unknown
    >
    const reordered = JSON.stringify({ ...rest, version })
    expect(asRendered(config, { ...config, data: { 'process.json': reordered } })).toBe(true)
    expect(asRendered(config, { ...config, data: { 'process.json': 'no JSON' } })).toBe(false)
  })
})
