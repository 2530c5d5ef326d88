// The operator as the process that the chart runs, with the rights that the chart gives it, at a real API server.

import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { env } from 'node:process'
import { fileURLToPath } from 'node:url'
import { parse, stringify } from 'yaml'
import { vi } from 'vitest'
import { customResourceDefinitions } from '../../../crds/custom-resource-definitions.ts'
import { serveCoordinators } from '../../../operator/harness/coordinator-server.ts'
import { fastClock, OperatorWorld, testConfig } from '../../../operator/harness/operator-world.ts'
import { ApiClient } from '../../../operator/kubernetes/client.ts'
import { connectApi } from '../../../operator/kubernetes/platform/https-connection.ts'
import { types } from '../../../operator/kubernetes/types.ts'
import { startApiServer } from './api-server.ts'
import type { ApiServer } from './api-server.ts'

const repository = fileURLToPath(new URL('../../..', import.meta.url))

/** Of StreamJobs. */
export const jobsNamespace = 'jobs'
export const ownNamespace = 'millrace'

export interface OperatorProcess {
  readonly server: ApiServer
  readonly world: OperatorWorld
  readonly process: ChildProcess
  /** Of probes and metrics. */
  readonly url: string
  /** All lines so far. */
  readonly log: () => string
  /** What the API server says that the operator's account, and nobody else, has asked it to change: its audit log, refusals too, leases and events apart. */
  readonly written: () => Promise<readonly AuditedWrite[]>
  stop(): Promise<void>
}

export interface AuditedWrite {
  readonly verb: string
  readonly objectRef: { readonly resource: string; readonly name?: string; readonly subresource?: string }
  readonly responseStatus: { readonly code: number }
}

export interface OperatorProcessOptions {
  /** Of Node's command line. */
  readonly nodeFlags?: readonly string[]
  /** Where it meets the API server; default: at the server itself. */
  readonly through?: (server: ApiServer) => Promise<Pick<ApiServer, 'port' | 'ca'>>
}

/** Resolves once it is ready. */
export async function startOperatorProcess({
  nodeFlags = [],
  through = (server) => Promise.resolve(server),
}: OperatorProcessOptions = {}): Promise<OperatorProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'millrace-operator-'))
  const audit = { policy: join(folder, 'audit-policy.json'), log: join(folder, 'audit.log') }
  await writeFile(audit.policy, JSON.stringify(auditPolicy))
  const server = await startApiServer({
    args: [`--audit-policy-file=${audit.policy}`, `--audit-log-path=${audit.log}`],
  })
  const met = await through(server)
  await prepare(server)
  const client = new ApiClient({ connection: connectApi({ kubeconfig: server.kubeconfig }), fieldManager: 'test' })
  const account = { namespace: jobsNamespace, name: 'default' }
  await vi.waitUntil(() => client.get(types.serviceAccount, account), { timeout: 30_000 })
  const world = new OperatorWorld({
    client,
    clock: fastClock(1),
    makesPods: false,
    namespace: jobsNamespace,
    // A job takes a second; sixty at once on a busy machine take their time.
    deadlineMs: 240_000,
  })
  const coordinators = await serveCoordinators(world.coordinators, client)
  // As Kubernetes mounts it into a pod.
  await writeFile(join(folder, 'token'), await server.accountToken(ownNamespace, 'operator'))
  await writeFile(join(folder, 'ca.crt'), met.ca)
  await writeFile(join(folder, 'namespace'), ownNamespace)
  const config = join(folder, 'config.yaml')
  const natsAccess = { kind: 'own server', keysSecret: 'nats-keys', configSecret: 'nats-accounts' }
  await writeFile(config, stringify({ ...testConfig, namespaces: [jobsNamespace], natsAccess, logLevel: 'info' }))
  const words = [...nodeFlags, 'operator/main.ts', '--config', config, '--service-account', folder]
  const process = spawn(
    join(repository, 'node_modules/.bin/node'),
    [...words, '--port', '0', '--coordinators', `127.0.0.1:${coordinators.port}`],
    {
      cwd: repository,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...env, KUBERNETES_SERVICE_HOST: '127.0.0.1', KUBERNETES_SERVICE_PORT: String(met.port) },
    },
  )
  let log = ''
  process.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()))
  const stop = async (): Promise<void> => {
    process.kill('SIGKILL')
    coordinators.close()
    await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
  try {
    const started = /"message":"the operator starts".*"port":(\d+)/
    await vi.waitUntil(() => started.test(log) || process.exitCode !== null, { timeout: 60_000 })
    const port = started.exec(log)?.[1]
    if (port === undefined) throw new Error(`the operator did not start: ${log}`)
    const url = `http://127.0.0.1:${port}`
    await vi.waitUntil(async () => (await fetch(`${url}/readyz`)).status === 200, { timeout: 60_000, interval: 100 })
    const written = async (): Promise<readonly AuditedWrite[]> => {
      const lines = (await readFile(audit.log, 'utf8')).split('\n').slice(0, -1)
      return lines
        .map((line) => JSON.parse(line) as AuditedWrite)
        .filter(({ objectRef }) => !apart.has(objectRef.resource))
    }
    return { server, world, process, url, log: () => log, written, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

const apart: ReadonlySet<string> = new Set(['leases', 'events'])

/** By user, which the metrics of requests do not tell. A line for each, as it is answered. */
const auditPolicy = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  omitStages: ['RequestReceived'],
  rules: [
    {
      level: 'Metadata',
      users: [`system:serviceaccount:${ownNamespace}:operator`],
      verbs: ['create', 'update', 'patch', 'delete', 'deletecollection'],
    },
    { level: 'None' },
  ],
}

async function prepare(server: ApiServer): Promise<void> {
  const post = async (path: string, body: object): Promise<void> => {
    const { status, text } = await server.request(path, { method: 'POST', body })
    if (status !== 201) throw new Error(`POST ${path}: ${status} ${text}`)
  }
  for (const definition of customResourceDefinitions())
    await post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition)
  for (const name of [jobsNamespace, ownNamespace]) await post('/api/v1/namespaces', { metadata: { name } })
  await post(`/api/v1/namespaces/${ownNamespace}/serviceaccounts`, { metadata: { name: 'operator' } })
  const subjects = [{ kind: 'ServiceAccount', name: 'operator', namespace: ownNamespace }]
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces'
  const grant = async (within: string, name: string, rules: unknown): Promise<void> => {
    await post(`${rbac}/${within}/roles`, { metadata: { name }, rules })
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name }
    await post(`${rbac}/${within}/rolebindings`, { metadata: { name }, roleRef, subjects })
  }
  await grant(jobsNamespace, 'jobs', await jobRules())
  await grant(ownNamespace, 'own', [
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'get', 'patch'] },
    { apiGroups: [''], resources: ['secrets'], verbs: ['create', 'get', 'patch'] },
  ])
  for (const kind of ['streamjobs', 'savepoints'])
    await vi.waitUntil(async () => (await server.request(`/apis/millrace.dev/v1alpha1/${kind}`)).status === 200, {
      timeout: 60_000,
      interval: 100,
    })
}

/** What the chart's template grants in a namespace of jobs. */
async function jobRules(): Promise<unknown> {
  const template = await readFile(join(repository, 'charts/millrace/templates/operator/_job-rules.tpl'), 'utf8')
  const [, rules] = /\{\{- define "millrace\.jobRules" -\}\}([\s\S]*?)\{\{- end \}\}/.exec(template)!
  return parse(rules!)
}
