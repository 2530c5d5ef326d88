// The verbs of the API server over a connection that sends requests.

import { KubeError } from './contract.ts'
import type {
  DeleteOptions,
  GetOptions,
  KubeClient,
  KubeObject,
  ListOptions,
  LogOptions,
  Listed,
  Place,
  ResourceType,
  Watching,
  WatchEvent,
  WatchOptions,
} from './contract.ts'
import { types } from './types.ts'

export interface ApiRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its query. */
  readonly path: string
  readonly accept?: string
  readonly contentType?: string
  readonly body?: string
}

export interface ApiResponse {
  readonly status: number
  readonly retryAfter: string | undefined
  readonly body: string
}

/** Sends requests with the operator's credentials; every call has a deadline of its own there. Rejects when there is no answer. */
export interface ApiConnection {
  send(request: ApiRequest): Promise<ApiResponse>
  /** An answer that does not end: `onLine` gets each line of it. A silent connection is ended after `silentMs`. */
  stream(
    request: ApiRequest,
    onLine: (line: string) => void,
    silentMs: number,
  ): {
    /** Resolves when it has ended; rejects with what broke it, or KubeError for any other status than 200. */
    readonly ended: Promise<void>
    close(): void
  }
}

export interface ClientOptions {
  readonly connection: ApiConnection
  /** Of server-side apply: the fields that it sets are this manager's. */
  readonly fieldManager: string
}

/** Objects of the first page of a list; those after it are as large as their bytes allow. */
const pageSizeFirst = 20
const pageSizeMax = 500
/** An object may have 1.5 MiB, and a page is held twice while it is read. */
const pageBytes = 4 * 1024 * 1024
/** Beyond the server's own end of a watch. */
const watchSlackMs = 15_000
const json = 'application/json'
const metadataList = `application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1`
const metadataOne = `application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1`

export class ApiClient implements KubeClient {
  readonly #connection: ApiConnection
  readonly #manager: string

  constructor({ connection, fieldManager }: ClientOptions) {
    this.#connection = connection
    this.#manager = fieldManager
  }

  async get(type: ResourceType, at: Place, { metadataOnly }: GetOptions = {}): Promise<KubeObject | undefined> {
    const accept = metadataOnly === true ? `${metadataOne},${json}` : json
    try {
      return await this.#one(type, { method: 'GET', path: pathOf(type, at.namespace, at.name), accept })
    } catch (error) {
      if (error instanceof KubeError && error.notFound) return undefined
      throw error
    }
  }

