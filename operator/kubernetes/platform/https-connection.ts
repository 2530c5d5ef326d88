// The connection to the API server, by node's own http. In a pod the service account's files are all that is needed; a kubeconfig is read by
// @kubernetes/client-node, which is loaded for that alone, as it takes 80 MiB.

import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { AgentOptions, IncomingMessage, RequestOptions } from 'node:http'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { failureOf } from '../client.ts'
import type { ApiConnection, ApiRequest, ApiResponse } from '../client.ts'
import { bodyOf } from '../../platform/body.ts'

const requestDeadlineMs = 30_000
/** An answer is held in memory whole. */
const bodyBytesMax = 256 * 1024 * 1024
/** Of requests. A watch holds its socket for minutes, and there are as many as kinds and namespaces: requests must not wait for one to end. */
const socketsMax = 32

/** Tokens are rotated well before they end. */
const tokenMs = 60_000

export interface ServiceAccount {
  /** With `token` and `ca.crt`, as Kubernetes mounts it. */
  readonly folder: string
  /** https://host:port of the API server. */
  readonly server: string
}

export interface ConnectOptions {
  /** Of the pod; undefined: a kubeconfig is used. */
  readonly account?: ServiceAccount | undefined
  /** A file; undefined: as kubectl finds it. */
  readonly kubeconfig?: string | undefined
  /** Instead of the cluster's address: a proxy before the API server. */
  readonly server?: string | undefined
}

interface Credentials {
  readonly server: string
  /** Sets certificates and header of a request. */
  apply(options: Record<string, unknown>): Promise<void>
}

/** `ready` rejects when there are no credentials or no cluster; so does every request then. */
export function connectApi({
  account,
  kubeconfig,
  server,
}: ConnectOptions): ApiConnection & { readonly ready: Promise<void> } {
  const loading = account === undefined ? ofKubeconfig(kubeconfig) : ofAccount(account)
  const connected = loading.then((credentials) => {
    const base = new URL(server ?? credentials.server)
    const secure = base.protocol === 'https:'
    const agentOf = (limit: Pick<AgentOptions, 'maxSockets'>): HttpAgent | HttpsAgent =>
      new (secure ? HttpsAgent : HttpAgent)({ keepAlive: true, ...limit })
    return { credentials, base, secure, requests: agentOf({ maxSockets: socketsMax }), watches: agentOf({}) }
  })
  const ready = connected.then(() => undefined)
  ready.catch(() => undefined)

  const open = async (
    asked: ApiRequest,
    signal: AbortSignal,
    kind: 'requests' | 'watches',
  ): Promise<IncomingMessage> => {
    const { credentials, base, secure, [kind]: agent } = await connected
    const options: RequestOptions & Record<string, unknown> = { method: asked.method, headers: {} }
    await credentials.apply(options)
    options['agent'] = agentWith(agent, options, secure)
    const headers = {
      ...(options.headers as Record<string, string>),
      accept: asked.accept ?? 'application/json',
      'user-agent': 'millrace-operator',
      ...(asked.body !== undefined && {
        'content-type': asked.contentType ?? 'application/json',
        'content-length': String(Buffer.byteLength(asked.body)),
      }),
    }
    return new Promise((resolve, reject) => {
      const sending = (secure ? httpsRequest : httpRequest)(
        {
          ...options,
          headers,
          signal,
          hostname: base.hostname,
          port: base.port,
          path: `${base.pathname.replace(/\/$/, '')}${asked.path}`,
        },
        resolve,
      )
      sending.on('error', reject)
      sending.end(asked.body)
    })
  }

  return {
    ready,
    send: async (asked) => {
      const signal = AbortSignal.timeout(requestDeadlineMs)
      return read(await open(asked, signal, 'requests'))
    },
    stream: (asked, onLine, silentMs) => {
      const controller = new AbortController()
      let closed = false
      let timer: NodeJS.Timeout | undefined
      const alive = (): void => {
        clearTimeout(timer)
        timer = setTimeout(() => controller.abort(new Error(`nothing came for ${silentMs} ms`)), silentMs)
        timer.unref()
      }
      const follow = async (): Promise<void> => {
        try {
          alive()
          const response = await open(asked, controller.signal, 'watches')
          if (response.statusCode !== 200) throw failureOf(await read(response))
          response.on('data', alive)
          for await (const line of createInterface({ input: response })) {
            if (closed) return
            onLine(line)
          }
        } catch (error) {
          if (!closed) throw error
        } finally {
          clearTimeout(timer)
        }
      }
      return {
        ended: follow(),
        close: () => {
          closed = true
          controller.abort()
        },
      }
    },
  }
}

async function ofAccount({ folder, server }: ServiceAccount): Promise<Credentials> {
  const ca = await readFile(join(folder, 'ca.crt'), 'utf8')
  const readToken = async (): Promise<string> => (await readFile(join(folder, 'token'), 'utf8')).trim()
  let token = await readToken()
  let readMs = performance.now()
  return {
    server,
    apply: async (options) => {
      if (performance.now() - readMs > tokenMs) {
        token = await readToken()
        readMs = performance.now()
      }
      options['ca'] = ca
      options['headers'] = { ...(options['headers'] as object), authorization: `Bearer ${token}` }
    },
  }
}

async function ofKubeconfig(file: string | undefined): Promise<Credentials> {
  const { KubeConfig } = await import('@kubernetes/client-node')
  const config = new KubeConfig()
  if (file === undefined) config.loadFromDefault()
  else config.loadFromFile(file)
  const cluster = config.getCurrentCluster()
  if (cluster === null) throw new Error('the kubeconfig names no cluster')
  return { server: cluster.server, apply: (options) => config.applyToHTTPSOptions(options) }
}

/** One agent for all requests of a kind, so that connections are kept; the credentials of a client certificate are the agent's. */
function agentWith(
  agent: HttpAgent | HttpsAgent,
  options: Record<string, unknown>,
  secure: boolean,
): HttpAgent | HttpsAgent {
  if (secure)
    for (const name of ['ca', 'cert', 'key', 'rejectUnauthorized', 'servername'] as const)
      if (options[name] !== undefined) (agent as HttpsAgent).options[name as 'ca'] = options[name] as string
  return agent
}

async function read(response: IncomingMessage): Promise<ApiResponse> {
  const body = await bodyOf(response, bodyBytesMax)
  return {
    status: response.statusCode ?? 0,
    retryAfter: response.headers['retry-after'],
    body,
  }
}
