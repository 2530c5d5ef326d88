// The API server as the operator uses it: a handful of verbs on objects of known types, and a watch.

export interface ObjectMeta {
  readonly name: string
  readonly namespace?: string
  readonly uid?: string
  readonly resourceVersion?: string
  readonly generation?: number
  readonly creationTimestamp?: string
  readonly deletionTimestamp?: string
  readonly deletionGracePeriodSeconds?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly ownerReferences?: readonly OwnerReference[]
  readonly managedFields?: unknown
}

export interface OwnerReference {
  readonly apiVersion: string
  readonly kind: string
  readonly name: string
  readonly uid: string
  readonly controller?: boolean
  readonly blockOwnerDeletion?: boolean
}

export interface KubeObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: ObjectMeta
  readonly [field: string]: unknown
}

/** A kind of object, and where it is found. */
export interface ResourceType {
  readonly apiVersion: string
  readonly kind: string
  readonly plural: string
}

export interface GetOptions {
  /** Metadata only: what is enough to know whether other people's object is there. */
  readonly metadataOnly?: boolean
}

export interface ListOptions {
  /** undefined: of all namespaces. */
  readonly namespace?: string | undefined
  readonly labelSelector?: string | undefined
  /** Metadata only: what a cache of other people's objects needs. */
  readonly metadataOnly?: boolean | undefined
  /** What is kept of each object, page by page: what nobody reads is never held all at once. Default: all. */
  readonly keep?: ((object: KubeObject) => KubeObject) | undefined
}

export interface Listed {
  readonly items: readonly KubeObject[]
  readonly resourceVersion: string
}

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string }

export interface WatchOptions extends Omit<ListOptions, 'keep'> {
  readonly resourceVersion: string
  /** After which the server ends it. */
  readonly timeoutSeconds: number
}

export interface Watching {
  /** Resolves when the server has ended it; rejects with KubeError (410: the version is gone), or what broke the connection. */
  readonly ended: Promise<void>
  close(): void
}

/** The very object as it was read: what a change or a deletion is conditional on. */
export interface Precondition {
  readonly uid: string
  readonly resourceVersion?: string
}

export interface DeleteOptions {
  readonly precondition: Precondition
  /** 0: at once, without the kubelet's word. */
  readonly gracePeriodSeconds?: number
}

export interface LogOptions {
  readonly container: string
  readonly lines: number
  readonly limitBytes: number
}

export interface KubeClient {
  /** undefined only if the server says that it is not there. */
  get(type: ResourceType, at: Place, options?: GetOptions): Promise<KubeObject | undefined>
  /** Whole: pages are put together. */
  list(type: ResourceType, options: ListOptions): Promise<Listed>
  watch(type: ResourceType, options: WatchOptions, onEvent: (event: WatchEvent) => void): Watching
  create(type: ResourceType, object: KubeObject): Promise<KubeObject>
  /**
   * Server-side apply under the operator's field manager. `force`: what other managers have set is overridden, as these fields are ours;
   * without it a conflict is an error, and what is not there is made. `metadata` carries the precondition.
   */
  apply(type: ResourceType, object: KubeObject, options: { readonly force: boolean }): Promise<KubeObject>
  /** Merge patch; `metadata` of it carries the precondition. */
  patch(type: ResourceType, at: Place, patch: Readonly<Record<string, unknown>>): Promise<KubeObject>
  /** The whole status, by the status subresource: fields that it has not are gone. Only of the very version that `object` is. */
  putStatus(type: ResourceType, object: KubeObject, status: unknown): Promise<KubeObject>
  /** What is left of it, as it waits for its end; undefined: it is gone, or was not there. */
  delete(type: ResourceType, at: Place, options: DeleteOptions): Promise<KubeObject | undefined>
  /** The last lines of a container's log, at most so many bytes of them. */
  logs(at: Place, options: LogOptions): Promise<string>
}

export interface Place {
  readonly namespace?: string
  readonly name: string
}

/** What the server answered. */
export class KubeError extends Error {
  override readonly name = 'KubeError'
  readonly status: number
  /** Kubernetes' own word, such as Conflict, AlreadyExists, Expired, Invalid, Forbidden. */
  readonly reason: string
  /** The server asks to be left alone for so long, ms. */
  readonly retryAfterMs: number | undefined

  constructor(status: number, reason: string, message: string, retryAfterMs?: number) {
    super(`${status} ${reason}: ${message}`)
    this.status = status
    this.reason = reason
    this.retryAfterMs = retryAfterMs
  }

  get notFound(): boolean {
    return this.status === 404
  }

  /** Somebody else was faster: read again. */
  get conflict(): boolean {
    return this.status === 409 && this.reason !== 'AlreadyExists'
  }

  get exists(): boolean {
    return this.status === 409 && this.reason === 'AlreadyExists'
  }

  /** The server does not take it as it is: a field that cannot change, or is wrong. */
  get invalid(): boolean {
    return this.status === 422
  }
}
