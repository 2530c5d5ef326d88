// The chart as Helm renders it, and its servers' configs as the servers take them.

import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { HeadBucketCommand, PutObjectCommand, GetObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { helmBinary } from '../../e2e/cluster/helm.ts'
import { natsConfigKey } from '../../operator/nats-access.ts'
import { natsServerConfig, newNatsKeys } from '../../operator/nats-credentials.ts'
import { readOperatorConfig } from '../../operator/resources/operator-config.ts'
import type { OperatorConfig } from '../../operator/resources/operator-config.ts'
import type { SpecDefaults } from '../../operator/validate.ts'
import { goTool } from '../servers/support/go-tool.ts'
import { natsServerBinary } from '../servers/support/nats-server.ts'
import { versitygw } from '../servers/support/s3-server.ts'
import { startServer } from '../servers/support/server-process.ts'

const chart = fileURLToPath(new URL('../../charts/millrace', import.meta.url))
const run = promisify(execFile)

type Any = Record<string, unknown>
interface Rendered {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly annotations?: Record<string, string>
  }
  readonly [field: string]: unknown
}
interface Rule {
  readonly apiGroups: readonly string[]
  readonly resources: readonly string[]
  readonly resourceNames?: readonly string[]
  readonly verbs: readonly string[]
}
interface Container {
  readonly image: string
  readonly args?: readonly string[]
  readonly command?: readonly string[]
  readonly securityContext: Any
}
interface Pod {
  readonly securityContext: Any
  readonly containers: readonly Container[]
  readonly volumes: readonly Any[]
}

let helm: string
let folder: string
beforeAll(async () => {
  // Fetched where it is not there; what is missing is named, and the tests fail.
  helm = await helmBinary()
  folder = await mkdtemp(join(tmpdir(), 'millrace-chart-'))
}, 400_000)
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

let files = 0
async function template(values: unknown = {}, words: readonly string[] = []): Promise<Rendered[]> {
  const file = join(folder, `values-${++files}.yaml`)
  await writeFile(file, JSON.stringify(values))
  const { stdout } = await run(helm, ['template', 'millrace', chart, '-n', 'streams', '-f', file, ...words], {
    maxBuffer: 16 * 1024 * 1024,
  })
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as Rendered | null)
    .filter((object) => object !== null)
}

/** What Helm says of values that it refuses. */
async function refusal(values: unknown): Promise<string> {
  return template(values).then(
    () => 'taken',
    (error: { readonly stderr: string }) => error.stderr,
  )
}

function one(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.filter((object) => object.kind === kind && object.metadata.name === name)
  expect(found, `${kind}/${name}`).toHaveLength(1)
  return found[0]!
}

const names = (objects: readonly Rendered[], kind: string): string[] =>
  objects.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name)

const podOf = (object: Rendered): Pod => (object['spec'] as { template: { spec: Pod } }).template.spec

function configOf(objects: readonly Rendered[]): OperatorConfig {
  const { data } = one(objects, 'ConfigMap', 'millrace-operator') as unknown as { data: Record<string, string> }
  const read = readOperatorConfig(data['config.yaml']!)
  if (read.kind !== 'fits') throw new Error(read.problems.join('\n'))
  return read.config
}

const external = {
  defaults: {
    image: 'example/flights:1',
    storage: {
      checkpoints: 's3://bucket/jobs',
      savepoints: 's3://kept/jobs',
      s3: { region: 'eu-central-1', credentialsSecret: 's3' },
    },
    nats: { url: 'tls://nats.example.com:4222', credentialsSecret: 'nats', tls: true },
    serviceAccountName: 'jobs',
    worker: { resources: { requests: { cpu: '2', memory: '4Gi' }, limits: { memory: '4Gi' } } },
  },
}