  async list(type: ResourceType, options: ListOptions): Promise<Listed> {
    const { namespace, labelSelector, metadataOnly, keep = (object) => object } = options
    const items: KubeObject[] = []
    let limit = pageSizeFirst
    let token: string | undefined
    for (;;) {
      const { body } = await this.#succeed({
        method: 'GET',
        path: pathOf(type, namespace, undefined, { limit: String(limit), labelSelector, continue: token }),
        accept: metadataOnly === true ? `${metadataList},${json}` : json,
      })
      const { metadata, items: page = [] } = JSON.parse(body) as ListAnswer
      for (const item of page) items.push(keep({ ...item, apiVersion: type.apiVersion, kind: type.kind }))
      token = metadata.continue
      if (token === undefined || token === '') return { items, resourceVersion: metadata.resourceVersion ?? '' }
      limit = Math.max(1, Math.min(pageSizeMax, Math.floor((page.length * pageBytes) / body.length)))
    }
  }

  watch(type: ResourceType, options: WatchOptions, onEvent: (event: WatchEvent) => void): Watching {
    const { namespace, labelSelector, resourceVersion, timeoutSeconds, metadataOnly } = options
    const query = {
      watch: 'true',
      allowWatchBookmarks: 'true',
      labelSelector,
      resourceVersion,
      timeoutSeconds: String(timeoutSeconds),
    }
    const request: ApiRequest = {
      method: 'GET',
      path: pathOf(type, namespace, undefined, query),
      accept: metadataOnly === true ? `${metadataOne},${json}` : json,
    }
    let failure: KubeError | undefined
    const streaming = this.#connection.stream(
      request,
      (line) => {
        if (failure !== undefined || line === '') return
        const event = JSON.parse(line) as { readonly type: string; readonly object: KubeObject }
        if (event.type === 'ERROR') {
          failure = errorOf(event.object, 500)
          return streaming.close()
        }
        if (event.type === 'BOOKMARK') {
          const { resourceVersion: newest } = event.object.metadata
          return newest === undefined ? undefined : onEvent({ type: 'BOOKMARK', resourceVersion: newest })
        }
        const object = { ...event.object, apiVersion: type.apiVersion, kind: type.kind }
        return onEvent({ type: event.type as 'ADDED' | 'MODIFIED' | 'DELETED', object })
      },
      timeoutSeconds * 1_000 + watchSlackMs,
    )
    const ended = streaming.ended.then(() => {
      if (failure !== undefined) throw failure
    })
    return { ended, close: () => streaming.close() }
  }

  create(type: ResourceType, object: KubeObject): Promise<KubeObject> {
    const path = pathOf(type, object.metadata.namespace, undefined, { fieldManager: this.#manager })
    return this.#one(type, { method: 'POST', path, contentType: json, body: JSON.stringify(object) })
  }

  apply(type: ResourceType, object: KubeObject, { force }: { readonly force: boolean }): Promise<KubeObject> {
    const { namespace, name } = object.metadata
    const query = { fieldManager: this.#manager, ...(force && { force: 'true' }) }
    // JSON is YAML.
    return this.#one(type, {
      method: 'PATCH',
      path: pathOf(type, namespace, name, query),
      contentType: 'application/apply-patch+yaml',
      body: JSON.stringify(object),
    })
  }

  patch(type: ResourceType, at: Place, patch: Readonly<Record<string, unknown>>): Promise<KubeObject> {
    const path = pathOf(type, at.namespace, at.name, { fieldManager: this.#manager })
    return this.#one(type, {
      method: 'PATCH',
      path,
      contentType: 'application/merge-patch+json',
      body: JSON.stringify(patch),
    })
  }

  putStatus(type: ResourceType, object: KubeObject, status: unknown): Promise<KubeObject> {
    const { namespace, name } = object.metadata
    const path = `${pathOf(type, namespace, name)}/status?fieldManager=${encodeURIComponent(this.#manager)}`
    return this.#one(type, { method: 'PUT', path, contentType: json, body: JSON.stringify({ ...object, status }) })
  }

  async delete(
    type: ResourceType,
    at: Place,
    { precondition, gracePeriodSeconds }: DeleteOptions,
  ): Promise<KubeObject | undefined> {
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: precondition,
      propagationPolicy: 'Background',
      ...(gracePeriodSeconds !== undefined && { gracePeriodSeconds }),
    }
    try {
      const path = pathOf(type, at.namespace, at.name)
      const answer = await this.#send<KubeObject>({
        method: 'DELETE',
        path,
        contentType: json,
        body: JSON.stringify(body),
      })
      const isLeft = answer.kind !== 'Status' && gracePeriodSeconds !== 0
      return isLeft ? { ...answer, apiVersion: type.apiVersion, kind: type.kind } : undefined
    } catch (error) {
      if (error instanceof KubeError && error.notFound) return undefined
      throw error
    }
  }

  async logs(at: Place, { container, lines, limitBytes }: LogOptions): Promise<string> {
    const query = `?container=${encodeURIComponent(container)}&tailLines=${lines}&limitBytes=${limitBytes}`
    const answer = await this.#connection.send({
      method: 'GET',
      path: `${pathOf(types.pod, at.namespace, at.name)}/log${query}`,
      accept: '*/*',
    })
    if (answer.status !== 200) throw failureOf(answer)
    return answer.body
  }

  async #one({ apiVersion, kind }: ResourceType, request: ApiRequest): Promise<KubeObject> {
    return { ...(await this.#send<KubeObject>(request)), apiVersion, kind }
  }

  async #send<T>(request: ApiRequest): Promise<T> {
    return JSON.parse((await this.#succeed(request)).body) as T
  }

  async #succeed(request: ApiRequest): Promise<ApiResponse> {
    const answer = await this.#connection.send({ accept: json, ...request })
    if (answer.status < 200 || answer.status > 299) throw failureOf(answer)
    return answer
  }
}

interface ListAnswer {
  readonly metadata: { readonly resourceVersion?: string; readonly continue?: string }
  readonly items?: readonly KubeObject[]
}

function pathOf(
  { apiVersion, plural }: ResourceType,
  namespace: string | undefined,
  name?: string,
  query: Readonly<Record<string, string | undefined>> = {},
): string {
  const group = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  const within = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`
  const one = name === undefined ? '' : `/${encodeURIComponent(name)}`
  const given = Object.entries(query).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, value] as [string, string]],
  )
  const search = given.length === 0 ? '' : `?${new URLSearchParams(given).toString()}`
  return `${group}${within}/${plural}${one}${search}`
}

/** Of an answer that is no success. */
export function failureOf({ status, body, retryAfter }: ApiResponse): KubeError {
  const seconds = Number(retryAfter)
  const retryAfterMs = retryAfter === undefined || !Number.isFinite(seconds) ? undefined : seconds * 1_000
  try {
    return errorOf(JSON.parse(body) as KubeObject, status, retryAfterMs)
  } catch {
    return new KubeError(status, 'Unknown', body.slice(0, 500), retryAfterMs)
  }
}

function errorOf(answer: unknown, status: number, retryAfterMs?: number): KubeError {
  const { code, reason, message } = answer as {
    readonly code?: number
    readonly reason?: string
    readonly message?: string
  }
  return new KubeError(code ?? status, reason ?? 'Unknown', message ?? 'no message', retryAfterMs)
}
