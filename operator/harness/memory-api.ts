// The API server in memory, for tests of the operator: versions, preconditions, conflicts, finalizers, selectors, watches that lag, drop and
// expire. Of server-side apply, CEL, defaults and garbage collection nothing is claimed by it: apply here puts the given top-level fields into
// place, and what is owned goes with its owner at once. The real ones are met in tests/servers.

import { KubeError } from '../kubernetes/contract.ts'
import type {
  KubeClient,
  KubeObject,
  ListOptions,
  ObjectMeta,
  ResourceType,
  WatchEvent,
  WatchOptions,
} from '../kubernetes/contract.ts'
import { keyOf } from '../kubernetes/informer.ts'

export interface Write {
  readonly verb: 'create' | 'apply' | 'patch' | 'status' | 'delete'
  readonly kind: string
  readonly name: string
}

interface Watcher {
  readonly type: ResourceType
  readonly options: WatchOptions
  readonly onEvent: (event: WatchEvent) => void
  readonly end: PromiseWithResolvers<void>
}

type Mutable = { metadata: Record<string, unknown> } & Record<string, unknown>

export class MemoryApi {
  #version = 1_000
  #uids = 0
  readonly #objects = new Map<string, Map<string, KubeObject>>()
  readonly #watchers = new Set<Watcher>()
  readonly writes: Write[] = []
  readonly logs = new Map<string, string>()
  readonly #nowMs: () => number
  /** Events are held back: caches are stale. */
  #held: (() => void)[] | undefined

  constructor(nowMs: () => number) {
    this.#nowMs = nowMs
  }