describe('the chart', () => {
  it('passes helm lint, strictly', async () => {
    const { stdout } = await run(helm, ['lint', '--strict', chart])
    expect(stdout).toContain('0 chart(s) failed')
  })

  it('brings everything that jobs need when it is told nothing', async () => {
    const objects = await template()
    expect(names(objects, 'Deployment').toSorted()).toEqual(['millrace-nats', 'millrace-operator'])
    expect(names(objects, 'StatefulSet')).toEqual(['millrace-s3'])
    expect(names(objects, 'CustomResourceDefinition').toSorted()).toEqual([
      'savepoints.millrace.dev',
      'streamjobs.millrace.dev',
    ])
    const config = configOf(objects)
    expect(config).toMatchObject({
      namespaces: [],
      defaults: {
        image: 'millrace/runtime:0.1.0',
        storage: {
          checkpoints: 's3://millrace/jobs',
          s3: {
            endpoint: 'http://millrace-s3.streams.svc:7070',
            forcePathStyle: true,
            credentialsSecret: 'millrace-s3',
          },
        },
        nats: { url: 'nats://millrace-nats.streams.svc:4222', tls: false },
      },
      natsAccess: { kind: 'own server', keysSecret: 'millrace-nats-keys', configSecret: 'millrace-nats-accounts' },
    })
    // What lies beneath each spec has the form that validation takes.
    const beneath: SpecDefaults = config.defaults
    expect(beneath.image).toBe('millrace/runtime:0.1.0')
  })

  it('brings no server whose address it is given', async () => {
    const objects = await template(external)
    expect(names(objects, 'StatefulSet')).toEqual([])
    expect(names(objects, 'Secret')).toEqual([])
    const { worker, ...rest } = external.defaults
    expect(configOf(objects)).toMatchObject({
      defaults: { ...rest, workerResources: worker.resources },
      natsAccess: { kind: 'shared' },
    })
    const none = configOf(await template({ natsServer: { enabled: false }, s3Server: { enabled: false } }))
    expect(none.defaults).toEqual({ image: 'millrace/runtime:0.1.0' })
  })

  it("signs users of a given server's account, or shares credentials, and not both", async () => {
    const natsSigningKey = { secret: 'signing', account: `A${'B'.repeat(55)}` }
    const { credentialsSecret: _, ...nats } = external.defaults.nats
    const values = { defaults: { ...external.defaults, nats } }
    expect(configOf(await template({ ...values, natsSigningKey })).natsAccess).toEqual({
      kind: 'signing key',
      ...natsSigningKey,
    })
    expect(await refusal({ ...values, natsSigningKey: { secret: 'signing' } })).toContain('natsSigningKey.account')
    expect(await refusal({ ...external, natsSigningKey })).toContain('exclude each other')
  })

  it('keeps the definitions, and all jobs with them, when it is uninstalled', async () => {
    const objects = await template()
    for (const name of names(objects, 'CustomResourceDefinition'))
      expect(one(objects, 'CustomResourceDefinition', name).metadata.annotations).toEqual({
        'helm.sh/resource-policy': 'keep',
      })
    expect(names(await template({ crds: { install: false } }), 'CustomResourceDefinition')).toEqual([])
  })

  it('takes the operator down before itself', async () => {
    const hook = one(await template(), 'Job', 'millrace-uninstall')
    expect(hook.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-delete' })
    expect(podOf(hook).containers[0]!.command).toContain('uninstall')
  })

  it('leaves the trust in the webhook to the operator, and lets nobody be kept from working', async () => {
    const configuration = one(await template(), 'ValidatingWebhookConfiguration', 'streams-millrace') as unknown as {
      webhooks: { name: string; failurePolicy: string; clientConfig: Any; rules: (Rule & { operations: string[] })[] }[]
    }
    const { webhooks } = configuration
    expect(webhooks.map(({ name, rules }) => [name, ...rules.flatMap(({ operations }) => operations)])).toEqual([
      ['validate.millrace.dev', 'CREATE', 'UPDATE'],
      ['deletion.millrace.dev', 'DELETE'],
    ])
    for (const { failurePolicy, rules, clientConfig } of webhooks) {
      expect(failurePolicy).toBe('Ignore')
      // It has nothing to say of Savepoints: their schema and its rules in CEL say all.
      expect(rules.map(({ resources }) => resources)).toEqual([['streamjobs']])
      expect(clientConfig).toEqual(webhooks[0]!.clientConfig)
      expect(Object.keys(clientConfig)).toEqual(['service'])
    }
    const without = await template({ webhook: { enabled: false } })
    expect(names(without, 'ValidatingWebhookConfiguration')).toEqual([])
    expect(configOf(without).webhook).toBeUndefined()
  })

  it('gives pods no privilege', async () => {
    const objects = await template()
    const workloads = objects.filter(({ kind }) => ['Deployment', 'StatefulSet', 'Job'].includes(kind))
    expect(workloads).toHaveLength(4)
    for (const workload of workloads) {
      const pod = podOf(workload)
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } })
      for (const { securityContext } of pod.containers)
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
    }
  })

  it('rolls the operator when its config changes, and only then', async () => {
    const sum = async (values: unknown): Promise<string | undefined> => {
      const { spec } = one(await template(values), 'Deployment', 'millrace-operator') as unknown as {
        spec: { template: { metadata: { annotations: Record<string, string> } } }
      }
      return spec.template.metadata.annotations['checksum/config']
    }
    const before = await sum({})
    expect(await sum({ operator: { replicas: 2 } })).toBe(before)
    expect(await sum({ networkPolicy: { enabled: true } })).not.toBe(before)
  })

  it('has what is optional when it is asked for', async () => {
    const objects = await template({
      podMonitor: { enabled: true, labels: { release: 'prometheus' } },
      podDisruptionBudget: { enabled: false },
    })
    expect(one(objects, 'PodMonitor', 'millrace-operator').metadata).toMatchObject({
      labels: { release: 'prometheus' },
    })
    expect(names(objects, 'PodDisruptionBudget')).toEqual([])
    expect(names(await template(), 'PodMonitor')).toEqual([])
  })

  it('is called by its release', async () => {
    const { stdout } = await run(helm, ['template', 'prod', chart, '-n', 'streams'])
    expect(stdout).toContain('name: prod-millrace-operator')
    expect(stdout).toContain('url: nats://prod-millrace-nats.streams.svc:4222')
  })
})

