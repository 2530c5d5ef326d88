// A real Kubernetes API server on loopback, without nodes: etcd, kube-apiserver and, where asked for, Kubernetes' own controllers. Admission, CEL,
// server-side apply, watches and garbage collection are the real ones; pods are never scheduled, and their status is whatever a test writes.

import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { request as httpsRequest } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clusterProgram } from '../../../e2e/cluster/programs.ts'
import { startServer } from './server-process.ts'
import type { ServerProcess } from './server-process.ts'

/** The administrator's, of group system:masters: good only at this server, which ends with its test. */
const adminToken = 'millrace-tests-admin'
const requestDeadlineMs = 30_000
/** On two processors that ten others use, the slowest start seen took a third of it. */
const readyDeadlineMs = 120_000

/** What the controllers of `controllers: 'usual'` do: objects that are owned go with their owner, sets make pods, namespaces have accounts and end. */
const usualControllers = [
  'garbage-collector-controller',
  'namespace-controller',
  'serviceaccount-controller',
  'root-ca-certificate-publisher-controller',
  'deployment-controller',
  'replicaset-controller',
  'statefulset-controller',
  'disruption-controller',
  'endpointslice-controller',
  'ttl-after-finished-controller',
  'job-controller',
]

export interface ApiServerOptions {
  /**
   * Kubernetes' own controllers beside it: garbage collection, namespaces, accounts, Deployments, StatefulSets, Jobs, disruption budgets,
   * endpoint slices (default); 'none'; or names as kube-controller-manager's --controllers takes them.
   */
  readonly controllers?: 'usual' | 'none' | readonly string[]
  /** Further flags of kube-apiserver. */
  readonly args?: readonly string[]
}

export interface ApiRequest {
  /** Default GET. */
  readonly method?: string
  /** Sent as JSON; a string as it is. */
  readonly body?: unknown
  /** Default application/json. */
  readonly contentType?: string
  /** Bearer; default the administrator's. */
  readonly token?: string
}

export interface ApiAnswer {
  readonly status: number
  readonly text: string
  /** The text as JSON; throws where it is none. */
  json(): unknown
}

export interface ApiServer {
  /** https://127.0.0.1:<port>; the same over restarts. */
  readonly url: string
  readonly port: number
  /** PEM of the authority that signed its certificate. */
  readonly ca: string
  /** The administrator's bearer token. */
  readonly token: string
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string
  /** Path of a kubectl of the server's version. */
  readonly kubectl: string
  readonly process: ServerProcess
  readonly etcd: ServerProcess
  /** Undefined for `controllers: 'none'`. */
  readonly controllers: ServerProcess | undefined
  /** Any status is an answer; rejects where there is none. */
  request(path: string, options?: ApiRequest): Promise<ApiAnswer>
  /** Prometheus text: apiserver_request_total by verb, resource and code, and all else that it counts. */
  metrics(): Promise<string>
  /** A token of a service account, for tests of rights; the account is there already. Valid for an hour. */
  accountToken(namespace: string, account: string): Promise<string>
  /** Path of a kubeconfig with that token, at the server itself or at a proxy before it. */
  writeKubeconfig(name: string, options: { readonly token: string; readonly port?: number }): Promise<string>
  /** kill -9 of the API server alone: etcd keeps what was written. */
  kill(): Promise<void>
  /** kill -9 (where it runs), then again on the same port; resolves once it is ready. */
  restart(): Promise<void>
  /** Everything, politely and then by kill -9, by process id; removes its files. Idempotent. */
  stop(): Promise<void>
}