  get version(): string {
    return String(this.#version)
  }

  all(type: ResourceType): readonly KubeObject[] {
    return [...this.#of(type).values()]
  }

  find(type: ResourceType, namespace: string, name: string): KubeObject | undefined {
    return this.#of(type).get(keyOf(namespace, name))
  }

  holdWatches(): void {
    this.#held ??= []
  }

  releaseWatches(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const send of held) send()
  }

  /** Every watch ends with 410; what is held back never comes. */
  expireWatches(): void {
    if (this.#held !== undefined) this.#held = []
    for (const watcher of this.#watchers) watcher.end.reject(new KubeError(410, 'Expired', 'too old resource version'))
    this.#watchers.clear()
  }

  /** `cut`: called before each write; throws to cut the connection. `after`: the write is done, its answer is lost. */
  client(
    hooks: { readonly before?: (write: Write) => void; readonly after?: (write: Write) => void } = {},
  ): KubeClient {
    const write = async <Value>(entry: Write, change: () => Value): Promise<Value> => {
      await Promise.resolve()
      hooks.before?.(entry)
      const value = change()
      this.writes.push(entry)
      hooks.after?.(entry)
      return value
    }
    const entryOf = (verb: Write['verb'], { kind }: ResourceType, name: string): Write => ({ verb, kind, name })
    return {
      get: async (type, { namespace, name }) => {
        await Promise.resolve()
        return this.#of(type).get(keyOf(namespace, name))
      },
      list: async (type, options) => {
        await Promise.resolve()
        const { keep = (object) => object } = options
        return { items: this.#selected(type, options).map(keep), resourceVersion: this.version }
      },
      watch: (type, options, onEvent) => this.#watch(type, options, onEvent),
      create: (type, object) => write(entryOf('create', type, object.metadata.name), () => this.#create(type, object)),
      apply: (type, object) => write(entryOf('apply', type, object.metadata.name), () => this.#apply(type, object)),
      patch: (type, { namespace, name }, patch) =>
        write(entryOf('patch', type, name), () => this.#patch(type, keyOf(namespace, name), patch)),
      putStatus: (type, object, status) =>
        write(entryOf('status', type, object.metadata.name), () => this.#putStatus(type, object, status)),
      delete: (type, { namespace, name }, { precondition, gracePeriodSeconds }) =>
        write(entryOf('delete', type, name), () => {
          const found = this.#of(type).get(keyOf(namespace, name))
          if (found === undefined) return undefined
          check(found, precondition)
          return this.#delete(type, found, gracePeriodSeconds)
        }),
      logs: async ({ namespace, name }) => {
        await Promise.resolve()
        const log = this.logs.get(keyOf(namespace, name))
        if (log === undefined) throw new KubeError(400, 'BadRequest', 'pod has no host assigned')
        return log
      },
    }
  }

  #of({ kind }: ResourceType): Map<string, KubeObject> {
    const objects = this.#objects.get(kind) ?? new Map<string, KubeObject>()
    this.#objects.set(kind, objects)
    return objects
  }

  #selected(type: ResourceType, { namespace, labelSelector }: ListOptions): readonly KubeObject[] {
    return this.all(type).filter((object) => isSelected(object, namespace, labelSelector))
  }

  #watch(type: ResourceType, options: WatchOptions, onEvent: (event: WatchEvent) => void) {
    const end = Promise.withResolvers<void>()
    const watcher: Watcher = { type, options, onEvent, end }
    this.#watchers.add(watcher)
    // What happened between list and watch: an honest server sends it; here it is told as added.
    for (const object of this.#selected(type, options))
      if (Number(object.metadata.resourceVersion) > Number(options.resourceVersion))
        this.#send(() => onEvent({ type: 'ADDED', object }))
    return {
      ended: end.promise,
      close: () => {
        this.#watchers.delete(watcher)
        end.resolve()
      },
    }
  }

  #send(send: () => void): void {
    if (this.#held === undefined) void Promise.resolve().then(send)
    else this.#held.push(send)
  }

  #changed(type: ResourceType, object: KubeObject, kind: 'ADDED' | 'MODIFIED' | 'DELETED'): KubeObject {
    for (const watcher of this.#watchers) {
      const { namespace, labelSelector } = watcher.options
      if (watcher.type.kind !== type.kind || !isSelected(object, namespace, labelSelector)) continue
      this.#send(() => {
        if (this.#watchers.has(watcher)) watcher.onEvent({ type: kind, object })
      })
    }
    return object
  }

  #create(type: ResourceType, object: KubeObject): KubeObject {
    const key = keyOf(object.metadata.namespace, object.metadata.name)
    if (this.#of(type).has(key)) throw new KubeError(409, 'AlreadyExists', `${type.kind} ${key} already exists`)
    const metadata: ObjectMeta = {
      ...object.metadata,
      uid: `uid-${++this.#uids}`,
      resourceVersion: String(++this.#version),
      generation: 1,
      creationTimestamp: new Date(this.#nowMs()).toISOString(),
    }
    const made = copy({ ...object, apiVersion: type.apiVersion, kind: type.kind, metadata })
    this.#of(type).set(key, made)
    return this.#changed(type, made, 'ADDED')
  }

  #apply(type: ResourceType, object: KubeObject): KubeObject {
    const found = this.#of(type).get(keyOf(object.metadata.namespace, object.metadata.name))
    if (found === undefined) return this.#create(type, object)
    check(found, object.metadata)
    const { labels, annotations, ownerReferences } = object.metadata
    const metadata = {
      ...found.metadata,
      labels: { ...found.metadata.labels, ...labels },
      ...(annotations !== undefined && { annotations: { ...found.metadata.annotations, ...annotations } }),
      ...(ownerReferences !== undefined && { ownerReferences }),
    }
    return this.#replace(type, found, { ...found, ...object, metadata })
  }

  #patch(type: ResourceType, key: string, patch: Readonly<Record<string, unknown>>): KubeObject {
    const found = this.#of(type).get(key)
    if (found === undefined) throw new KubeError(404, 'NotFound', `${type.kind} ${key} not found`)
    const { uid, resourceVersion } = (patch['metadata'] ?? {}) as Partial<ObjectMeta>
    check(found, { uid, resourceVersion })
    return this.#replace(type, found, merged(found, patch) as KubeObject)
  }

  #putStatus(type: ResourceType, object: KubeObject, status: unknown): KubeObject {
    const key = keyOf(object.metadata.namespace, object.metadata.name)
    const found = this.#of(type).get(key)
    if (found === undefined) throw new KubeError(404, 'NotFound', `${type.kind} ${key} not found`)
    check(found, object.metadata)
    // As JSON: undefined is not there.
    return this.#replace(type, found, { ...found, status: copy(status) })
  }

  #replace(type: ResourceType, found: KubeObject, next: KubeObject): KubeObject {
    const { metadata } = next
    const isSpecNew = JSON.stringify(found['spec']) !== JSON.stringify(next['spec'])
    const kept: KubeObject = copy({
      ...next,
      metadata: {
        ...metadata,
        uid: found.metadata.uid!,
        resourceVersion: found.metadata.resourceVersion!,
        generation: (found.metadata.generation ?? 1) + (isSpecNew ? 1 : 0),
      },
    })
    // A write that changes nothing makes no version.
    if (JSON.stringify(kept) === JSON.stringify(found)) return found
    const changed = copy({ ...kept, metadata: { ...kept.metadata, resourceVersion: String(++this.#version) } })
    const isGone = changed.metadata.deletionTimestamp !== undefined && (changed.metadata.finalizers ?? []).length === 0
    if (isGone && type.kind !== 'Pod') return this.#remove(type, changed)
    this.#of(type).set(keyOf(changed.metadata.namespace, changed.metadata.name), changed)
    return this.#changed(type, changed, 'MODIFIED')
  }

  /** A pod waits for its kubelet. */
  #delete(type: ResourceType, found: KubeObject, graceSeconds: number | undefined): KubeObject | undefined {
    const { finalizers = [], deletionTimestamp } = found.metadata
    const spec = found['spec'] as { readonly terminationGracePeriodSeconds?: number } | undefined
    const grace = graceSeconds ?? (type.kind === 'Pod' ? (spec?.terminationGracePeriodSeconds ?? 30) : 0)
    if (finalizers.length === 0 && grace === 0) {
      this.#remove(type, found)
      return undefined
    }
    if (deletionTimestamp !== undefined) return found
    const metadata = {
      ...found.metadata,
      deletionTimestamp: new Date(this.#nowMs() + grace * 1_000).toISOString(),
      deletionGracePeriodSeconds: grace,
    }
    return this.#replace(type, found, { ...found, metadata })
  }

  #remove(type: ResourceType, object: KubeObject): KubeObject {
    this.#of(type).delete(keyOf(object.metadata.namespace, object.metadata.name))
    const gone = copy({ ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#version) } })
    this.#changed(type, gone, 'DELETED')
    for (const [kind, objects] of this.#objects)
      for (const owned of objects.values())
        if (owned.metadata.ownerReferences?.some(({ uid }) => uid === object.metadata.uid) === true)
          this.#delete({ ...type, kind, apiVersion: owned.apiVersion }, owned, undefined)
    return gone
  }
}

function check(
  { metadata, kind }: KubeObject,
  wanted: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined },
): void {
  const { uid, resourceVersion } = wanted
  if (uid !== undefined && uid !== metadata.uid)
    throw new KubeError(409, 'Conflict', `${kind} ${metadata.name}: the UID in the precondition does not match`)
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
    throw new KubeError(409, 'Conflict', `${kind} ${metadata.name}: the object has been modified`)
}

function isSelected({ metadata }: KubeObject, namespace: string | undefined, selector: string | undefined): boolean {
  if (namespace !== undefined && metadata.namespace !== namespace) return false
  return (selector ?? '').split(',').every((term) => {
    if (term === '') return true
    const [name, value] = term.split('=') as [string, string | undefined]
    const found = metadata.labels?.[name]
    return value === undefined ? found !== undefined : found === value
  })
}

function merged(left: unknown, right: unknown): unknown {
  if (typeof right !== 'object' || right === null || Array.isArray(right)) return right
  const base = typeof left === 'object' && left !== null && !Array.isArray(left) ? (left as Mutable) : {}
  const result: Record<string, unknown> = { ...base }
  for (const [name, value] of Object.entries(right))
    if (value === null) delete result[name]
    else if (value !== undefined) result[name] = merged(result[name], value)
  return result
}

function copy<Value>(value: Value): Value {
  return JSON.parse(JSON.stringify(value)) as Value
}