describe('what the operator may do', () => {
  const rulesOf = (object: Rendered): Rule[] => object['rules'] as Rule[]

  it('is said by verbs and kinds, one by one', async () => {
    for (const values of [{}, { namespaces: ['a', 'b'] }])
      for (const object of (await template(values)).filter(({ kind }) => kind.endsWith('Role')))
        for (const rule of rulesOf(object)) {
          for (const word of [...rule.apiGroups, ...rule.resources, ...rule.verbs]) expect(word).not.toContain('*')
          if (rule.resources.includes('nodes')) expect(rule.verbs).toEqual(['list', 'watch'])
          expect(rule.resources.filter((resource) => /role|token|persistentvolume|exec/.test(resource))).toEqual([])
          // Except in its own namespace, where it knows their names.
          const isOwn = object.metadata.name === 'millrace-operator'
          if (isOwn && rule.resources.includes('secrets') && !rule.verbs.includes('create'))
            expect(rule.resourceNames?.length).toBeGreaterThan(0)
        }
  })

  it('has no verb that it never uses', async () => {
    const rules = rulesOf(one(await template(), 'ClusterRole', 'streams-millrace-jobs'))
    const verbs = Object.fromEntries(
      rules.flatMap(({ resources, verbs }) => resources.map((resource) => [resource, verbs.join(' ')])),
    )
    expect(verbs).toMatchObject({
      // Nobody but users makes a StreamJob; a revision is never changed; status is put as a whole.
      streamjobs: 'get list watch patch delete',
      savepoints: 'get list watch create patch delete',
      'streamjobs/status': 'update',
      'savepoints/status': 'update',
      controllerrevisions: 'get list watch create delete',
      pods: 'get list watch create delete',
      'pods/log': 'get',
      events: 'create',
      namespaces: 'get',
      nodes: 'list watch',
    })
  })

  it('is in all namespaces where none is given, else in those alone', async () => {
    const everywhere = await template()
    expect(names(everywhere, 'ClusterRole').toSorted()).toEqual(['streams-millrace-jobs', 'streams-millrace-webhook'])
    const objects = await template({ namespaces: ['analytics', 'billing'] })
    const roles = objects.filter(({ kind, metadata }) => kind === 'Role' && metadata.name === 'streams-millrace-jobs')
    expect(roles.map(({ metadata }) => metadata.namespace)).toEqual(['analytics', 'billing'])
    const inAll = rulesOf(one(everywhere, 'ClusterRole', 'streams-millrace-jobs'))
    // Nodes are of no namespace.
    const inOne = inAll.filter(({ resources }) => !resources.includes('nodes'))
    expect(inOne).toHaveLength(inAll.length - 1)
    expect(roles.map(rulesOf)).toEqual([inOne, inOne])
    const cluster = objects.filter(({ kind }) => kind === 'ClusterRole')
    expect(cluster.flatMap(rulesOf)).toEqual([
      {
        apiGroups: ['admissionregistration.k8s.io'],
        resources: ['validatingwebhookconfigurations'],
        resourceNames: ['streams-millrace'],
        verbs: ['get', 'patch'],
      },
    ])
    expect(names(await template({ namespaces: ['a'], webhook: { enabled: false } }), 'ClusterRole')).toEqual([])
    const secrets = objects.filter(({ kind }) => kind === 'Secret')
    expect(secrets.map(({ metadata }) => metadata.namespace)).toEqual(['streams', 'analytics', 'billing'])
    expect(new Set(secrets.map(({ data }) => JSON.stringify(data))).size).toBe(1)
  })
})