/** Resolves once the server is ready, all its hooks done, and with controllers once namespace `default` has its account. */
export async function startApiServer(options: ApiServerOptions = {}): Promise<ApiServer> {
  const { controllers = 'usual' } = options
  const [etcdCommand, serverCommand, managerCommand, kubectl] = await Promise.all([
    clusterProgram('etcd'),
    clusterProgram('kube-apiserver'),
    clusterProgram('kube-controller-manager'),
    clusterProgram('kubectl'),
  ])
  const folder = await mkdtemp(join(tmpdir(), 'millrace-kubernetes-'))
  const started: ServerProcess[] = []
  const stop = async (): Promise<void> => {
    for (const server of started.toReversed()) await server.stop()
    await rm(folder, { recursive: true, force: true })
  }
  const file = (name: string): string => join(folder, name)
  try {
    await writeFile(file('tokens.csv'), `${adminToken},admin,admin,system:masters\n`, { mode: 0o600 })
    const account = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    await writeFile(file('accounts.key'), account.privateKey.export({ type: 'sec1', format: 'pem' }), { mode: 0o600 })
    await writeFile(file('accounts.pub'), account.publicKey.export({ type: 'spki', format: 'pem' }))
    const etcd = await startServer({
      name: 'etcd',
      command: etcdCommand,
      portCount: 2,
      args: ([client, peer]) => etcdArgs(file('etcd'), `http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`),
      ready: async ({ port }) => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok,
      readyDeadlineMs,
    })
    started.push(etcd)
    const server = await startServer({
      name: 'kube-apiserver',
      command: serverCommand,
      args: ([port]) => [...serverArgs(file, port!, etcd.port), ...(options.args ?? [])],
      ready: async ({ port }) => {
        const ca = await readFile(file('certificates/apiserver.crt'), 'utf8')
        return (await send({ port, ca, token: adminToken }, '/readyz', {})).status === 200
      },
      readyDeadlineMs,
    })
    started.push(server)
    // Self-signed at its first start, with the authority in the same file; kept over restarts.
    const ca = await readFile(file('certificates/apiserver.crt'), 'utf8')
    await writeFile(file('ca.crt'), ca)
    const at = { port: server.port, ca, token: adminToken }
    const request: ApiServer['request'] = (path, asked = {}) =>
      send({ ...at, token: asked.token ?? at.token }, path, asked)
    const writeKubeconfig: ApiServer['writeKubeconfig'] = async (name, { token, port = server.port }) => {
      await writeFile(file(name), JSON.stringify(kubeconfigOf({ port, ca, token })), { mode: 0o600 })
      return file(name)
    }
    const kubeconfig = await writeKubeconfig('admin.kubeconfig', { token: adminToken })
    const manager =
      controllers === 'none'
        ? undefined
        : await startServer({
            name: 'kube-controller-manager',
            command: managerCommand,
            args: ([port]) => managerArgs(file, port!, controllers === 'usual' ? usualControllers : controllers),
            ready: async () => (await request('/api/v1/namespaces/default/serviceaccounts/default')).status === 200,
            readyDeadlineMs,
          })
    if (manager !== undefined) started.push(manager)
    return {
      url: `https://127.0.0.1:${server.port}`,
      port: server.port,
      ca,
      token: adminToken,
      kubeconfig,
      kubectl,
      process: server,
      etcd,
      controllers: manager,
      request,
      metrics: async () => (await request('/metrics')).text,
      accountToken: async (namespace, name) => {
        const answer = await request(`/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`, {
          method: 'POST',
          body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } },
        })
        if (answer.status !== 201) throw new Error(`no token for account ${namespace}/${name}: ${answer.text}`)
        return (answer.json() as { readonly status: { readonly token: string } }).status.token
      },
      writeKubeconfig,
      kill: () => server.kill(),
      restart: () => server.restart(),
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const etcdArgs = (data: string, client: string, peer: string): string[] => [
  '--name=tests',
  `--data-dir=${data}`,
  // Nothing here outlives the machine, and every write of a test waits for it.
  '--unsafe-no-fsync',
  `--listen-client-urls=${client}`,
  `--advertise-client-urls=${client}`,
  `--listen-peer-urls=${peer}`,
  `--initial-advertise-peer-urls=${peer}`,
  `--initial-cluster=tests=${peer}`,
  '--log-level=warn',
]

const serverArgs = (file: (name: string) => string, port: number, etcdPort: number): string[] => [
  `--etcd-servers=http://127.0.0.1:${etcdPort}`,
  '--bind-address=127.0.0.1',
  '--advertise-address=127.0.0.1',
  `--secure-port=${port}`,
  `--cert-dir=${file('certificates')}`,
  `--token-auth-file=${file('tokens.csv')}`,
  '--authorization-mode=RBAC',
  `--service-account-key-file=${file('accounts.pub')}`,
  `--service-account-signing-key-file=${file('accounts.key')}`,
  '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
  '--service-cluster-ip-range=10.96.0.0/16',
  '--endpoint-reconciler-type=none',
  '--allow-privileged=true',
  '--profiling=false',
]

const managerArgs = (file: (name: string) => string, port: number, controllers: readonly string[]): string[] => [
  `--kubeconfig=${file('admin.kubeconfig')}`,
  `--authentication-kubeconfig=${file('admin.kubeconfig')}`,
  `--authorization-kubeconfig=${file('admin.kubeconfig')}`,
  '--bind-address=127.0.0.1',
  `--secure-port=${port}`,
  `--cert-dir=${file('manager')}`,
  '--leader-elect=false',
  `--controllers=${controllers.join(',')}`,
  `--service-account-private-key-file=${file('accounts.key')}`,
  `--root-ca-file=${file('ca.crt')}`,
  '--kube-api-qps=500',
  '--kube-api-burst=1000',
]

interface Address {
  readonly port: number
  /** PEM. */
  readonly ca: string
  readonly token: string
}

const kubeconfigOf = ({ port, ca, token }: Address): unknown => ({
  apiVersion: 'v1',
  kind: 'Config',
  clusters: [
    {
      name: 'tests',
      cluster: {
        server: `https://127.0.0.1:${port}`,
        'certificate-authority-data': Buffer.from(ca).toString('base64'),
      },
    },
  ],
  users: [{ name: 'user', user: { token } }],
  contexts: [{ name: 'tests', context: { cluster: 'tests', user: 'user', namespace: 'default' } }],
  'current-context': 'tests',
})

function send(at: Address, path: string, options: ApiRequest): Promise<ApiAnswer> {
  const { method = 'GET', body, contentType = 'application/json' } = options
  const sent = body === undefined || typeof body === 'string' ? body : JSON.stringify(body)
  return new Promise((resolve, reject) => {
    const call = httpsRequest({
      host: '127.0.0.1',
      port: at.port,
      ca: at.ca,
      path,
      method,
      headers: { authorization: `Bearer ${at.token}`, 'content-type': contentType },
      signal: AbortSignal.timeout(requestDeadlineMs),
    })
    call.once('error', reject)
    call.once('response', (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => (text += chunk))
      answer.once('error', reject)
      answer.once('end', () =>
        resolve({ status: answer.statusCode ?? 0, text, json: () => JSON.parse(text) as unknown }),
      )
    })
    call.end(sent)
  })
}