describe('values', () => {
  it.each<[string, unknown, string]>([
    ['a typo at the top', { operatr: {} }, 'operatr'],
    ['a typo below', { operator: { replica: 2 } }, 'replica'],
    ['a typo in the defaults', { defaults: { storage: { checkpoint: 's3://a/b' } } }, 'checkpoint'],
    ['a place for savepoints that is no address', { defaults: { storage: { savepoints: 'bucket' } } }, 'savepoints'],
    ['a storage that is no address', { defaults: { storage: { checkpoints: 'bucket' } } }, 'checkpoints'],
    ['a password in an address', { defaults: { nats: { url: 'nats://me:secret@nats:4222' } } }, 'url'],
    ['a namespace that can be none', { namespaces: ['A b'] }, 'namespaces'],
    ['a level that is none', { operator: { logLevel: 'loud' } }, 'logLevel'],
    ['a number of pods that is none', { operator: { replicas: '2' } }, 'replicas'],
    ['an account that is none', { natsSigningKey: { secret: 's', account: 'me' } }, 'account'],
  ])('with %s are refused', async (_, values, place) => {
    const said = await refusal(values)
    expect(said).toContain("values don't meet the specifications of the schema")
    expect(said).toContain(place)
  })

  it('with a place for savepoints and none for checkpoints are refused: it would be on another server', async () => {
    const values = { defaults: { storage: { savepoints: 's3://kept/here' } } }
    expect(await refusal(values)).toContain('defaults.storage.savepoints needs defaults.storage.checkpoints')
  })

  it('are all listed in the README, with no others', async () => {
    const values = parse(await readFile(join(chart, 'values.yaml'), 'utf8')) as Any
    const readme = await readFile(join(chart, 'README.md'), 'utf8')
    const listed = [...readme.matchAll(/^\| `([\w.]+)` \|/gm)].map(([, name]) => name!)
    expect(listed.toSorted()).toEqual(leaves(values, '').toSorted())
  })

  /** resources are one value. */
  function leaves(value: unknown, path: string): string[] {
    const isGroup =
      typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0
    if (!isGroup || path.endsWith('.resources')) return [path]
    return Object.entries(value).flatMap(([name, inner]) => leaves(inner, path === '' ? name : `${path}.${name}`))
  }
})

it("the NATS server takes the chart's config with the accounts that the operator makes", async () => {
  const { data } = one(await template(), 'ConfigMap', 'millrace-nats') as unknown as { data: Record<string, string> }
  const place = join(folder, 'nats')
  await mkdir(place)
  await writeFile(join(place, 'nats.conf'), data['nats.conf']!)
  await writeFile(join(place, natsConfigKey), natsServerConfig(newNatsKeys(Date.now())))
  const { stderr } = await run(await natsServerBinary(), ['--config', join(place, 'nats.conf'), '-t'], {
    env: { ...process.env, POD_NAME: 'millrace-nats-0' },
  })
  expect(stderr).toMatch(/configuration file .*nats\.conf is valid/)
})

it("the S3 server, called with the chart's words, has the chart's bucket: a folder", async () => {
  const objects = await template()
  const [container] = podOf(one(objects, 'StatefulSet', 'millrace-s3')).containers
  const buckets = join(folder, 'buckets')
  await mkdir(join(buckets, 'millrace'), { recursive: true })
  const { data } = one(objects, 'Secret', 'millrace-s3') as unknown as { data: Record<string, string> }
  const text = (key: string): string => Buffer.from(data[key]!, 'base64').toString()
  const credentials = { accessKeyId: text('access-key-id'), secretAccessKey: text('secret-access-key') }
  const server = await startServer({
    name: 'versitygw',
    command: await goTool(versitygw),
    args: ([port]) =>
      container!.args!.map((word) => word.replace(/^:7070$/, `127.0.0.1:${port}`).replace(/^\/buckets$/, buckets)),
    env: { ROOT_ACCESS_KEY_ID: credentials.accessKeyId, ROOT_SECRET_ACCESS_KEY: credentials.secretAccessKey },
    ready: async ({ port }) => (await fetch(`http://127.0.0.1:${port}/health`)).ok,
  })
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${server.port}`,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials,
  })
  try {
    await client.send(new HeadBucketCommand({ Bucket: 'millrace' }))
    await client.send(new PutObjectCommand({ Bucket: 'millrace', Key: 'jobs/HEAD', Body: 'head' }))
    const { Body } = await client.send(new GetObjectCommand({ Bucket: 'millrace', Key: 'jobs/HEAD' }))
    expect(await Body!.transformToString()).toBe('head')
  } finally {
    client.destroy()
    await server.stop()
  }
})
